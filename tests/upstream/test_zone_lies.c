/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies about servers, written by a worker before its death, keep sessions away no longer than an
 * honest failure would: fail_timeout, or with health checks the time until the next checks. Then
 * all servers have their turns. */
#include "upstream/health.h"
#include "upstream/zoned.h"

#include "base/compiler.h"

#define SERVERS 3
#define FAIL_TIMEOUT 10000
/* Clocks of workers, and the checks of another configuration, are believed to be so far ahead. */
#define AHEAD 1000
#define CHECKS_AHEAD 60000
#define INTERVAL 5000
#define STEP 100
#define SESSIONS 30 /* in a row, until every server has served some */
#define TRIALS 400

/* A zone with an honest worker, and a dying worker. */
struct lies {
    struct zoned zoned;
    struct zoned_worker honest, liar;
    struct upstream_check check;
    bool checks;
};

static void add_servers(struct lies *lies, struct zoned_worker *worker, const char *balancer)
{
    struct upstream *upstream = &worker->group->upstream;

    upstream->balance.balancer = balancer_find(balancer);
    ck_assert_ptr_nonnull(upstream->balance.balancer);
    upstream->checks = lies->checks ? &lies->check : NULL;
    for (int i = 0; i < SERVERS; i++) {
        struct upstream_server *server = group_add(worker->group, 2);

        server->is_checked = lies->checks;
        server->slow_start = upstream->balance.balancer->takes_slow_start ? 1000 : 0;
        server->max_conns = 4;
    }
    group_open(worker->group);
}

static uint32_t draw_below(struct upstreams *upstreams, uint32_t below)
{
    static uint64_t state;

    (void)upstreams;
    return random_below(&state, below);
}

static void lies_start(struct lies *lies, const char *balancer, bool checks)
{
    *lies = (struct lies) { .checks = checks };
    lies->check = (struct upstream_check) {
        .interval = INTERVAL, .timeout = 2000, .fails = 1, .passes = 1, .mandatory = true
    };
    zoned_start(&lies->zoned, 4, NULL);
    zoned_begin(&lies->honest, &lies->zoned, 1, 1);
    zoned_begin(&lies->liar, &lies->zoned, 2, 1);
    add_servers(lies, &lies->honest, balancer);
    add_servers(lies, &lies->liar, balancer);
    lies->honest.group->upstreams.random = draw_below;
}

static struct peer_state *liar_state(struct lies *lies, unsigned server)
{
    return group_peer(lies->liar.group, server)->state;
}

/* Kills the liar. */
static void lies_bury(struct lies *lies)
{
    zoned_bury(&lies->liar);
    lies->liar.zone.row = calloc(lies->liar.zone.n, sizeof(*lies->liar.zone.row));
    group_close(&lies->liar.group);
    free(lies->liar.zone.row);
}

static void lies_stop(struct lies *lies)
{
    memory_log_take(&lies->zoned.declared.log);
    zoned_end(&lies->honest);
    zoned_stop(&lies->zoned);
}

/* Lets time pass, for checks to find all servers well. */
static void pass_time(struct lies *lies, uint64_t ms)
{
    struct group *group = lies->honest.group;
    struct health_probe *probe;
    uint64_t wait;

    for (; ms > 0; ms -= STEP) {
        group_wait(group, STEP);
        while (lies->checks && (probe = health_claim(&group->upstreams, &group->upstream,
                                    &lies->check, &wait)) != NULL)
            health_end(&group->upstreams, probe, FB_PROBE_PASSED, "connecting to upstream", 0);
    }
}

/* Begins sessions, all served; at least `least` by each server. */
static void expect_all_served(struct lies *lies, unsigned least)
{
    unsigned served[SERVERS] = { 0 };

    for (int i = 0; i < SESSIONS; i++) {
        char letter = group_session(lies->honest.group, FB_TRY_SERVED);

        ck_assert_msg(letter != '-', "session %d is not served", i);
        served[letter - 'a']++;
        pass_time(lies, STEP);
    }
    for (int i = 0; i < SERVERS; i++)
        ck_assert_msg(served[i] >= least, "server %d has served %u", i, served[i]);
}

