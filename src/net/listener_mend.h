/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets stopped by foreign calls, and their repair. */
#pragma once

#include "net/listener.h"

/* Makes a broken socket listen again beside the sockets of `others`: MENDED. Else, with
 * `may_replace`, a new socket gets the descriptor: REPLACED, and the other holders of the old
 * socket have to be given the new one. Only few repairs are logged, with their number. Returns -1
 * on failure, with an emerg line at times. */
enum { LISTENER_MENDED, LISTENER_REPLACED };
int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log);
