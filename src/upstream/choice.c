/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the peers of a group in turn, and marks what becomes of the tries, as nginx does. */
#include "upstream/choice.h"

#include "base/compiler.h"
#include "upstream/balancer.h"
#include "upstream/zone.h"

#include <string.h>

/* Limit of tries to choose a peer while locks are taken from the worker. */
#define TRIES 8
/* A new time is 1 part in TIME_PARTS of an average. */
#define TIME_PARTS 16
/* A first byte later than this after the connect is slow. */
#define SLOW_MS 1000

static_assert(sizeof(struct choice) <= 56, "a choice has become dearer");

void choice_begin(struct choice *choice, struct upstream *upstream)
{
    const struct peers *peers = upstream->peers;

    CHECK_KIND(peers, PEERS_KIND);
    *choice = (struct choice) {
        .kind = CHOICE_KIND,
        .upstream = upstream,
        .left = peers->choosable,
        .version = peers->version,
        .connected_ms = CHOICE_NO_TIME,
        .first_byte_ms = CHOICE_NO_TIME,
    };
}

void choice_done(struct choice *choice)
{
    const struct memory *memory = choice_upstreams(choice)->memory;

    CHECK_KIND(choice, CHOICE_KIND);
    assert(choice->peer == NULL && !choice_waits(choice));
    choice->kind = 0;
    if (likely(choice->more == NULL))
        return;
    memory_release(memory, choice->more->tried);
    memory_release(memory, choice->more);
    choice->more = NULL;
}

struct choice_more *choice_make_more(struct choice *choice)
{
    if (choice->more != NULL)
        return choice->more;
    choice->more = memory_alloc(choice_upstreams(choice)->memory, sizeof(*choice->more));
    if (choice->more != NULL)
        *choice->more = (struct choice_more) { .waited_ms = { CHOICE_NO_TIME, CHOICE_NO_TIME },
            .given_up = WAIT_REASONS };
    return choice->more;
}

static void clear_tried(struct choice *choice, const struct peer *peer)
{
    uint32_t index = peer->index;

    if (index < 64)
        choice->tried &= ~(UINT64_C(1) << index);
    else if (choice_has_tried(choice, peer))
        choice->more->tried[(index - 64) / 64] &= ~(UINT64_C(1) << index % 64);
}

/* Sets the bit of an index from 64 on; -1 without memory. */
static NOINLINE int set_tried_more(struct choice *choice, uint32_t index)
{
    const struct memory *memory = choice_upstreams(choice)->memory;
    struct choice_more *more = choice_make_more(choice);
    uint32_t n = (choice->upstream->peers->index_n - 1) / 64, word = (index - 64) / 64;

    assert(index >= 64 && word < n);
    if (more == NULL)
        return -1;
    if (word >= more->tried_n) { /* makes room for the bits of all peers */
        uint64_t *words = memory_alloc(memory, n * sizeof(*words));

        if (words == NULL)
            return -1;
        memset(words, 0, n * sizeof(*words));
        if (more->tried_n > 0)
            memcpy(words, more->tried, more->tried_n * sizeof(*words));
        memory_release(memory, more->tried);
        more->tried = words;
        more->tried_n = n;
    }
    more->tried[word] |= UINT64_C(1) << index % 64;
    return 0;
}

static inline int set_tried(struct choice *choice, const struct peer *peer)
{
    if (unlikely(peer->index >= 64))
        return set_tried_more(choice, peer->index);
    choice->tried |= UINT64_C(1) << peer->index;
    return 0;
}

/* Clears the tried bits of indexes taken over by new peers. */
static COLD void follow_list(struct choice *choice)
{
    const struct peers *peers = choice->upstream->peers;

    choice->left = 0;
    for (unsigned i = 0; i < peers->n; i++) {
        const struct peer *peer = peers->list[i];

        if ((int32_t)(peer->born - choice->version) > 0)
            clear_tried(choice, peer);
        choice->left += !peer->is_off && !choice_has_tried(choice, peer);
    }
    choice->version = peers->version;
}

uint32_t peer_slow_weight(const struct choice *choice, const struct peer *peer)
{
    uint64_t weight = (uint64_t)peer->weight * PEER_WEIGHT_UNIT;
    uint64_t since = PEER_LOAD(peer->state->available_ms);

    assert(peer->weight >= 1 && peer->weight <= PEER_WEIGHT_MOST);
    if (peer->server->slow_start > 0 && since != 0) {
        uint64_t slow = (uint64_t)peer->server->slow_start;
        uint64_t age = peer_age(choice_now(choice), since);

        if (slow > UINT32_MAX) /* the product fits */
            slow = UINT32_MAX;
        if (age < slow)
            weight = 1 + (weight - 1) * age / slow;
    }
    return (uint32_t)weight;
}

