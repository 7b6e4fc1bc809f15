/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the peers of a group in turn. */
#include "upstream/choice.h"

#include "event/loop.h"
#include "upstream/peers.h"

void choice_begin(struct choice *choice, struct upstreams *upstreams, struct upstream *upstream)
{
    assert(upstream->peers != NULL);
    *choice = (struct choice) {
        .kind = CHOICE_KIND,
        .upstreams = upstreams,
        .upstream = upstream,
        .left = upstream->peers->n,
    };
}

fb_choice choice_next(struct choice *choice)
{
    struct peers *peers = choice->upstream->peers;

    CHECK_KIND(choice, CHOICE_KIND);
    assert(choice->peer == NULL);
    if (choice->left == 0)
        return FB_CHOICE_NONE;
    choice->left--;
    choice->peer = &peers->list[peers->next++ % peers->n];
    choice->began_ms = choice->upstreams->loop->clock.mono_ms;
    choice->connected_ms = choice->first_byte_ms = FB_NO_TIME;
    return FB_CHOICE_SERVER;
}

void choice_end(struct choice *choice, fb_try_end how)
{
    CHECK_KIND(choice, CHOICE_KIND);
    (void)how;
    choice->peer = NULL;
}
