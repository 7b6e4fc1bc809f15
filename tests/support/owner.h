/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of a fixture's connections, on the net level: they record events and act by the test's
 * callbacks. Nested callbacks fail. */
#pragma once

#include "net/conn_connect.h"
#include "net/conn_deadline.h"
#include "net/conn_output.h"
#include "net/conn_pipe.h"
#include "support/fixture.h"

/* The owner of one connection. */
struct owner {
    struct fixture *fixture;
    struct fb_conn *conn; /* NULL once it has been closed */
    struct sim_socket *socket;
    bool outgoing; /* `opened` may never come */
    /* callbacks, besides recording; NULL: nothing, consume everything, close at the end */
    void (*opened)(struct owner *owner);
    size_t (*data)(struct owner *owner, fb_bytes in);
    void (*eof)(struct owner *owner, fb_bytes rest);
    void (*writable)(struct owner *owner);
    void (*expired)(struct owner *owner);
    void (*closed)(struct owner *owner);
    struct owner *other; /* for the callbacks */
    size_t n;            /* for the callbacks */
    /* the record */
    unsigned openings, datas, eofs, writables, expirations, closings;
    unsigned connects_again, first_bytes;
    fb_reason reason;
    char last[256]; /* the bytes of the latest `data` or `eof` */
    size_t last_n;
    const uint8_t *last_p;
};

/* A connection on a socket of its own; `opened` has run. Freed with owner_free(). */
struct owner *owner_open(struct fixture *fixture);
/* Makes a connection with the callbacks of `like`, not yet opened. */
struct owner *owner_create(struct fixture *fixture, const struct owner *like);
/* Makes a connection on a descriptor of the real kernel, not yet opened. */
struct owner *owner_adopt(struct fixture *fixture, int fd);
/* Pipes two, with nothing but a timeout; 0: none. Returns conn_pipe()'s result. */
int owner_pipe(struct owner *a, struct owner *b, uint64_t timeout);
/* A server, at 192.0.2.9:80, and a connection there, with a socket known after the server's accept:
 * owner_accept(). */
struct sim_server *owner_server(struct fixture *fixture);
struct owner *owner_connect(struct fixture *fixture, const struct owner *like);
struct owner *owner_accept(struct sim_server *server, struct owner *owner);
/* Fails if not closed, or not exactly once for an opening. */
void owner_free(struct owner **owner);

/* Returns what was sent, as a string. */
const char *owner_sent(const struct owner *owner);

/* `data` callbacks: echo all input without a copy, or consume nothing. */
size_t owner_echo(struct owner *owner, fb_bytes in);
size_t owner_leave_input(struct owner *owner, fb_bytes in);
/* `eof` that does nothing. */
void owner_ignore_eof(struct owner *owner, fb_bytes rest);
void owner_abort(struct owner *owner);
/* Writes the next n bytes of an endless pattern. */
void owner_write_pattern(struct owner *owner, size_t n);
/* Fails unless exactly n bytes of the pattern were sent. */
void owner_check_pattern(const struct owner *owner, size_t n);
