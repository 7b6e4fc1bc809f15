/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners for tests, and clients of them. A test fails on an open descriptor, or on a log line
 * not taken. */
#pragma once

#include "net/listener.h"
#include "support/memory_log.h"

#define SLOTS 4 /* descriptors of the largest listener that accept_next() takes */

struct listening {
    struct arena *arena;
    struct memory_log log;
    unsigned fd_n; /* descriptors that were open before */
};

struct listening *listening_start(void);
/* Fails if a line was logged that no test has asked for, or a descriptor is left. */
void listening_stop(struct listening *listening);

/* Every option of a TCP socket but reuseport. */
extern const struct listener_options every_option;

/* A listener on the address, on any port where it names none, with the defaults for NULL. */
struct listener *listening_create(
    struct listening *listening, const char *text, const struct listener_options *options);
/* A listener as above, open. */
struct listener *listening_open(struct listening *listening, const char *text,
    const struct listener_options *options, const struct listener *from, unsigned slots);
/* Commits the listener, without a line in the log. */
void listening_commit(struct listening *listening, struct listener *listener);

/* Descriptors that are open. */
unsigned count_fds(void);

/* A connected client, or -1 with errno. */
int try_connect(const struct address *address);
/* Accepts the next connection and returns the slot of the listener. */
unsigned accept_next(const struct listener *listener, int *fd);
/* Connects once and returns the slot of the client. */
unsigned slot_of_a_client(const struct listener *listener);

int option_of(int fd, int level, int option);
