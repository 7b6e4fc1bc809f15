/* SPDX-License-Identifier: BSD-2-Clause */
/* Claims checks of servers, counts outcomes, and reports a server's change of state. */
#include "upstream/health.h"

#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "event/loop.h"
#include "upstream/peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Limit of how far a worker's clock, as of its turn, may be behind. */
#define BEHIND_MS 1000
/* Limit of how far ahead the due time of a different configuration's check is believed. */
#define AHEAD_MS 60000

static uint64_t health_now(const struct upstreams *upstreams)
{
    return upstreams->loop->clock.mono_ms;
}

static uint64_t mix_id(uint64_t hash, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)p)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Names a check in all configurations: a reload checks anew by a different check, or if mandatory
 * and not persistent. */
static uint64_t id_of(const struct upstreams *upstreams, const struct upstream_check *check)
{
    uint64_t hash = mix_id(UINT64_C(14695981039346656037), &check->port, sizeof(check->port));

    if (check->match_name != NULL)
        hash = mix_id(hash, check->match_name, strlen(check->match_name));
    if (check->mandatory && !check->persistent)
        hash = mix_id(hash, &upstreams->generation, sizeof(upstreams->generation));
    return hash | 1; /* even: the time when a worker began the state */
}

static struct health_state *health_state_of(
    const struct peer *peer, const struct upstream_check *check)
{
    assert(check->index < HEALTH_CHECKS_MOST);
    return &peer->state->checks[check->index];
}

/* Sets the peer's state to the worst state of all checks. */
static void combine_health(struct peers *peers, struct peer *peer)
{
    const struct upstream_check *check;
    uint32_t worst = PEER_HEALTH_UNCHECKED;

    for (check = peers->upstream->checks; check != NULL; check = check->next) {
        uint32_t health = PEER_LOAD(health_state_of(peer, check)->health);

        if (health > worst)
            worst = health < PEER_HEALTH_BAD ? health : PEER_HEALTH_BAD;
    }
    if (PEER_LOAD(peer->state->health) != worst)
        peers_set_health(peers, peer, (enum peer_health)worst);
}

/* Begins a check's state, in one worker, unless the state is of a newer configuration, in use;
 * whether the state belongs to the check now. */
static bool adopt_state(
    struct upstreams *upstreams, const struct peer *peer, const struct upstream_check *check)
{
    struct health_state *state = health_state_of(peer, check);
    uint64_t id = id_of(upstreams, check), before = atomic_load(&state->id);
    uint64_t now = health_now(upstreams), next = PEER_LOAD(state->next_ms);
    uint64_t idle_ms = (uint64_t)check->interval + HEALTH_SLACK_MS;
    bool may_adopt = before == 0 || upstreams->generation > PEER_LOAD(state->generation) ||
                     (next > now ? next - now > AHEAD_MS : now - next > idle_ms);

    if (before == id)
        return true;
    if (before != 0 && before % 2 == 0) /* a worker begins, or has died */
        may_adopt = peer_age(now, before / 2) > HEALTH_SLACK_MS;
    if (!may_adopt || !atomic_compare_exchange_strong(&state->id, &before, now * 2))
        return false;
    PEER_STORE(state->generation, upstreams->generation);
    PEER_STORE(state->passes, 0);
    PEER_STORE(state->misses, 0);
    PEER_STORE(state->health, check->mandatory ? PEER_HEALTH_CHECKING : PEER_HEALTH_UNCHECKED);
    PEER_STORE(state->next_ms, now);
    atomic_store(&state->id, id);
    return true;
}

void health_begin(struct peers *peers, struct peer *peer)
{
    const struct upstream_check *check;

    for (check = peers->upstream->checks; check != NULL; check = check->next)
        adopt_state(peers->upstreams, peer, check);
    if (peers->upstream->checks != NULL)
        combine_health(peers, peer);
}

