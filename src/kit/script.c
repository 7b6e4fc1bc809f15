/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a script once, as one variant: sends and expects the bytes of its steps, on behalf of up to
 * FB_TEST_PEERS peers. After the first failure no further step is run. A variant that ends early or
 * lacks memory may fail a step; the bytes that its peers have received until then are checked all
 * the same. */
#include "kit/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kit_run_is_cut_short(const struct kit_run *run)
{
    return run->variant->refuses || run->variant->refuses_start || run->variant->loses ||
           run->variant->ending != KIT_RUNS_TO_END;
}

static void PRINTF_FORMAT(2, 3) fail_step(struct kit_run *run, const char *format, ...)
{
    va_list args;

    run->over = true;
    if (kit_run_is_cut_short(run))
        return;
    run->failures++;
    fprintf(stderr, "%s: step %zu: ", run->test->label, run->step);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Peers */

static void pause_peer(const struct kit_run *run, fb_test_peer *peer)
{
    if (run->variant->pausing && peer != NULL)
        fb_test_take(peer, 0);
}

void kit_run_resume(const struct kit_run *run, fb_test_peer *peer)
{
    if (!run->variant->pausing || peer == NULL)
        return;
    fb_test_take(peer, 1);
    fb_test_run(run->test);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(run->test);
}

void kit_run_each_peer(
    const struct kit_run *run, void (*visit)(const struct kit_run *run, fb_test_peer *peer))
{
    for (unsigned i = 0; i < FB_TEST_PEERS; i++)
        visit(run, run->peers[i]);
}

static fb_test_peer *add_peer(struct kit_run *run, fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    assert(run->now < FB_TEST_PEERS);
    if (run->variant->window > 0)
        peer->socket->send_most = run->variant->window;
    pause_peer(run, peer);
    run->peers[run->now] = peer;
    run->taken[run->now] = 0;
    return peer;
}

static fb_test_peer *current_peer(struct kit_run *run)
{
    fb_test_peer *peer = run->peers[run->now];

    if (peer == NULL) {
        peer = add_peer(run, fb_test_connect(run->test));
        fb_test_run(run->test);
    }
    return peer;
}

static void choose_peer(struct kit_run *run, uint64_t i)
{
    if (i >= FB_TEST_PEERS)
        kit_misused("step %zu: peers are numbered from 0 to %d", run->step, FB_TEST_PEERS - 1);
    run->now = (unsigned)i;
}

static void become_client(struct kit_run *run, uint64_t n)
{
    choose_peer(run, kit_third_of(n, 0));
    if (run->peers[run->now] != NULL)
        return;
    add_peer(run, fb_test_connect_to(run->test, kit_third_of(n, 1), kit_third_of(n, 2)));
    fb_test_run(run->test);
}

static void become_server(struct kit_run *run, const fb_test_step *step)
{
    fb_test_peer *peer = fb_test_accept(fb_test_serve(run->test, step->p, FB_TEST_ACCEPTS));

    choose_peer(run, step->n);
    if (peer != NULL)
        add_peer(run, peer);
    else
        fail_step(run, "nothing is connected to %s", (const char *)step->p);
}

/* Steps that send, and other actions */

static void say_bytes(struct kit_run *run, fb_bytes bytes)
{
    if (bytes.n == 0)
        return;
    fb_test_say(current_peer(run), bytes.p, bytes.n);
    fb_test_run(run->test);
}

static void say_in_pieces(struct kit_run *run, fb_bytes bytes)
{
    uint64_t cut = run->variant->cut;

    assert(cut == 0 || !run->variant->bytes);
    if (run->variant->bytes) {
        for (size_t i = 0; i < bytes.n; i++)
            say_bytes(run, (fb_bytes) { bytes.p + i, 1 });
    } else if (cut > run->said && cut - run->said < bytes.n) {
        size_t n = (size_t)(cut - run->said);

        say_bytes(run, (fb_bytes) { bytes.p, n });
        say_bytes(run, (fb_bytes) { bytes.p + n, bytes.n - n });
    } else {
        say_bytes(run, bytes);
    }
    run->said += bytes.n;
}

/* Kills a worker, unless the script has, and starts another in its place. */
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
        fb_test_reset(current_peer(run));
        break;
    case KIT_SHUTS:
        fb_test_shut(current_peer(run));
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
    kit_run_each_peer(run, pause_peer);
}

