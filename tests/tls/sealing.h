/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer of a connection with TLS, whose keys both know: seals records of any kind, also wrong
 * ones, and opens what the connection has sent. By CIPHER_PLAIN, which every build has. */
#pragma once

#include "support/owner.h"
#include "tls/engine.h"
#include "tls/layer.h"

/* Bytes, as many as are added. */
struct sealing_bytes {
    uint8_t *p;
    size_t n, room;
};

struct sealing {
    struct ciphers *ciphers;
    struct sim_socket *socket;   /* the simulation's, or NULL */
    struct tls_keys in, out;     /* keys of the connection's records, and of the peer's */
    struct sealing_bytes sealed; /* added, and not said */
    struct sealing_bytes raw;    /* sent to the peer, and not opened yet */
    struct sealing_bytes plain;  /* data that was opened */
    size_t taken;                /* bytes of socket->sent in `raw`, or before */
    unsigned records;            /* records that were opened */
    size_t longest;              /* data in one of these */
    unsigned updates;            /* KeyUpdates among these */
    unsigned requests;           /* ... that ask for another */
    int alert;                   /* the alert that was opened last; -1: none */
    bool closed;                 /* close_notify has come: the last of all records */
};

/* A net with layers. */
struct fixture *sealing_start(enum fixture_events events, uint32_t connections);
struct fixture *sealing_start_on(const struct mechanism *mechanism, uint32_t connections);
/* Stops the fixture, when all connections have ended. */
void sealing_stop(struct fixture *fixture);

/* A peer with keys, and the session of the connection. */
void sealing_init(struct sealing *peer, struct tls_session *session);
void sealing_done(struct sealing *peer);
/* Puts TLS on the connection, on a socket of the simulation, if any, and makes its peer. */
void sealing_begin(struct sealing *peer, struct owner *owner);

/* Seals a record, of any type, also an empty one. */
void sealing_add(struct sealing *peer, unsigned type, const void *p, size_t n);
/* Seals data in records of as many bytes. */
void sealing_add_data(struct sealing *peer, const void *p, size_t n, size_t record);
void sealing_add_text(struct sealing *peer, const char *text);
void sealing_add_alert(struct sealing *peer, unsigned level, unsigned alert);
/* Ends what the peer says, with close_notify. */
void sealing_add_close(struct sealing *peer);
/* Goes over to the next keys; `requests`: and asks the connection to do so. */
void sealing_add_update(struct sealing *peer, bool requests);
/* Says what was added: at once, or in pieces of so many bytes. */
void sealing_say(struct sealing *peer);
void sealing_say_pieces(struct sealing *peer, size_t piece);
/* Writes what was added to a socket of the kernel, as far as there is room. */
void sealing_write(struct sealing *peer, int fd);
/* Reads all that is there from a socket of the kernel, and opens it; false: the end has come,
 * perhaps by a reset. */
bool sealing_read(struct sealing *peer, int fd);
/* Seals a text in a record, and says it. */
void sealing_says(struct sealing *peer, const char *text);

/* Opens the records among n more bytes of the connection's; fails where they are wrong. */
void sealing_take(struct sealing *peer, const void *p, size_t n);
/* Opens what the connection has sent to the simulated socket. */
void sealing_look(struct sealing *peer);
/* Looks, and returns the data that was sent so far, as a string. */
const char *sealing_sent(struct sealing *peer);
/* Looks, and says whether the sent data are the first n bytes of sealing_pattern(). */
bool sealing_sent_pattern(struct sealing *peer, size_t n);
/* Returns bytes whose place is seen from their value; static memory of SEALING_PATTERN. */
#define SEALING_PATTERN ((size_t)1024 * 1024)
const uint8_t *sealing_pattern(void);

/* A connection with TLS, its peer, and the bytes given to the owner. The test of a fixture. */
struct sealed {
    struct fixture *fixture;
    struct owner *owner;
    struct sealing peer;
    struct sealing_bytes got;
};

/* Opens a connection, which has received nothing. */
void sealed_open(struct sealed *sealed, enum fixture_events events);
/* Frees all of a connection that has ended, or is aborted. */
void sealed_close(struct sealed *sealed);
/* `data` of the owner: adds to the bytes so far. */
size_t sealed_collect(struct owner *owner, fb_bytes in);
/* Whether the owner was given the first n bytes of the pattern. */
bool sealed_got_pattern(const struct sealed *sealed, size_t n);
/* Fails unless the connection has failed, the peer has got the alert (-1: none), and the log has
 * one line, with `text`. */
void sealed_check_alert(struct sealed *sealed, int alert, const char *text);
/* Writes, while the socket has room for so many bytes. */
void sealed_write(struct sealed *sealed, const void *p, size_t n, size_t room);
/* Gives the socket all room. */
void sealed_let_all_leave(struct sealed *sealed);
