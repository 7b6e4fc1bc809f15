/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshakes under way of one worker, on the engine's side: in a keeper, or in the worker
 * itself without a master.
 *
 * Responsible for their number and for the bytes that each may take in. A request that fits none of
 * them is refused, never an assertion. Invariant: a handshake ends with its last reply, unless it
 * awaits tickets: then with TLS_CANCEL, or when the engine wants no more. */
#pragma once

#include "tls/message.h"

struct tls_handshakes;

/* Makes an empty table of the engine's handshakes; NULL without memory. */
struct tls_handshakes *tls_handshakes_create(
    const struct tls_engine_ops *ops, struct tls_engine *engine);
/* Ends all handshakes; the engine stays. */
void tls_handshakes_destroy(struct tls_handshakes *handshakes);
/* Ends all handshakes, of a worker that has gone. */
void tls_handshakes_end_all(struct tls_handshakes *handshakes);
/* How many are under way. */
unsigned tls_handshakes_count(const struct tls_handshakes *handshakes);
/* Carries out TLS_BEGIN or TLS_FEED. The reply is lent until the next call, and there is none yet
 * for TLS_LATER; -1: a request that no worker makes. `profile_n`: the number of profiles. */
int tls_handshakes_feed(struct tls_handshakes *handshakes, const struct tls_request *request,
    unsigned profile_n, enum tls_step *step, struct tls_reply **reply);
/* Goes on with a handshake that waited for a file, from place *from on, which is set for the next
 * call; returns false when no further one has a reply. */
bool tls_handshakes_resume(struct tls_handshakes *handshakes, unsigned *from, uint32_t *number,
    enum tls_step *step, struct tls_reply **reply);
/* Carries out TLS_TICKET; the handshake may have ended. -1: a request that no worker makes. */
int tls_handshakes_ticket(struct tls_handshakes *handshakes, const struct tls_request *request);
/* Carries out TLS_CANCEL; the handshake may have ended. */
void tls_handshakes_cancel(struct tls_handshakes *handshakes, uint32_t number);