START_TEST(failures_that_cannot_be_forgotten)
{
    struct lies lies;

    lies_start(&lies, "round_robin", false);
    for (unsigned i = 0; i < SERVERS; i++) {
        liar_state(&lies, i)->accessed_ms = UINT64_MAX;
        liar_state(&lies, i)->fails = UINT32_MAX;
        liar_state(&lies, i)->checked_ms = 0;
    }
    lies_bury(&lies);
    expect_all_served(&lies, SESSIONS / SERVERS / 2);
    lies_stop(&lies);
}
END_TEST

/* Returns a number that a field of 64 bits might hold, or should never hold. */
static uint64_t draw(uint64_t *random, uint64_t now)
{
    const uint64_t values[] = { 0, 1, 2, 3, 4, now - FAIL_TIMEOUT, now - 1, now, now + 1,
        now + AHEAD, now + AHEAD + 1, now + CHECKS_AHEAD, now + CHECKS_AHEAD + 1, now * 2,
        (now + AHEAD) * 2, UINT32_MAX, UINT32_MAX - 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX,
        UINT64_MAX - 1, next_random(random) };

    return values[random_below(random, countof(values))];
}

static void lie_about_check(struct health_state *check, uint64_t *random, uint64_t now)
{
    if (random_below(random, 2) == 0)
        check->id = draw(random, now);
    check->generation = (uint32_t)draw(random, now);
    check->next_ms = draw(random, now);
    check->last_ms = draw(random, now);
    check->health = (uint32_t)draw(random, now);
    check->passes = (uint32_t)draw(random, now);
    check->misses = (uint32_t)draw(random, now);
}

static void lie_about(struct lies *lies, unsigned server, uint64_t *random)
{
    struct peer_state *state = liar_state(lies, server);
    uint64_t now = lies->liar.group->loop.clock.mono_ms;

    state->current_weight = (int64_t)draw(random, now);
    state->checked_ms = draw(random, now);
    state->accessed_ms = draw(random, now);
    state->available_ms = draw(random, now);
    state->fails = (uint32_t)draw(random, now);
    state->lost_weight = (uint32_t)draw(random, now);
    state->health = (uint32_t)draw(random, now);
    for (unsigned i = 0; i < countof(state->times); i++)
        state->times[i] = (uint32_t)draw(random, now);
    for (unsigned i = 0; i < HEALTH_CHECKS_MOST; i++)
        lie_about_check(&state->checks[i], random, now);
    *group_peer(lies->liar.group, server)->conns += (int64_t)random_below(random, 8) << 31;
}

static const struct {
    const char *balancer;
    bool checks;
} groups[] = {
    { "round_robin", false },
    { "least_conn", false },
    { "least_time", false },
    { "random", false },
    { "hash", false },
    { "round_robin", true },
    { "least_time", true },
};

/* Any lie, about a single server or about all. */
START_TEST(lies_end_with_the_liar)
{
    uint64_t random = random_seed() + (uint64_t)_i;

    for (int trial = 0; trial < TRIALS; trial++) {
        bool checks = groups[_i].checks;
        unsigned n = 1 + random_below(&random, SERVERS);
        struct lies lies;

        lies_start(&lies, groups[_i].balancer, checks);
        pass_time(&lies, STEP);
        for (unsigned i = 0; i < n; i++)
            lie_about(&lies, i, &random);
        lies_bury(&lies);
        pass_time(&lies, FAIL_TIMEOUT + AHEAD + (checks ? CHECKS_AHEAD + INTERVAL : 0) + STEP);
        expect_all_served(&lies, 0);
        pass_time(&lies, FAIL_TIMEOUT * 10); /* least_time asks a slow server again */
        expect_all_served(&lies, 1);
        lies_stop(&lies);
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, failures_that_cannot_be_forgotten);
    tcase_add_loop_test(tcase, lies_end_with_the_liar, 0, countof(groups));
}

TEST_MAIN("zone lies", add_tests)