static unsigned every_or(unsigned worker)
{
    return worker == (FB_TEST_EVERY & 0xffff) ? FB_TEST_EVERY : worker;
}

/* Runs a step that changes a worker, or the ways between them; false when the step is of another
 * kind. */
static bool change_machine(struct kit_run *run, const fb_test_step *step)
{
    uint64_t n = step->n;

    switch (step->act) {
    case FB_TEST_ACT_KILL:
        fb_test_kill(run->test, (unsigned)n);
        return true;
    case FB_TEST_ACT_REPLACE:
        if (fb_test_replace(run->test, (unsigned)n) == -1)
            fail_step(run, "worker %u could not start", (unsigned)n);
        return true;
    case FB_TEST_ACT_DRAIN_WORKER:
        fb_test_drain_worker(run->test, kit_third_of(n, 0), n >> 16);
        return true;
    case FB_TEST_ACT_LINK:
        fb_test_link(run->test, every_or(kit_third_of(n, 0)), every_or(kit_third_of(n, 1)),
            (fb_test_way)kit_third_of(n, 2));
        return true;
    default:
        return false;
    }
}

/* Steps that expect */

static fb_bytes heard_bytes(struct kit_run *run)
{
    fb_bytes all = fb_test_heard(current_peer(run));
    size_t taken = run->taken[run->now];

    assert(taken <= all.n);
    return (fb_bytes) { all.p + taken, all.n - taken };
}

static void expect_bytes(struct kit_run *run, const fb_test_step *step)
{
    fb_bytes wanted = { step->p, (size_t)step->n }, found;

    kit_run_resume(run, current_peer(run));
    found = heard_bytes(run);
    if (found.n > wanted.n)
        found.n = wanted.n;
    if (found.n == wanted.n && (wanted.p == NULL || memcmp(found.p, wanted.p, wanted.n) == 0)) {
        run->taken[run->now] += wanted.n;
        pause_peer(run, current_peer(run));
        return;
    }
    run->over = true;
    if (kit_run_is_cut_short(run))
        return;
    if (wanted.p == NULL) {
        fail_step(run, "expected %zu bytes, heard %zu", wanted.n, found.n);
        return;
    }
    run->failures++;
    kit_report_difference(run->test->label, run->step, wanted, heard_bytes(run));
}

static int has_heard(fb_test *test, void *arg)
{
    struct kit_run *run = arg;

    (void)test;
    return heard_bytes(run).n >= (run->script->steps[run->step].n & UINT32_MAX);
}

/* Lets time pass until the peer has received what the step expects. */
static void expect_within(struct kit_run *run, const fb_test_step *step)
{
    fb_test_step bytes = { FB_TEST_ACT_EXPECT, step->p, step->n & UINT32_MAX };

    kit_run_resume(run, current_peer(run));
    fb_test_pass_until(run->test, has_heard, run, step->n >> 32);
    expect_bytes(run, &bytes);
}

bool kit_run_expect_no_more(struct kit_run *run)
{
    fb_bytes more;

    kit_run_resume(run, current_peer(run));
    more = heard_bytes(run);
    if (more.n == 0)
        return true;
    run->over = true;
    if (!kit_run_is_cut_short(run)) {
        run->failures++;
        kit_report_surplus(run->test->label, run->step, more);
    }
    return false;
}

static void expect_closed(struct kit_run *run)
{
    fb_test_peer *peer = current_peer(run);

    if (!kit_run_expect_no_more(run))
        return;
    if (!fb_test_is_closed(peer) && fb_test_has_ended(peer))
        fb_test_shut(peer); /* a client that reads the end closes */
    if (!fb_test_is_closed(peer))
        fail_step(run, "expected the connection to be closed, it is open");
    else if (fb_test_was_reset(peer))
        fail_step(run, "expected the connection to be closed, it was broken");
}

static int has_closed(fb_test *test, void *arg)
{
    struct kit_run *run = arg;

    (void)test;
    return fb_test_has_ended(current_peer(run));
}

