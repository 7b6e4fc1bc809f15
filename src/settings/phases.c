/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists of handlers that each server has run around its protocol. */
#include "settings/apply.h"
#include "settings/template.h"

int phase_add(struct apply *apply, struct server *server, enum stream_phase phase,
    unsigned (*run)(struct fb_conn *conn, const void *arg), const void *arg)
{
    struct phase_handler *handler = apply_alloc(apply, sizeof(*handler));
    struct phase_handler **at = phase == PHASE_LOG ? &server->after : &server->before;

    assert(phase < STREAM_PHASES && run != NULL);
    if (handler == NULL)
        return -1;
    while (*at != NULL && (*at)->phase <= phase)
        at = &(*at)->next;
    *handler = (struct phase_handler) { .next = *at, .phase = phase, .run = run, .arg = arg };
    *at = handler;
    return 0;
}
