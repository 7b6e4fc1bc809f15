/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a council: clients of tests/module/council.c, with orders to their workers and the
 * workers' reports. Every wait has a deadline, which fails the test. */
#pragma once

#include "base/compiler.h"
#include "daemon/daemon.h"

#include <inttypes.h>

#define COUNCIL_MODULE(name) "load_module " MODULES_PATH "/" name ".so;\n"

/* A client of a worker, and the worker itself. */
struct member {
    int fd;
    pid_t pid;
    uint64_t id;
    unsigned number, count;
};

/* Gives an order, which is a line. */
void council_say(const struct member *member, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Reads lines until the first with the beginning, and returns the rest. Valid until the next call.
 * "came" and "gone" may stand before or behind an answer involving further workers: to see either,
 * ask the worker for the workers known to it. */
const char *council_read_after(int fd, const char *beginning);

/* Connects to one of the daemon's ports. */
void council_open_port(struct daemon *daemon, struct member *member, unsigned port);
/* How many others the worker knows. */
unsigned council_known_by(const struct member *member);
/* Connects until all of n workers have a client, the first `there` of them already; and waits until
 * every worker knows all others. */
void council_open_members(
    struct daemon *daemon, struct member *members, unsigned n, unsigned there);
void council_close(struct member *member);

/* The worker reports that `from` has given it `text`. */
void council_expect_got(const struct member *to, const char *text, uint64_t from);
/* The worker has been sent n messages of floods, none of them out of order. */
void council_expect_count(const struct member *member, unsigned n);
/* The worker has heard of the end of the worker `id`. */
void council_expect_gone(const struct member *member, uint64_t id);
