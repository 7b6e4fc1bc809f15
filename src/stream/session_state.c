/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session on one connection.
 *
 * Responsible for the steps that session_set_phase() may take. Never calls a protocol. Invariant: a
 * step that is not in the table below does not happen; SESSION_ENDED is the last. */
#include "stream/session_conn.h"

#define TO(phase) (1U << SESSION_##phase)

static_assert(SESSION_PHASES <= countof(session_steps), "a phase has three bits");

/* For each phase those that may follow. */
const uint8_t session_steps[8] = {
    [SESSION_NEW] = TO(HEADER) | TO(PREREAD) | TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_HEADER] = TO(PREREAD) | TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_PREREAD] = TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_AWAITED] = TO(ACTIVE) | TO(NEW) /* of another server */ | TO(ENDED),
    [SESSION_ACTIVE] = TO(KEEPALIVE) | TO(NEW) /* the same */ | TO(ENDED),
    [SESSION_KEEPALIVE] = TO(NEW) /* for another owner */ | TO(ENDED),
};
