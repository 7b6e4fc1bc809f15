/* SPDX-License-Identifier: BSD-2-Clause */
/* Short waits of a start: a master process that was told to quit has the pid file's lock and the
 * addresses until its workers have released them. A signal to end this process ends the wait. Never
 * takes the lock or an address: the caller does, and reports failures. */
#pragma once

#include "net/adopted.h"

/* Waits until no process has the lock of this pid file. */
void await_lock(const char *path, struct log *log);
/* Waits until no other process listens on the addresses that have no previous holder. */
void await_addresses(
    const struct listeners *listeners, const struct adopted *adopted, struct log *log);
