/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts that both kinds of link have. Private to tls/link*.c. */
#pragma once

#include "event/loop.h"
#include "tls/link.h"
#include "tls/message.h"

#include <bsd/sys/queue.h>

enum link_phase {
    LINK_FREE,
    LINK_BEGUN,   /* no byte was given yet: the engine does not know the handshake */
    LINK_WAITING, /* a reply is due */
    LINK_REPLIED, /* waits for bytes of the peer */
    LINK_AWAITS,  /* the handshake is done, and takes tickets: no owner */
};

/* A handshake under way. */
struct link_place {
    enum link_phase phase;
    uint32_t number; /* number of a free place: the last; the generation goes up with each use */
    struct tls_pending *pending;
    struct tls_start start;
    uint64_t begun_ms; /* monotonic; of LINK_AWAITS: when the handshake was done */
    TAILQ_ENTRY(link_place) awaits;
    uint32_t given; /* bytes without a reply */
    uint32_t next;  /* place after a free one: the next free one, or TLS_HANDSHAKES_MOST */
};

struct tls_link_ops {
    /* Hands bytes on, copied: TLS_BEGIN or TLS_FEED. */
    void (*feed)(struct tls_link *link, const struct tls_request *request);
    /* Hands a TLS_TICKET on, copied; false: it cannot be handed on now. */
    bool (*ticket)(struct tls_link *link, const struct tls_request *request);
    /* The engine, which knows the handshake, is to forget a number. */
    void (*cancel)(struct tls_link *link, uint32_t number);
    /* Takes a socket; NULL: never called. */
    void (*connect)(struct tls_link *link, int fd);
    void (*destroy)(struct tls_link *link);
};

/* The first member of each kind. */
struct tls_link {
    const struct tls_link_ops *ops;
    struct loop *loop;
    struct source *source;        /* NULL: the link is down */
    struct source_ops source_ops; /* the source's */
    bool plain;                   /* the engine is the one without cryptography */
    bool broken; /* a call has failed: the source's event, if there is one, ends all handshakes */
    uint64_t refused_ms, shed_ms;      /* monotonic: when either was last logged; 0: never */
    unsigned n;                        /* handshakes under way, or awaiting tickets */
    unsigned waiting;                  /* handshakes with a due reply */
    unsigned awaits_n;                 /* handshakes that await tickets, */
    TAILQ_HEAD(, link_place) awaiting; /* the oldest first */
    struct timer forgets;              /* set while handshakes are awaiting */
    uint32_t free;
    struct link_place places[TLS_HANDSHAKES_MOST];
};

static inline struct tls_link *tls_link_of(const struct source *source)
{
    return container_of(source->ops, struct tls_link, source_ops);
}

/* Fills in a zeroed link, which is down. */
void tls_link_init(struct tls_link *link, struct loop *loop, const struct tls_link_ops *ops);
/* Posts the source's event. */
void tls_link_post(struct tls_link *link);
/* Notes a failed call, within a call of the link's user; without a source the next one tells. */
void tls_link_break(struct tls_link *link);
/* Finds the place of a number; NULL: the handshake was forgotten. */
struct link_place *tls_link_find(struct tls_link *link, uint32_t number);
/* Gives the owner a reply, from the loop. */
void tls_link_reply(
    struct tls_link *link, struct link_place *place, enum tls_step step, struct tls_reply *reply);
/* Fails the oldest handshakes that wait for their peers, from the loop, where few places are free:
 * slow peers, or an attacker's, cannot keep others out. */
void tls_link_shed(struct tls_link *link);
/* Fails all handshakes that the engine knows, or was to know, from the loop. */
void tls_link_fail_all(struct tls_link *link, const char *text);
