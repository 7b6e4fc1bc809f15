/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a script once, as one variant: sends and expects the bytes of its steps, on behalf of up to
 * FB_TEST_PEERS peers. After the first failure no further step is run. */
#include "kit/expect.h"
#include "kit/tls.h"

#include <inttypes.h>

/* A client that sends byte by byte sends so many; what a script says beyond comes in pieces. */
#define SINGLE_MOST 2000
#define PIECE 509

static void become_client(struct kit_run *run, uint64_t n)
{
    kit_run_choose_peer(run, kit_third_of(n, 0));
    if (run->peers[run->now] != NULL)
        return;
    kit_run_add_peer(run, fb_test_connect_to(run->test, kit_third_of(n, 1), kit_third_of(n, 2)));
    fb_test_run(run->test);
}

static void become_server(struct kit_run *run, const fb_test_step *step)
{
    fb_test_peer *peer = fb_test_accept(fb_test_serve(run->test, step->p, FB_TEST_ACCEPTS));

    kit_run_choose_peer(run, step->n);
    if (peer != NULL)
        kit_run_add_peer(run, peer);
    else
        kit_run_fail(run, "nothing is connected to %s", (const char *)step->p);
}

static void say_bytes(struct kit_run *run, fb_bytes bytes)
{
    if (bytes.n == 0)
        return;
    fb_test_say(kit_run_peer(run), bytes.p, bytes.n);
    fb_test_run(run->test);
}

static void say_script_bytes(struct kit_run *run, fb_bytes bytes)
{
    uint64_t cut = run->variant->cut;

    assert(cut == 0 || !run->variant->bytes);
    if (run->variant->bytes) {
        for (size_t i = 0, n; i < bytes.n; i += n) {
            n = run->said + i < SINGLE_MOST ? 1 : PIECE;
            if (n > bytes.n - i)
                n = bytes.n - i;
            say_bytes(run, (fb_bytes) { bytes.p + i, n });
        }
    } else if (cut > run->said && cut - run->said < bytes.n) {
        size_t n = (size_t)(cut - run->said);

        say_bytes(run, (fb_bytes) { bytes.p, n });
        say_bytes(run, (fb_bytes) { bytes.p + n, bytes.n - n });
    } else {
        say_bytes(run, bytes);
    }
    run->said += bytes.n;
}

/* Kills a worker, unless the script has, and starts a successor. */
static void kill_worker(fb_test *test, unsigned worker)
{
    if (fb_test_worker_at(test, worker, NULL) != NULL)
        fb_test_kill(test, worker);
    if (fb_test_worker_at(test, worker, NULL) == NULL)
        fb_test_replace(test, worker);
}

static void end_variant(struct kit_run *run)
{
    switch (run->variant->ending) {
    case KIT_RESETS:
        fb_test_reset(kit_run_peer(run));
        break;
    case KIT_SHUTS:
        fb_test_shut(kit_run_peer(run));
        break;
    default:
        kill_worker(run->test, run->variant->worker);
    }
    run->over = true;
}

static void pass_time(struct kit_run *run, uint64_t ms)
{
    kit_run_each_peer(run, kit_run_resume); /* unread output might time out */
    fb_test_pass(run->test, ms);
    kit_run_each_peer(run, kit_run_pause);
}

static unsigned every_or(unsigned worker)
{
    return worker == (FB_TEST_EVERY & 0xffff) ? FB_TEST_EVERY : worker;
}

/* Runs a step that changes the machine or a server. */
static void change_machine(struct kit_run *run, const fb_test_step *step)
{
    fb_test *test = run->test;
    uint64_t n = step->n;

    switch (step->act) {
    case FB_TEST_ACT_KILL:
        fb_test_kill(test, (unsigned)n);
        break;
    case FB_TEST_ACT_REPLACE:
        if (fb_test_replace(test, (unsigned)n) == -1)
            kit_run_fail(run, "worker %u could not start", (unsigned)n);
        break;
    case FB_TEST_ACT_DRAIN_WORKER:
        fb_test_drain_worker(test, kit_third_of(n, 0), n >> 16);
        break;
    case FB_TEST_ACT_LINK:
        fb_test_link(test, every_or(kit_third_of(n, 0)), every_or(kit_third_of(n, 1)),
            (fb_test_way)kit_third_of(n, 2));
        break;
    case FB_TEST_ACT_NAME:
        fb_test_name(test, step->p);
        break;
    case FB_TEST_ACT_NAMES:
        fb_test_names(test, (fb_test_reply)n);
        break;
    case FB_TEST_ACT_KEEPER:
        fb_test_keeper(test, (fb_test_keeping)n);
        break;
    case FB_TEST_ACT_REPLY:
        fb_test_serve(test, step->p, (fb_test_reply)n);
        break;
    default:
        kit_misused("step %zu: there is no act %" PRIu32, run->step, step->act);
    }
}

