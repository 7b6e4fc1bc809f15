/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's handshakes, given to an engine: in a keeper, or in this process.
 *
 * Responsible for the numbers of handshakes, for bytes to and from the engine, and for ending all
 * handshakes when a keeper is lost. Never calls back within a call: replies come from the loop.
 * What a keeper says is input: checked, and a breach of the rules ends the link. */
#pragma once

#include "tls/engine.h"

struct loop;
struct tls_link;

/* The owner of a handshake, in which this is embedded. */
struct tls_pending {
    uint32_t number; /* the link's own; 0: no handshake is under way */
    /* The whole reply has come; `reply` is valid until the return. After TLS_DONE and TLS_FAILED
     * the handshake is over. A lost keeper, too, is a TLS_FAILED. */
    void (*replied)(struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply);
};

/* Begins a handshake; -1: too many are under way, or the link has failed. Without a keeper, which
 * is to be replaced, a handshake waits for the next. Of many, the oldest whose peers are awaited
 * fail soon. */
int tls_link_begin(
    struct tls_link *link, struct tls_pending *pending, const struct tls_start *start);
/* Says why tls_link_begin() has returned -1. */
const char *tls_link_refusal(const struct tls_link *link);
/* Gives the peer's bytes, TLS_FEED_MOST at most, copied; no more before the reply. The first of a
 * client gives none, and copies the name of the start. */
void tls_link_feed(struct tls_link *link, struct tls_pending *pending, fb_bytes in);
/* Whether a session is of a suite that this build has and its engine may choose. */
bool tls_link_takes(const struct tls_link *link, const struct tls_session *session);
/* After a TLS_DONE of a client whose session has a number for awaits_tickets: gives a whole record
 * as it came, in which the server has sent a ticket, as long as no other record has come before.
 * Of handshakes that await tickets the oldest are forgotten by the link. False: no more are
 * wanted. */
bool tls_link_ticket(struct tls_link *link, uint32_t number, fb_bytes record);
/* Awaits no more tickets; the number may be forgotten, or 0. */
void tls_link_forget(struct tls_link *link, uint32_t number);
/* Forgets a handshake under way. */
void tls_link_cancel(struct tls_link *link, struct tls_pending *pending);

/* Gives the link to a keeper a new keeper's socket, from the loop: handshakes with the last keeper
 * have failed, and their owners are told before the return. */
void tls_link_connect(struct tls_link *link, int fd);
/* Destroys a link without handshakes; NULL: does nothing. */
void tls_link_destroy(struct tls_link *link);
