/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a council: clients of tests/module/council.c, each of which gives orders to its worker
 * and reads what that says of the other workers. Whatever waits has a deadline, which fails the
 * test. */
#pragma once

#include "base/compiler.h"
#include "daemon/daemon.h"

#include <inttypes.h>

#define COUNCIL_MODULE(name) "load_module " MODULES_PATH "/" name ".so;\n"

/* A client of a worker, and that worker. */
struct member {
    int fd;
    pid_t pid;
    uint64_t id;
    unsigned number, count;
};

/* Gives an order, which is a line. */
void council_say(const struct member *member, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Reads lines until one begins so, and returns the rest of that. Valid until the next call. "came"
 * and "gone" may stand before or behind an answer that others have a part in: to see either, ask
 * the worker whom it knows. */
const char *council_read_after(int fd, const char *beginning);

/* Connects to one of the daemon's ports. */
void council_open_port(struct daemon *daemon, struct member *member, unsigned port);
/* How many others the worker knows. */
unsigned council_known_by(const struct member *member);
/* Connects until there is a client of each of n workers, of which the first `there` are there; and
 * waits until each knows all others. */
void council_open_members(
    struct daemon *daemon, struct member *members, unsigned n, unsigned there);
void council_close(struct member *member);

/* The worker says that it was given this, and by whom. */
void council_expect_got(const struct member *to, const char *text, uint64_t from);
/* The worker has been sent n messages of floods, none of them out of its order. */
void council_expect_count(const struct member *member, unsigned n);
/* The worker has been told that another, which it knew, has gone. */
void council_expect_gone(const struct member *member, uint64_t id);