static void run_handshake_step(struct kit_run *run, const fb_test_step *step)
{
    fb_test_peer *peer = kit_run_peer(run);
    bool refused = step->act == FB_TEST_ACT_TLS_REFUSED, done;

    kit_run_resume(run, peer);
    done = fb_test_tls(peer, step->p) == 0;
    kit_run_pause(run, peer);
    if (refused ? kit_tls_step(peer->tls) != TLS_FAILED
                : !done && run->test->keeper != FB_TEST_KEEPER_LATE)
        kit_run_fail(run, "the TLS handshake %s: %s", refused ? "has not failed" : "is not done",
            kit_tls_text(peer->tls));
}

/* Runs a step of a peer with TLS; false: the step is of no such kind. */
static bool run_tls_step(struct kit_run *run, const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_TLS:
    case FB_TEST_ACT_TLS_REFUSED:
        run_handshake_step(run, step);
        return true;
    case FB_TEST_ACT_KEY_UPDATE:
        fb_test_key_update(kit_run_peer(run), step->n != 0);
        break;
    case FB_TEST_ACT_TRUNCATE:
        fb_test_truncate(kit_run_peer(run));
        break;
    case FB_TEST_ACT_ALERT:
        fb_test_alert(kit_run_peer(run), (unsigned)step->n);
        break;
    default:
        return false;
    }
    fb_test_run(run->test);
    return true;
}

/* Runs a step of the current peer, or changes the peer, or anything else but an expectation. */
static void run_peer_step(struct kit_run *run, const fb_test_step *step)
{
    assert(!run->over && run->step < run->script->n);
    switch (step->act) {
    case FB_TEST_ACT_SAY:
        say_script_bytes(run, (fb_bytes) { step->p, (size_t)step->n });
        break;
    case FB_TEST_ACT_SHUT:
        fb_test_shut(kit_run_peer(run));
        fb_test_run(run->test);
        break;
    case FB_TEST_ACT_RESET:
        fb_test_reset(kit_run_peer(run));
        fb_test_run(run->test);
        break;
    case FB_TEST_ACT_PEER:
        kit_run_choose_peer(run, step->n);
        kit_run_peer(run);
        break;
    case FB_TEST_ACT_CLIENT:
        become_client(run, step->n);
        break;
    case FB_TEST_ACT_SERVER:
        become_server(run, step);
        break;
    case FB_TEST_ACT_PASS:
        kit_run_peer(run);
        pass_time(run, step->n);
        break;
    case FB_TEST_ACT_DRAIN:
        kit_run_peer(run);
        fb_test_drain(run->test, step->n);
        break;
    default:
        if (!run_tls_step(run, step))
            change_machine(run, step);
    }
}

static void run_steps(struct kit_run *run)
{
    const struct kit_script *script = run->script;
    const struct kit_variant *variant = run->variant;

    for (size_t i = 0; i < script->n && !run->over; i++) {
        const fb_test_step *step = &script->steps[i];
        bool ends = variant->ending != KIT_RUNS_TO_END && i == variant->step;

        run->step = i;
        if (ends && variant->half)
            say_bytes(run, (fb_bytes) { step->p, (size_t)step->n / 2 });
        if (ends)
            end_variant(run);
        else if (!kit_run_expect(run, step))
            run_peer_step(run, step);
    }
}

/* Opens the servers of all steps, so that the protocol may connect before the step comes. */
static void open_servers(const struct kit_run *run)
{
    for (size_t i = 0; i < run->script->n; i++)
        if (run->script->steps[i].act == FB_TEST_ACT_SERVER)
            fb_test_serve(run->test, run->script->steps[i].p, FB_TEST_ACCEPTS);
}

/* Starts the test of a variant. On failure `test` stays NULL, and `outcome` is final. */
static void start_variant(struct kit_run *run, struct kit_outcome *outcome)
{
    const struct kit_variant *variant = run->variant;
    struct kit_start start = {
        .protocol = run->script->protocol,
        .options = run->script->options,
        .variant = variant->name,
        .refuses = variant->refuses_start,
        .after = variant->after,
    };

    run->test = kit_test_start(&start);
    outcome->refused = start.refused;
    if (run->test == NULL) {
        outcome->failures = start.refused ? start.faults : 1;
        return;
    }
    if (variant->trouble)
        kit_trouble(run->test, variant->seed);
    if (variant->refuses)
        fb_test_refuse_memory(run->test, variant->after, 1);
    if (variant->loses)
        run->test->loss_at = variant->after + 1;
}

struct kit_outcome kit_script_run(
    const struct kit_script *script, const struct kit_variant *variant)
{
    struct kit_run run = { .script = script, .variant = variant };
    struct kit_outcome outcome = { .failures = 1 };

    assert(variant->ending == KIT_RUNS_TO_END || variant->step < script->n);
    start_variant(&run, &outcome);
    if (run.test == NULL)
        return outcome;
    open_servers(&run);
    run_steps(&run);
    kit_run_check_heard(&run);
    outcome.allocations = fb_test_allocations(run.test);
    outcome.messages = run.test->message_n;
    outcome.refused = outcome.refused || run.test->memory.refused > 0 || run.test->loss_n > 0;
    outcome.failures = run.failures + fb_test_end(&run.test);
    return outcome;
}
