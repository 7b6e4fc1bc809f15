/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares published loads. A worker publishes its own count before reading the siblings'. */
#include "worker/accept_share.h"

#include <assert.h>
#include <stdlib.h>

/* Tokens for passing clients to a worker with one client less, so that the first clients of a burst
 * are spread exactly, and to a worker well below the mean. Each costs a wake-up. */
static const struct token_rate exact_rate = { .burst = 64, .per_second = 20 };
static const struct token_rate rough_rate = { .burst = 64, .per_second = 50 };
/* Tokens for leaving clients without a wake-up: half of the time, as busy workers hardly sleep. */
static const struct token_rate aside_rate = { .burst = 64, .per_second = 250 };
/* Tokens for passing a client without room after a refusal: the other worker may have been late. */
static const struct token_rate again_rate = { .burst = 4, .per_second = 4 };

/* Less than this part above the mean is about the mean. */
#define SPREAD 16
#define ROUGH_LEAST 4

/* The load of the other workers. */
struct look {
    unsigned n; /* workers that take clients */
    uint64_t clients, accepts;
    bool room;      /* skips workers without room */
    uint32_t least; /* fewest clients of a worker */
    uint32_t number;
    bool waits; /* at the time for events */
};

int accept_share_init(struct accept_share *share, struct shared *shared, struct slot_id id,
    uint32_t place, unsigned n)
{
    assert(n > 1 && n <= SLOT_MAX && place % SLOT_MAX < n);
    *share = (struct accept_share) {
        .shared = shared,
        .own_slot = id.slot % SLOT_MAX,
        .place = place,
        .sibling_n = n,
        .most = UINT32_MAX,
        .siblings = calloc(n, sizeof(share->siblings[0])),
    };
    if (share->siblings == NULL)
        return -1;
    share->own = shared_slot(shared, id);
    return 0;
}

void accept_share_done(struct accept_share *share)
{
    accept_share_publish(share, SLOT_TAKES_NONE);
    free(share->siblings);
    share->siblings = NULL;
    share->own = NULL;
}

static void look_at_slot(
    struct accept_share *share, struct look *look, uint32_t slot_number, uint32_t number)
{
    const struct slot *slot = shared_slot_at(share->shared, slot_number);
    struct share_sibling *sibling = &share->siblings[number];
    uint64_t heartbeat = heartbeat_now(&slot->heartbeat);
    bool waits = heartbeat_callback(heartbeat) == CALLBACK_WAIT;
    uint64_t n = atomic_load_explicit(&slot->counters.n[COUNTER_ACTIVE], memory_order_relaxed);
    uint32_t clients = n < share->most ? (uint32_t)n : share->most;
    uint32_t takes = atomic_load_explicit(&slot->load.takes, memory_order_relaxed);

    look->accepts += atomic_load_explicit(&slot->counters.n[COUNTER_ACCEPTS], memory_order_relaxed);
    if (takes == SLOT_TAKES_NONE)
        return;
    if (sibling->silent && sibling->slot == slot_number && sibling->heartbeat == heartbeat)
        return;
    *sibling = (struct share_sibling) { .heartbeat = heartbeat, .slot = slot_number };
    look->n++;
    look->clients += clients;
    if (look->room && (takes != SLOT_TAKES || clients >= share->most))
        return;
    if (look->number != SHARE_NOBODY &&
        (clients > look->least || (clients == look->least && (look->waits || !waits))))
        return;
    look->least = clients;
    look->number = number;
    look->waits = waits;
}

/* Whether the slot has another worker of the generation, as published by the master. */
static bool is_other(const struct accept_share *share, uint32_t i)
{
    const struct shared_published *published = share->shared->published;
    uint32_t place = published->slots[i].place;

    return place >> PLACE_NUMBER_BITS == share->place >> PLACE_NUMBER_BITS &&
           i != share->own_slot && published->slots[i].serial != 0 &&
           place % SLOT_MAX < share->sibling_n;
}

static struct look look_around(struct accept_share *share, bool room)
{
    const struct shared_published *published = share->shared->published;
    struct look look = { .room = room, .number = SHARE_NOBODY };
    uint32_t n = published->slot_n;

    for (uint32_t i = 0; i < n && i < SLOT_MAX; i++)
        if (is_other(share, i))
            look_at_slot(share, &look, i, published->slots[i].place % SLOT_MAX);
    return look;
}

enum share_verdict accept_share_judge(
    struct accept_share *share, uint32_t ours, bool yields, uint64_t now, uint32_t *to)
{
    struct look look = look_around(share, false);
    uint64_t mean = (look.clients + ours) / (look.n + 1), spread = mean / SPREAD;
    uint64_t fair = yields ? 2 : 1;

    assert(share->own != NULL);
    *to = look.number;
    share->least = look.n > 0 ? look.least : UINT32_MAX;
    if (look.n == 0)
        return SHARE_FAIR;
    if (ours >= look.least + (spread > fair ? spread : fair) &&
        token_bucket_take(&share->exact, &exact_rate, now))
        return SHARE_PASS;
    if (ours <= mean + (spread > ROUGH_LEAST ? spread : ROUGH_LEAST))
        return SHARE_FAIR;
    if (token_bucket_take(&share->rough, &rough_rate, now))
        return SHARE_PASS;
    if (!yields)
        return SHARE_FAIR;
    return token_bucket_take(&share->aside, &aside_rate, now) ? SHARE_ASIDE : SHARE_YIELD;
}

uint32_t accept_share_find_least(struct accept_share *share)
{
    assert(share->own != NULL);
    return look_around(share, false).number;
}

uint32_t accept_share_find_room(struct accept_share *share, uint64_t now)
{
    struct look look = look_around(share, true);

    assert(share->own != NULL);
    if (look.number == SHARE_NOBODY)
        return SHARE_NOBODY;
    if (share->refused && look.accepts == share->accepts &&
        !token_bucket_take(&share->again, &again_rate, now))
        return SHARE_NOBODY;
    share->refused = false;
    share->accepts = look.accepts;
    return look.number;
}

void accept_share_note_refusal(struct accept_share *share)
{
    share->refused = look_around(share, true).accepts == share->accepts;
}

void accept_share_note_answer(struct accept_share *share, uint32_t number)
{
    struct share_sibling *sibling = &share->siblings[number];

    assert(number < share->sibling_n && sibling->slot < SLOT_MAX);
    sibling->silent = heartbeat_now(&shared_slot_at(share->shared, sibling->slot)->heartbeat) ==
                      sibling->heartbeat;
}

int accept_share_passed(const struct accept_share *share, uint32_t *cursor)
{
    const struct shared_published *published = share->shared->published;

    while (*cursor < published->slot_n && *cursor < SLOT_MAX) {
        uint32_t i = (*cursor)++;
        const struct slot_load *load = &shared_slot_at(share->shared, i)->load;
        uint32_t passed = atomic_load_explicit(&load->passed, memory_order_acquire);

        if (is_other(share, i) && passed > 0 && passed <= INT32_MAX &&
            atomic_load_explicit(&load->to, memory_order_relaxed) == share->place % SLOT_MAX)
            return (int)passed - 1;
    }
    return -1;
}

void accept_share_publish_pass(struct accept_share *share, int fd, uint32_t to)
{
    struct slot_load *load = &share->own->load;

    assert(fd >= -1 && to != SHARE_NOBODY);
    atomic_store_explicit(&load->passed, 0, memory_order_relaxed);
    atomic_store_explicit(&load->to, to, memory_order_release);
    atomic_store_explicit(&load->passed, (uint32_t)(fd + 1), memory_order_release);
}
