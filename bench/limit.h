/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared parts of the limit servers. Each server does the least possible for its kind, without
 * limits, time-outs, logs or care for rare cases: the floor for comparisons. */
#pragma once

/* A listening socket on 127.0.0.1 at the port in `text`; ends the program if there is none. */
int limit_listen(const char *text);

/* A connected socket to 127.0.0.1 at the port. The connect may still be under way. */
int limit_connect(int port);

void limit_no_delay(int fd);