static void expect_closed_within(struct kit_run *run, uint64_t ms)
{
    kit_run_resume(run, current_peer(run));
    fb_test_pass_until(run->test, has_closed, run, ms);
    expect_closed(run);
}

static void expect_line(struct kit_run *run, const fb_test_step *step)
{
    char *found = NULL;

    kit_run_each_peer(run, kit_run_resume);
    if (!kit_run_has_line(run, step, &found))
        fail_step(run, "expected the line \"%s\" in the access log, found \"%s\"",
            (const char *)step->p, found);
    kit_run_each_peer(run, pause_peer);
    free(found);
}

/* Runs a step that expects something; false when the step is of another kind. */
static bool run_expectation(struct kit_run *run, const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        expect_bytes(run, step);
        return true;
    case FB_TEST_ACT_EXPECT_WITHIN:
        expect_within(run, step);
        return true;
    case FB_TEST_ACT_EXPECT_END:
        if (kit_run_expect_no_more(run) && !fb_test_has_ended(current_peer(run)))
            fail_step(run, "expected the end of what is said, it may go on");
        return true;
    case FB_TEST_ACT_EXPECT_CLOSED:
        expect_closed(run);
        return true;
    case FB_TEST_ACT_EXPECT_CLOSED_WITHIN:
        expect_closed_within(run, step->n);
        return true;
    case FB_TEST_ACT_EXPECT_LOG:
        expect_line(run, step);
        return true;
    case FB_TEST_ACT_EXPECT_RESET:
        if (kit_run_expect_no_more(run) && !fb_test_was_reset(current_peer(run)))
            fail_step(run, "expected the connection to be broken, it is %s",
                fb_test_is_closed(current_peer(run)) ? "closed" : "open");
        return true;
    default:
        return false;
    }
}

/* Runs a step that changes the peer, or chooses another one; false when the step is of another
 * kind. */
static bool run_peer_step(struct kit_run *run, const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_SAY:
        say_in_pieces(run, (fb_bytes) { step->p, (size_t)step->n });
        return true;
    case FB_TEST_ACT_SHUT:
        fb_test_shut(current_peer(run));
        fb_test_run(run->test);
        return true;
    case FB_TEST_ACT_RESET:
        fb_test_reset(current_peer(run));
        fb_test_run(run->test);
        return true;
    case FB_TEST_ACT_PEER:
        choose_peer(run, step->n);
        current_peer(run);
        return true;
    case FB_TEST_ACT_CLIENT:
        become_client(run, step->n);
        return true;
    case FB_TEST_ACT_SERVER:
        become_server(run, step);
        return true;
    default:
        return false;
    }
}

static void run_step(struct kit_run *run, const fb_test_step *step)
{
    assert(!run->over && run->step < run->script->n);
    if (run_expectation(run, step) || run_peer_step(run, step) || change_machine(run, step))
        return;
    switch (step->act) {
    case FB_TEST_ACT_PASS:
        current_peer(run);
        pass_time(run, step->n);
        break;
    case FB_TEST_ACT_DRAIN:
        current_peer(run);
        fb_test_drain(run->test, step->n);
        break;
    case FB_TEST_ACT_NAME:
        fb_test_name(run->test, step->p);
        break;
    case FB_TEST_ACT_NAMES:
        fb_test_names(run->test, (fb_test_reply)step->n);
        break;
    case FB_TEST_ACT_REPLY:
        fb_test_serve(run->test, step->p, (fb_test_reply)step->n);
        break;
    default:
        kit_misused("step %zu: there is no act %" PRIu32, run->step, step->act);
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
        else
            run_step(run, step);
    }
}

/* Opens the servers of all steps, so that the protocol may connect before the step comes. */
static void open_servers(const struct kit_run *run)
{
    for (size_t i = 0; i < run->script->n; i++)
        if (run->script->steps[i].act == FB_TEST_ACT_SERVER)
            fb_test_serve(run->test, run->script->steps[i].p, FB_TEST_ACCEPTS);
}

/* Starts the test of a variant. Its `test` stays NULL if that fails; `outcome` is final then. */
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