static uint64_t greater_ms(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Claims a due check, or lowers *wait; an impossible due time is old, or damaged. */
static bool claim_check(struct upstreams *upstreams, const struct peer *peer,
    struct health_probe *probe, uint64_t *wait)
{
    const struct upstream_check *check = probe->check;
    struct health_state *state = health_state_of(peer, check);
    uint64_t now = health_now(upstreams), next = PEER_LOAD(state->next_ms);
    uint64_t interval = (uint64_t)check->interval,
             lost = (uint64_t)check->timeout + HEALTH_SLACK_MS,
             longest = greater_ms(interval + (uint64_t)check->jitter, lost);
    uint32_t below = check->jitter < UINT32_MAX ? (uint32_t)check->jitter + 1 : UINT32_MAX;

    assert(check->interval > 0 && check->timeout > 0);
    if (next > now && next - now <= longest + BEHIND_MS) {
        if (next - now < *wait)
            *wait = next - now;
        return false;
    }
    probe->due_ms = now + interval + (below > 1 ? upstreams->random(upstreams, below) : 0);
    probe->lease_ms = greater_ms(probe->due_ms, now + lost);
    return atomic_compare_exchange_strong(&state->next_ms, &next, probe->lease_ms);
}

static struct health_probe *create_probe(
    struct upstreams *upstreams, const struct health_probe *claimed, struct peer *peer)
{
    struct health_probe *probe = memory_alloc(upstreams->memory, sizeof(*probe));

    if (probe == NULL)
        return NULL;
    *probe = *claimed;
    assert(claimed->lease_ms >= claimed->due_ms);
    probe->kind = PROBE_KIND;
    probe->peer = peer;
    probe->target = peer->target;
    if (probe->check->port != 0 && probe->target.address.any.sa_family != AF_UNIX) {
        address_set_port(&probe->target.address, probe->check->port);
        address_format(&probe->target.address, true, probe->target.text);
    }
    probe->shown = (fb_probe) {
        .target = &probe->target,
        .timeout = (uint64_t)probe->check->timeout,
    };
    peer->refs++;
    LIST_INSERT_HEAD(&upstreams->probes, probe, link);
    return probe;
}

struct health_probe *health_claim(struct upstreams *upstreams, struct upstream *upstream,
    const struct upstream_check *check, uint64_t *wait)
{
    struct peers *peers = upstream->peers;
    struct health_probe claimed = { .upstream = upstream, .check = check };

    CHECK_KIND(peers, PEERS_KIND);
    assert(upstream->checks != NULL && check->index < HEALTH_CHECKS_MOST);
    if (upstream->zone != NULL)
        peers_apply_operator(peers);
    *wait = (uint64_t)check->interval;
    for (unsigned i = 0; i < peers->n; i++) {
        struct peer *peer = peers->list[i];
        struct health_probe *probe;

        if (peer->is_off)
            continue;
        if (!adopt_state(upstreams, peer, check)) {
            if (*wait > HEALTH_RETRY_MS)
                *wait = HEALTH_RETRY_MS;
            continue;
        }
        if (!claim_check(upstreams, peer, &claimed, wait))
            continue;
        probe = create_probe(upstreams, &claimed, peer);
        if (probe != NULL)
            *wait = 0;
        return probe;
    }
    return NULL;
}

static void log_outcome(struct upstreams *upstreams, const struct health_probe *probe,
    enum log_level level, const char *state, const char *doing, int error)
{
    const struct upstream_check *check = probe->check;
    char why[128] = "", port[16] = "", match[64] = "";

    if (error != 0)
        snprintf(why, sizeof(why), " (%d: %s)", error, strerror(error));
    if (check->port != 0)
        snprintf(port, sizeof(port), " port %u", (unsigned)check->port);
    if (check->match_name != NULL)
        snprintf(match, sizeof(match), " \"%s\"", check->match_name);
    log_write(upstreams->log, level, 0,
        "%s%s while %s, health check%s of peer %s in upstream \"%s\"%s", state, why, doing, match,
        probe->peer->target.text, probe->upstream->name, port);
}

static void count_up(_Atomic uint32_t *n)
{
    uint32_t before = PEER_LOAD(*n);

    PEER_STORE(*n, before < UINT32_MAX ? before + 1 : before);
}

/* Counts a passed or failed check; returns the next state. */
static uint32_t count_check(
    struct health_state *state, const struct upstream_check *check, bool passed)
{
    uint32_t health = PEER_LOAD(state->health);

    assert(check->passes > 0 && check->fails > 0);
    PEER_STORE(*(passed ? &state->misses : &state->passes), 0);
    count_up(passed ? &state->passes : &state->misses);
    atomic_fetch_add(&state->checks, 1);
    if (passed)
        return health >= PEER_HEALTH_BAD && PEER_LOAD(state->passes) < check->passes
                   ? PEER_HEALTH_BAD
                   : PEER_HEALTH_GOOD;
    atomic_fetch_add(&state->failures, 1);
    return PEER_LOAD(state->misses) >= check->fails ? PEER_HEALTH_BAD : health;
}

static void count_outcome(struct upstreams *upstreams, const struct health_probe *probe,
    bool passed, const char *doing, int error)
{
    struct health_state *state = health_state_of(probe->peer, probe->check);
    uint32_t before = PEER_LOAD(state->health);
    uint32_t health = count_check(state, probe->check, passed);

    PEER_STORE(state->last_ms, health_now(upstreams));
    PEER_STORE(state->health, health);
    combine_health(probe->upstream->peers, probe->peer);
    if (health == before) {
        if (!passed)
            log_outcome(upstreams, probe, LEVEL_INFO, "check failed", doing, error);
        return;
    }
    if (health == PEER_HEALTH_BAD) {
        atomic_fetch_add(&state->unhealthy, 1);
        log_outcome(upstreams, probe, LEVEL_WARN, "peer is unhealthy", doing, error);
    } else if (before >= PEER_HEALTH_CHECKING) {
        log_outcome(upstreams, probe, LEVEL_NOTICE, "peer is healthy", doing, error);
    }
}

void health_end(struct upstreams *upstreams, struct health_probe *probe, fb_probe_end how,
    const char *doing, int error)
{
    struct health_state *state = health_state_of(probe->peer, probe->check);
    uint64_t lease = probe->lease_ms, next = health_now(upstreams) + HEALTH_RETRY_MS;

    CHECK_KIND(probe, PROBE_KIND);
    assert(how >= FB_PROBE_PASSED && how <= FB_PROBE_UNUSED && doing != NULL);
    if (PEER_LOAD(state->next_ms) == lease) { /* unless it was taken for lost */
        if (how != FB_PROBE_UNUSED) {
            count_outcome(upstreams, probe, how == FB_PROBE_PASSED, doing, error);
            next = greater_ms(probe->due_ms, health_now(upstreams));
        }
        atomic_compare_exchange_strong(&state->next_ms, &lease, next);
    }
    probe->kind = 0;
    LIST_REMOVE(probe, link);
    peer_release(probe->upstream->peers, probe->peer);
    memory_release(upstreams->memory, probe);
}

void health_close(struct upstreams *upstreams)
{
    while (!LIST_EMPTY(&upstreams->probes))
        health_end(upstreams, LIST_FIRST(&upstreams->probes), FB_PROBE_UNUSED, "", 0);
}
