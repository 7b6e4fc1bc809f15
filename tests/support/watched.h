/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of a fixture's loop, counting events, with a handler of the test. */
#pragma once

#include "support/fixture.h"

struct watched {
    struct source source; /* the first member: a slot of the loop's table */
    struct fixture *fixture;
    unsigned runs[EVENT_DIRECTIONS];
    /* action of an event besides; NULL: the direction is no longer ready */
    void (*run)(struct watched *watched, enum event_direction direction);
    void (*then)(struct watched *watched); /* for `run`, as the rest */
    char name;
    struct watched *other;
    bool receives; /* takes all bytes */
    size_t received;
    uint8_t held[4096];
    size_t held_n;
    bool ended; /* recv has said so */
    int error;  /* recv has failed so */
};

/* A source on a descriptor, or (-1) without one; not armed. */
struct watched *watched_create(struct fixture *fixture, int fd);
/* A source on a descriptor, armed in both directions. */
struct watched *watched_create_armed(struct fixture *fixture, int fd);
void watched_close(struct fixture *fixture, struct watched **watched);

struct io_result watched_recv(struct watched *watched, void *p, size_t n);
struct io_result watched_send(struct watched *watched, const void *p, size_t n);