/* Returns the only peer of the group, unless unusable; failures of an only peer do not count. */
static inline struct peer *choose_single(const struct choice *choice)
{
    struct peer *peer = choice->upstream->peers->list[0];

    CHECK_KIND(peer, PEER_KIND);
    return choice_has_tried(choice, peer) || peer_is_down(peer) || peer_is_full(peer) ? NULL : peer;
}

static struct peer *choose_balanced(struct choice *choice)
{
    const struct balancer *balancer = choice->upstream->balance.balancer;
    struct peer *peer = balancer != NULL ? balancer->choose(choice) : round_robin_choose(choice);

    assert(peer == NULL || (peer->backup == choice->backup && !choice_has_tried(choice, peer)));
    return peer;
}

static NOINLINE struct peer *choose_of_many(struct choice *choice)
{
    const struct peers *peers = choice->upstream->peers;
    uint64_t now_ms = choice_now(choice);
    struct peer *peer = choose_balanced(choice);

    if (peer == NULL && !choice->backup && peers->n > peers->primary_n) {
        choice->backup = true;
        peer = choose_balanced(choice);
    }
    if (peer == NULL)
        choice->backup = false; /* a waiting session may take a primary again */
    else if (peer_age(now_ms, PEER_LOAD(peer->state->checked_ms)) >
             (uint64_t)peer->server->fail_timeout)
        PEER_STORE(peer->state->checked_ms, now_ms);
    return peer;
}

static inline struct peer *choose_peer(struct choice *choice)
{
    return choice->upstream->peers->is_single ? choose_single(choice) : choose_of_many(choice);
}

static void add_conns(struct peer *peer, int64_t by)
{
    PEER_STORE(*peer->conns, (int64_t)((uint64_t)PEER_LOAD(*peer->conns) + (uint64_t)by));
}

COLD void choice_report_none(struct choice *choice)
{
    choice_upstreams(choice)->report(
        choice, LEVEL_ERROR, choice->upstream->name, "no live upstreams");
}

/* Chooses with the group locked. After a theft of the lock two workers may have got a peer's last
 * place (max_conns): both see the excess. */
static NOINLINE struct peer *choose_shared(struct choice *choice)
{
    const struct upstream *upstream = choice->upstream;

    assert(upstream->zone->header != NULL);
    for (int tries = 0; tries < TRIES; tries++) {
        struct zone_hold hold = { .lock = NULL };
        struct peer *peer;

        upstream_zone_lock(upstream->zone, upstream->peers->lock, &hold);
        peer = choose_peer(choice);
        if (peer != NULL)
            add_conns(peer, 1);
        if (likely(zone_lock_release(&hold)) || peer == NULL)
            return peer;
        atomic_thread_fence(memory_order_seq_cst);
        if (peer->server->max_conns == 0 || peer_conns(peer) <= peer->server->max_conns)
            return peer;
        add_conns(peer, -1);
    }
    return NULL;
}

static struct peer *choose_counted(struct choice *choice)
{
    struct peer *peer;

    if (unlikely(choice->upstream->zone != NULL))
        return choose_shared(choice);
    peer = choose_peer(choice);
    if (likely(peer != NULL))
        add_conns(peer, 1);
    return peer;
}

/* Adds the try to the peer's running tries, or removes it, for least_time with `inflight`. */
static NOINLINE void set_running(struct choice *choice, bool is_running)
{
    struct peer *peer = choice->peer;

    CHECK_KIND(peer, PEER_KIND);
    assert(choice->is_running != is_running && choice->upstream->balance.inflight);
    assert(is_running || (peer->running > 0 && peer->running_began_ms >= choice->began_ms));
    choice->is_running = is_running;
    peer->running += is_running ? 1u : -1u;
    peer->running_began_ms += is_running ? choice->began_ms : -(uint64_t)choice->began_ms;
}

/* Ends the running at the balancer's time. */
static inline void end_running_at(struct choice *choice, enum upstream_time time)
{
    if (unlikely(choice->is_running) && time == choice->upstream->balance.time)
        set_running(choice, false);
}

static_assert(FB_TRY_SKIPPED - FB_TRY_SERVED + 1 < STATS_TRY_ENDS, "the last is the master's");
static_assert(
    (int)PEER_TROUBLES == STATS_TROUBLES && UPSTREAM_TIME_LAST_BYTE + 1 == STATS_TRY_TIMES,
    "all have numbers");

