/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the fixture that all levels share: simulation, log, memory, turns. Levels are
 * started in fixture_LEVEL.c. */
#include "support/fixture.h"
#include "session/stream.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* A loop with more turns in a row without a pause spins. */
#define TURNS_MAX 100000

static void fail_of_fault(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

static void *counted_alloc(const struct memory *memory, size_t n)
{
    struct fixture_memory *counted = container_of(memory, struct fixture_memory, memory);

    if (counted->until_failure == 0 && counted->failures < counted->failures_max) {
        counted->failures++;
        errno = ENOMEM;
        return NULL;
    }
    if (counted->until_failure != UINT_MAX && counted->until_failure > 0)
        counted->until_failure--;
    counted->blocks++;
    return malloc(n);
}

static void counted_release(const struct memory *memory, void *p)
{
    container_of(memory, struct fixture_memory, memory)->blocks -= p != NULL;
    free(p);
}

void fixture_init_memory(struct fixture_memory *memory)
{
    *memory = (struct fixture_memory) {
        .memory = { .alloc = counted_alloc, .release = counted_release },
        .until_failure = UINT_MAX,
        .failures_max = UINT_MAX,
    };
}

static void turn_loop(struct fixture *fixture, int timeout)
{
    struct loop *loop = fixture->loop;

    loop_promote(loop);
    loop_wait(loop, timeout);
    loop_run(loop, QUEUE_ACCEPT);
    timers_run(&loop->timers);
    loop_run(loop, QUEUE_NORMAL);
}

struct fixture *fixture_create(struct sim *sim)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    ck_assert_ptr_nonnull(fixture);
    fixture->sim_borrowed = sim != NULL;
    fixture->sim = sim != NULL ? sim : sim_create();
    fixture->simulated = true;
    fixture->loop = &fixture->parts.stream.net.loop;
    fixture->turn = turn_loop;
    fixture->counters = &fixture->own_counters;
    fixture->master = -1;
    fixture->sim->on_fault = fail_of_fault;
    memory_log_open(&fixture->log, LEVEL_INFO);
    fixture_init_memory(&fixture->memory);
    return fixture;
}

const struct mechanism *fixture_mechanism(const struct fixture *fixture, enum fixture_events events)
{
    return events == FIXTURE_EDGE ? &fixture->sim->edge : &fixture->sim->level;
}

struct net_options fixture_net_options(
    struct fixture *fixture, const struct mechanism *mechanism, uint32_t connections)
{
    return (struct net_options) {
        .connections_max = connections,
        .mechanism = mechanism,
        .mechanism_values = mechanism_defaults(mechanism),
        .log = &fixture->log.log,
        .counters = fixture->counters,
        .heartbeat = &fixture->heartbeat,
        .lingering_timeout = FIXTURE_LINGERING_MS,
        .memory = &fixture->memory.memory,
    };
}

void fixture_stop_loop(struct fixture *fixture)
{
    fixture->stop_parts(fixture);
    memory_log_close(&fixture->log);
    free(fixture);
}

void fixture_stop(struct fixture *fixture)
{
    struct sim *sim = fixture->sim;
    bool borrowed = fixture->sim_borrowed;

    sim->on_fault = fail_of_fault;
    if (fixture->net != NULL && fixture->worker == NULL)
        fixture_run(fixture);
    ck_assert_str_eq(fixture_logged(fixture), "");
    fixture_stop_loop(fixture);
    if (!borrowed)
        sim_destroy(&sim);
}

/* Check functions of whole structures are called from here: of the loop, the net and the worker. */
void fixture_check(const struct fixture *fixture)
{
    loop_check(fixture->loop);
    if (fixture->stream != NULL)
        session_check_all(fixture->stream); /* checks its net too */
    else if (fixture->net != NULL)
        net_check(fixture->net);
    if (fixture->worker != NULL && fixture->worker->phase < WORKER_ENDING)
        worker_check(fixture->worker);
}

void fixture_turn_waiting(struct fixture *fixture, int timeout)
{
    fixture->turn(fixture, timeout);
    fixture_check(fixture);
}

void fixture_turn(struct fixture *fixture)
{
    fixture_turn_waiting(fixture, 0);
}

static bool has_work(const struct fixture *fixture)
{
    if (!fixture->simulated)
        return !TAILQ_EMPTY(&fixture->loop->queues[QUEUE_NEXT]);
    return fixture->sim->reported > 0 || !sim_idle(fixture->loop);
}

void fixture_run(struct fixture *fixture)
{
    unsigned turns = 0;

    do {
        fixture_turn(fixture);
        test_require(++turns < TURNS_MAX);
    } while (has_work(fixture));
}

void fixture_pass(struct fixture *fixture, uint64_t ms)
{
    sim_pass(fixture->sim, ms);
    fixture_run(fixture);
}

void fixture_settle(struct fixture *fixture)
{
    net_flush(fixture->net);
}

void fixture_end_all(struct fixture *fixture)
{
    net_fail_all(fixture->net, FB_DRAINED);
}

const char *fixture_logged_all(struct fixture *fixture)
{
    return memory_log_take(&fixture->log);
}

const char *fixture_logged(struct fixture *fixture)
{
    char *text = fixture->log.text, *to = text;

    memory_log_take(&fixture->log);
    for (char *line = text, *next; *line != '\0'; line = next) {
        size_t n = strcspn(line, "\n") + 1;
        char *start = memmem(line, n, " connected to ", 14);

        next = line + n;
        if (start != NULL)
            continue;
        memmove(to, line, n);
        to += n;
    }
    *to = '\0';
    return text;
}

uint64_t fixture_count(const struct fixture *fixture, enum counter counter)
{
    return fixture->counters->n[counter];
}

unsigned fixture_blocks_held(const struct fixture *fixture)
{
    return fixture->memory.blocks - 1 /* the scratch buffer */;
}

void fixture_check_gauges(const struct fixture *fixture)
{
    for (int i = COUNTER_GAUGES; i < COUNTERS; i++)
        ck_assert_msg(fixture->counters->n[i] == 0, "gauge %d has not returned to zero", i);
}
