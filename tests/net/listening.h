/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of listeners share: a fixture whose log goes into memory, and clients. */
#pragma once

#include "net/listener.h"

#define SLOTS 4 /* of the largest listener that accept_next takes */

struct fixture {
    struct arena *arena;
    struct log log;
    struct log_target target;
    char text[4096];
    unsigned fd_n; /* descriptors that were open before */
};

struct fixture *set_up(void);
/* Fails if a line was logged that no test has asked for, or a descriptor is left. */
void tear_down(struct fixture *fixture);
/* What was logged since the last time. */
const char *logged(struct fixture *fixture);

/* Every option of a TCP socket but reuseport. */
extern const struct listener_options every_option;

/* A listener on the address, on any port where it names none, with the defaults for NULL. */
struct listener *create(
    struct fixture *fixture, const char *text, const struct listener_options *options);
/* The same, open. */
struct listener *opened(struct fixture *fixture, const char *text,
    const struct listener_options *options, const struct listener *from, unsigned slots);
/* Without a line in the log. */
void commit(struct fixture *fixture, struct listener *listener);

/* Descriptors that are open. */
unsigned count_fds(void);

/* A connected client, or -1 with errno. */
int try_connect(const struct address *address);
/* Accepts the next connection and says which slot had it. */
unsigned accept_next(const struct listener *listener, int *fd);
/* Connects once and says which slot got it. */
unsigned slot_of_a_client(const struct listener *listener);

int option_of(int fd, int level, int option);