static inline struct stats_tries *stats_of_try(const struct choice *choice)
{
    return choice->peer->server->stats.own;
}

/* Returns the duration of the try so far. */
static uint32_t time_so_far(const struct choice *choice)
{
    uint64_t ms = choice_now(choice) - choice->began_ms;

    return ms < CHOICE_NO_TIME ? (uint32_t)ms : CHOICE_NO_TIME - 1;
}

static inline void count_try_end(const struct choice *choice, fb_try_end how)
{
    struct stats_tries *stats = stats_of_try(choice);

    if (stats == NULL)
        return;
    if (choice->connected_ms != CHOICE_NO_TIME)
        stats_add_time(&stats->times[UPSTREAM_TIME_LAST_BYTE], time_so_far(choice));
    stats_add_end(&stats->ended[how - FB_TRY_SERVED]);
}

static inline fb_choice begin_choice_try(struct choice *choice, struct peer *peer)
{
    choice->peer = peer;
    choice->began_ms = choice_now(choice);
    choice->connected_ms = choice->first_byte_ms = CHOICE_NO_TIME;
    if (likely(stats_of_try(choice) != NULL))
        stats_add(&stats_of_try(choice)->begun, 1);
    return FB_CHOICE_SERVER;
}

/* Chooses the address of a directive, once a session. */
static inline fb_choice choose_plain(struct choice *choice, const struct peers *peers)
{
    if (choice->tried != 0)
        return FB_CHOICE_NONE;
    choice->tried = 1;
    choice->left = 0;
    return begin_choice_try(choice, peers->list[0]);
}

fb_choice choice_next(struct choice *choice)
{
    struct peers *peers = choice->upstream->peers;
    struct peer *peer;

    CHECK_KIND(choice, CHOICE_KIND);
    assert(choice->peer == NULL && peers->kind == PEERS_KIND);
    if (peers->is_plain)
        return choose_plain(choice, peers);
    if (choice->upstream->zone != NULL)
        peers_apply_operator(peers);
    if (unlikely(choice->version != peers->version))
        follow_list(choice);
    peer = choose_counted(choice);
    if (unlikely(peer == NULL))
        return FB_CHOICE_NONE;
    if (unlikely(set_tried(choice, peer) == -1)) {
        add_conns(peer, -1);
        return FB_CHOICE_NO_MEMORY;
    }
    choice->left -= choice->left > 0;
    peer->refs++;
    begin_choice_try(choice, peer);
    if (unlikely(choice->upstream->balance.inflight))
        set_running(choice, true);
    return FB_CHOICE_SERVER;
}

/* Forgets the failures of a peer that serves again, a fail_timeout after the last failure. */
static void mark_alive(const struct choice *choice, struct peer *peer)
{
    struct peer_state *state = peer->state;
    uint32_t fails = PEER_LOAD(state->fails);
    uint64_t now_ms = choice_now(choice);

    if (fails == 0 || peer_age(now_ms, PEER_LOAD(state->accessed_ms)) <=
                          peer_age(now_ms, PEER_LOAD(state->checked_ms)))
        return;
    if (peer->server->max_fails > 0 && fails >= peer->server->max_fails)
        PEER_STORE(state->available_ms, now_ms);
    PEER_STORE(state->fails, 0);
}

static COLD void mark_failed(struct choice *choice, struct peer *peer)
{
    uint32_t max_fails = peer->server->max_fails;
    struct peer_state *state = peer->state;
    uint32_t fails = PEER_LOAD(state->fails), lost = PEER_LOAD(state->lost_weight);
    uint32_t weight = peer->weight * PEER_WEIGHT_UNIT, less;

    fails += fails < UINT32_MAX;
    PEER_STORE(state->fails, fails);
    PEER_STORE(state->accessed_ms, choice_now(choice));
    PEER_STORE(state->checked_ms, choice_now(choice));
    atomic_fetch_add_explicit(&state->failures, 1, memory_order_relaxed);
    if (max_fails == 0)
        return;
    less = peer->weight / max_fails * PEER_WEIGHT_UNIT;
    PEER_STORE(state->lost_weight, lost < weight - less ? lost + less : weight);
    if (fails < max_fails)
        return;
    choice_upstreams(choice)->report(
        choice, LEVEL_WARN, peer->target.text, "upstream server temporarily disabled");
}

static NOINLINE void add_to_average(
    const struct choice *choice, enum upstream_time time, uint64_t ms)
{
    _Atomic uint32_t *average = &choice->peer->state->times[time];
    uint32_t most = UINT32_MAX / PEER_TIME_UNIT, before = PEER_LOAD(*average);
    uint64_t sample = (ms < most ? ms : most) * PEER_TIME_UNIT, after = sample;

    if (before != 0)
        after = ((uint64_t)before * (TIME_PARTS - 1) + sample) / TIME_PARTS;
    PEER_STORE(*average, after != 0 ? (uint32_t)after : 1);
}

