/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS on a connection, after the handshake: operations upon the mechanism's (event/io.h), which
 * seal what is sent, and open what is received. Responsible for records of all types: data,
 * KeyUpdate, alerts, and tickets of servers, which are handed to the engine while no other record
 * has come, and passed over later; anything else ends the session. Never shakes hands. A connection
 * has a slot of the net's table while it is layered, and memory only for a record that has not come
 * whole, or output that the socket has had no room for. Invariants: source->held and
 * source->partial say whether `held` and `unread` are NULL; of a record that fails no byte is lent.
 */
#pragma once

#include "net/conn.h"
#include "tls/record.h"

struct tls_link;
struct tls_session;

enum layer_phase {
    LAYER_OPEN,
    LAYER_CLOSED, /* the peer's close_notify has come: no more input */
    LAYER_FAILED, /* the peer has broken the rules, or has sent a fatal alert: no more input */
};

/* The seal of the output: the layer's work, or the kernel's. */
enum layer_offload {
    LAYER_SEALS,     /* the layer, for ever */
    LAYER_MAY,       /* the layer, until much output comes that the kernel can seal */
    LAYER_OFFLOADED, /* the kernel, for ever: no keys of the output are left, to be updated */
};

struct layer {
    struct tls_keys in; /* keys of the peer's records */
    union {
        struct tls_keys out;       /* of ours */
        struct io_sealing sealing; /* LAYER_OFFLOADED */
    };
    const struct tls_suite *suite;
    struct chunk *unread; /* the begin of a record, or the records behind the handshake; or NULL */
    /* sealed output, sent before any other; or NULL. LAYER_OFFLOADED: type and plaintext of a
     * record that is no data */
    struct chunk *held;
    uint16_t plain_most;  /* plaintext of a record of ours, at most */
    uint32_t debt;        /* debt of the peer, for records without data (layer_input.c) */
    uint32_t awaits;      /* the number for tls_link_ticket(); 0: no ticket is handed on */
    uint32_t ticket_left; /* bytes of a ticket that goes on in the next record */
    uint8_t phase;        /* enum layer_phase; only layer_set_phase() changes it */
    uint8_t offload;      /* enum layer_offload */
    bool more;            /* the last receive may have left input in the socket */
    bool updated;         /* a KeyUpdate is the last of what is held: it answers all requests */
    bool tickets;         /* held output is tickets of the handshake, which no peer waits for */
    bool ended;           /* nothing of ours may follow: close_notify, an alert, a lost record */
    bool truncated;       /* the peer has ended without close_notify */
};

/* An idle session costs a slot, no more. */
static_assert(sizeof(struct layer) <= 256, "an idle session of TLS has become dearer");

/* Bytes of a file, from which on the kernel is to seal. */
#define LAYER_FILE_LEAST ((size_t)256 * 1024)
/* Bytes of records for one system call. */
#define LAYER_PLAIN (4 * TLS_PLAIN_MOST)

/* Layers of a net. */
struct layers {
    struct layer *slots; /* slots, as many as the loop has sources; touched when first used */
    size_t slots_size;
    struct ciphers *ciphers;
    struct tls_link *link;                       /* the taker of tickets; or NULL */
    unsigned lacks;                              /* bits of ciphers that the kernel has refused */
    uint8_t in[NET_SCRATCH];                     /* received bytes, opened there: lent */
    uint8_t out[LAYER_PLAIN + 5 * TLS_OVERHEAD]; /* what is sent */
    uint8_t file[LAYER_PLAIN]; /* bytes of a file; or a record as it came, if tickets are awaited */
};

/* Makes net->layers; -1 with errno. */
int layer_init(struct net *net);
void layer_done(struct net *net);
/* Sets where tickets go, until NULL is set; before that none are taken. */
void layer_use_link(struct net *net, struct tls_link *link);
/* Puts TLS on an open connection, whose unconsumed input becomes records; the rest of the handshake
 * is sent before any record of ours. -1 without memory, and nothing has changed. */
int layer_begin(struct fb_conn *conn, const struct tls_session *session, fb_bytes rest);
/* Lets the kernel seal the output of a connection with TLS, when a file or a pipe has much. */
void layer_allow_offload(struct fb_conn *conn);

/* Whether the peer of a connection with TLS has ended without close_notify. */
bool layer_is_truncated(const struct fb_conn *conn);

/* ---- For layer*.c alone ---- */

static inline struct layer *layer_of(const struct fb_conn *conn)
{
    assert(conn->source.layered);
    return &conn->net->layers->slots[conn_slot(conn) - 1];
}

static inline struct fb_conn *layer_conn(const struct source *source)
{
    return container_of((struct source *)source, struct fb_conn, source);
}

/* Returns the mechanism's operations. */
static inline const struct io_ops *layer_lower(const struct fb_conn *conn)
{
    return conn->net->loop.mechanism->io;
}

/* Whether the socket may hold input that no event will tell of. */
static inline bool layer_has_more(const struct fb_conn *conn)
{
    const struct io_ops *lower = layer_lower(conn);

    return layer_of(conn)->more || (lower->pending != NULL && lower->pending(&conn->source) > 0);
}

static inline void layer_set_phase(struct layer *layer, enum layer_phase phase)
{
    assert(layer->phase == LAYER_OPEN && phase != LAYER_OPEN);
    layer->phase = phase;
}

struct io_result layer_recv(struct source *source, struct io_span *span);
struct io_result layer_send(struct source *source, const struct iovec *pieces, int n);
struct io_result layer_sendfile(struct source *source, int fd, off_t *offset, size_t n);
struct io_result layer_flush(struct source *source, bool ends);
/* Gives the kernel the keys of the output, if nothing is held and the kernel can; false: it never
 * will, so that there is no use in another call. */
bool layer_kernel_take(struct fb_conn *conn);
/* The operations of LAYER_OFFLOADED. */
struct io_result layer_kernel_send(struct source *source, const struct iovec *pieces, int n);
struct io_result layer_kernel_sendfile(struct source *source, int fd, off_t *offset, size_t n);
struct io_result layer_kernel_splice(struct source *source, int pipe, size_t n);
/* Keeps sealed bytes, behind those held before; -1 without memory. */
int layer_hold(struct fb_conn *conn, const uint8_t *p, size_t n);
/* Ends the waiting for tickets, if any. */
void layer_end_tickets(struct fb_conn *conn);
/* Seals a record other than data, to be sent with the next flush; -1 where that fails. */
int layer_add_record(struct fb_conn *conn, enum tls_type type, const uint8_t *p, size_t n);
/* Goes over to new keys of what is sent, and tells the peer; -1 as above, and where the kernel has
 * the keys. */
int layer_update_keys(struct fb_conn *conn);