/* Adds to the statistics, and to the average but for a single address. */
static inline void note_time(const struct choice *choice, enum upstream_time time, uint64_t ms)
{
    struct stats_tries *stats = stats_of_try(choice);

    if (!choice->upstream->is_single)
        add_to_average(choice, time, ms);
    if (likely(stats != NULL))
        stats_add_time(&stats->times[time], ms);
}

void choice_connected(struct choice *choice)
{
    struct peer *peer = choice->peer;

    CHECK_KIND(peer, PEER_KIND);
    choice->connected_ms = time_so_far(choice);
    note_time(choice, UPSTREAM_TIME_CONNECT, choice->connected_ms);
    end_running_at(choice, UPSTREAM_TIME_CONNECT);
    if (!choice->upstream->peers->is_single)
        mark_alive(choice, peer);
}

void choice_count_trouble(struct choice *choice, enum peer_trouble trouble)
{
    struct stats_tries *stats = stats_of_try(choice);

    if (stats != NULL)
        stats_add(&stats->troubles[trouble], 1);
    if (!choice->upstream->peers->is_plain)
        atomic_fetch_add_explicit(&choice->peer->state->troubles[trouble], 1, memory_order_relaxed);
}

/* Counts a server without an answer for SLOW_MS since the connect. */
static void note_slowness(struct choice *choice, uint32_t ms)
{
    if (unlikely(ms - choice->connected_ms >= SLOW_MS))
        choice_count_trouble(choice, PEER_SLOW);
}

void choice_first_byte(struct choice *choice)
{
    CHECK_KIND(choice->peer, PEER_KIND);
    if (choice->first_byte_ms != CHOICE_NO_TIME)
        return;
    choice->first_byte_ms = time_so_far(choice);
    note_time(choice, UPSTREAM_TIME_FIRST_BYTE, choice->first_byte_ms);
    note_slowness(choice, choice->first_byte_ms);
    end_running_at(choice, UPSTREAM_TIME_FIRST_BYTE);
}

void choice_note_silence(struct choice *choice)
{
    if (choice->connected_ms != CHOICE_NO_TIME && choice->first_byte_ms == CHOICE_NO_TIME)
        note_slowness(choice, time_so_far(choice));
}

void choice_watch(struct choice *choice)
{
    CHECK_KIND(choice->peer, PEER_KIND);
    assert(!choice->is_watched && !choice->upstream->peers->is_plain);
    choice->is_watched = 1;
    choice->peer->watched++;
    choice->upstream->peers->watched++;
}

/* Ends the try of a peer whose numbers are kept. */
static void end_counted(struct choice *choice, fb_try_end how)
{
    struct peers *peers = choice->upstream->peers;
    struct peer *peer = choice->peer;

    assert(peer->refs > 0);
    if (unlikely(choice->is_running))
        set_running(choice, false);
    if (unlikely(choice->is_watched)) {
        assert(peer->watched > 0 && peers->watched > 0);
        choice->is_watched = 0;
        peer->watched--;
        peers->watched--;
    }
    add_conns(peer, -1);
    if (how == FB_TRY_UNUSED) {
        clear_tried(choice, peer);
        choice->left++;
    } else if (how != FB_TRY_SKIPPED) {
        atomic_fetch_add_explicit(&peer->state->sessions, 1, memory_order_relaxed);
        if (how == FB_TRY_SERVED && choice->connected_ms != CHOICE_NO_TIME &&
            !choice->upstream->is_single)
            add_to_average(choice, UPSTREAM_TIME_LAST_BYTE, choice_now(choice) - choice->began_ms);
        if (!peers->is_single && how == FB_TRY_FAILED)
            mark_failed(choice, peer);
        else if (!peers->is_single)
            mark_alive(choice, peer);
    }
    choice->peer = NULL;
    peer_release(peers, peer);
}

void choice_end(struct choice *choice, fb_try_end how)
{
    assert(how >= FB_TRY_SERVED && how <= FB_TRY_SKIPPED);
    if (choice->peer == NULL)
        return;
    CHECK_KIND(choice->peer, PEER_KIND);
    count_try_end(choice, how);
    if (!choice->upstream->peers->is_plain) {
        end_counted(choice, how);
        return;
    }
    choice->peer = NULL;
    if (how == FB_TRY_UNUSED) {
        choice->tried = 0;
        choice->left = 1;
    }
}
