/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a script once, as one variant: sends and expects the bytes of its steps, on behalf of up to
 * FB_TEST_PEERS peers. After the first failure no further step is run. A variant that ends early or
 * lacks memory may fail a step; the bytes that its peers have received until then are checked all
 * the same. */
#include "kit/converse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct run {
    const struct kit_script *script;
    const struct kit_variant *variant;
    fb_test *test;
    fb_test_peer *peers[FB_TEST_PEERS];
    size_t taken[FB_TEST_PEERS]; /* expected bytes that each peer has received */
    unsigned now;                /* number of the peer whose steps are run */
    size_t step;                 /* number of the current step, from 0 */
    uint64_t said;               /* bytes sent by all peers */
    int failures;
    bool over; /* the script cannot go on */
};

/* Whether this variant lets a step fail. The bytes received until then are checked nevertheless. */
static bool is_cut_short(const struct run *run)
{
    return run->variant->refuses || run->variant->ending != KIT_RUNS_TO_END;
}

static void PRINTF_FORMAT(2, 3) fail_step(struct run *run, const char *format, ...)
{
    va_list args;

    run->over = true;
    if (is_cut_short(run))
        return;
    run->failures++;
    fprintf(stderr, "%s: step %zu: ", run->test->label, run->step);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Peers */

static void pause_peer(const struct run *run, fb_test_peer *peer)
{
    if (run->variant->pausing && peer != NULL)
        fb_test_take(peer, 0);
}

static void resume_peer(const struct run *run, fb_test_peer *peer)
{
    if (!run->variant->pausing || peer == NULL)
        return;
    fb_test_take(peer, 1);
    fb_test_run(run->test);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(run->test);
}

static void each_peer(
    const struct run *run, void (*visit)(const struct run *run, fb_test_peer *peer))
{
    for (unsigned i = 0; i < FB_TEST_PEERS; i++)
        visit(run, run->peers[i]);
}

static fb_test_peer *add_peer(struct run *run, fb_test_peer *peer)
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

static fb_test_peer *current_peer(struct run *run)
{
    fb_test_peer *peer = run->peers[run->now];

    if (peer == NULL) {
        peer = add_peer(run, fb_test_connect(run->test));
        fb_test_run(run->test);
    }
    return peer;
}

static void choose_peer(struct run *run, uint64_t i)
{
    if (i >= FB_TEST_PEERS)
        kit_misused("step %zu: peers are numbered from 0 to %d", run->step, FB_TEST_PEERS - 1);
    run->now = (unsigned)i;
}

static void become_server(struct run *run, const fb_test_step *step)
{
    fb_test_peer *peer = fb_test_accept(fb_test_serve(run->test, step->p, FB_TEST_ACCEPTS));

    choose_peer(run, step->n);
    if (peer != NULL)
        add_peer(run, peer);
    else
        fail_step(run, "nothing is connected to %s", (const char *)step->p);
}

/* Steps that send, and other actions */

static void say_bytes(struct run *run, fb_bytes bytes)
{
    if (bytes.n == 0)
        return;
    fb_test_say(current_peer(run), bytes.p, bytes.n);
    fb_test_run(run->test);
}

static void say_in_pieces(struct run *run, fb_bytes bytes)
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

static void end_variant(struct run *run)
{
    if (run->variant->ending == KIT_RESETS)
        fb_test_reset(current_peer(run));
    else
        fb_test_shut(current_peer(run));
    run->over = true;
}

static void pass_time(struct run *run, uint64_t ms)
{
    each_peer(run, resume_peer); /* unread output might time out */
    fb_test_pass(run->test, ms);
    each_peer(run, pause_peer);
}

/* Steps that expect */

static fb_bytes heard_bytes(struct run *run)
{
    fb_bytes all = fb_test_heard(current_peer(run));
    size_t taken = run->taken[run->now];

    assert(taken <= all.n);
    return (fb_bytes) { all.p + taken, all.n - taken };
}

static void expect_bytes(struct run *run, const fb_test_step *step)
{
    fb_bytes wanted = { step->p, (size_t)step->n }, found;

    resume_peer(run, current_peer(run));
    found = heard_bytes(run);
    if (found.n > wanted.n)
        found.n = wanted.n;
    if (found.n == wanted.n && (wanted.p == NULL || memcmp(found.p, wanted.p, wanted.n) == 0)) {
        run->taken[run->now] += wanted.n;
        pause_peer(run, current_peer(run));
        return;
    }
    run->over = true;
    if (is_cut_short(run))
        return;
    if (wanted.p == NULL) {
        fail_step(run, "expected %zu bytes, heard %zu", wanted.n, found.n);
        return;
    }
    run->failures++;
    kit_report_difference(run->test->label, run->step, wanted, heard_bytes(run));
}

/* Fails, and returns false, when the peer has received more than was expected. */
static bool expect_no_more(struct run *run)
{
    fb_bytes more;

    resume_peer(run, current_peer(run));
    more = heard_bytes(run);
    if (more.n == 0)
        return true;
    run->over = true;
    if (!is_cut_short(run)) {
        run->failures++;
        kit_report_surplus(run->test->label, run->step, more);
    }
    return false;
}

static void expect_closed(struct run *run)
{
    fb_test_peer *peer = current_peer(run);

    if (!expect_no_more(run))
        return;
    if (!fb_test_is_closed(peer) && fb_test_has_ended(peer))
        fb_test_shut(peer); /* a client that reads the end closes */
    if (!fb_test_is_closed(peer))
        fail_step(run, "expected the connection to be closed, it is open");
    else if (fb_test_was_reset(peer))
        fail_step(run, "expected the connection to be closed, it was broken");
}

static void run_step(struct run *run, const fb_test_step *step)
{
    assert(!run->over && run->step < run->script->n);
    switch (step->act) {
    case FB_TEST_ACT_SAY:
        say_in_pieces(run, (fb_bytes) { step->p, (size_t)step->n });
        break;
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        expect_bytes(run, step);
        break;
    case FB_TEST_ACT_EXPECT_END:
        if (expect_no_more(run) && !fb_test_has_ended(current_peer(run)))
            fail_step(run, "expected the end of what is said, it may go on");
        break;
    case FB_TEST_ACT_EXPECT_CLOSED:
        expect_closed(run);
        break;
    case FB_TEST_ACT_EXPECT_RESET:
        if (expect_no_more(run) && !fb_test_was_reset(current_peer(run)))
            fail_step(run, "expected the connection to be broken, it is %s",
                fb_test_is_closed(current_peer(run)) ? "closed" : "open");
        break;
    case FB_TEST_ACT_SHUT:
        fb_test_shut(current_peer(run));
        fb_test_run(run->test);
        break;
    case FB_TEST_ACT_RESET:
        fb_test_reset(current_peer(run));
        fb_test_run(run->test);
        break;
    case FB_TEST_ACT_PASS:
        current_peer(run);
        pass_time(run, step->n);
        break;
    case FB_TEST_ACT_DRAIN:
        current_peer(run);
        fb_test_drain(run->test, step->n);
        break;
    case FB_TEST_ACT_PEER:
        choose_peer(run, step->n);
        current_peer(run);
        break;
    case FB_TEST_ACT_SERVER:
        become_server(run, step);
        break;
    case FB_TEST_ACT_REPLY:
        fb_test_serve(run->test, step->p, (fb_test_reply)step->n);
        break;
    default:
        kit_misused("step %zu: there is no act %" PRIu32, run->step, step->act);
    }
}

static void run_steps(struct run *run)
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

/* Checks after the last step */

/* Whether the received bytes are a part of the expected ones, followed by the protocol's excuse for
 * a failed allocation. */
static bool is_excused(const struct run *run, fb_bytes expected, fb_bytes found)
{
    const char *excuse = run->script->options->excuse;
    size_t n = excuse != NULL ? strlen(excuse) : 0;

    if (excuse == NULL || !run->variant->refuses)
        return false;
    for (size_t i = 0; i + n <= found.n; i++) {
        if (memcmp(found.p + i, excuse, n) == 0)
            return true;
        if (i == expected.n || found.p[i] != expected.p[i])
            break;
    }
    return false;
}

static void check_excuse(struct run *run, size_t i, fb_bytes found)
{
    const fb_test_step *step = &run->script->steps[i];
    fb_bytes expected = { step->p, (size_t)step->n };

    if (is_excused(run, expected, found))
        return;
    run->failures++;
    kit_report_difference(run->test->label, i, expected, found);
}

/* Fails unless the bytes that a peer has received are the beginning of those that the script
 * expects. */
static void check_heard(struct run *run, unsigned peer)
{
    fb_bytes left = fb_test_heard(run->peers[peer]);
    unsigned now = 0;

    for (size_t i = 0; i < run->script->n && left.n > 0; i++) {
        const fb_test_step *step = &run->script->steps[i];
        size_t n = step->n < left.n ? (size_t)step->n : left.n;

        if (step->act == FB_TEST_ACT_PEER || step->act == FB_TEST_ACT_SERVER)
            now = (unsigned)step->n;
        if (now != peer || (step->act != FB_TEST_ACT_EXPECT && step->act != FB_TEST_ACT_EXPECT_ANY))
            continue;
        if (step->act == FB_TEST_ACT_EXPECT && memcmp(left.p, step->p, n) != 0) {
            check_excuse(run, i, left);
            return;
        }
        left.p += n;
        left.n -= n;
    }
    if (left.n == 0)
        return;
    if (!is_excused(run, (fb_bytes) { NULL, 0 }, left)) {
        run->failures++;
        kit_report_surplus(run->test->label, run->script->n, left);
    }
}

static void check_all_heard(struct run *run)
{
    unsigned last = run->now;

    each_peer(run, resume_peer);
    run->step = run->script->n;
    for (run->now = 0; run->now < FB_TEST_PEERS; run->now++) {
        if (run->peers[run->now] == NULL || run->variant->ending == KIT_SHUTS)
            continue;
        if (run->variant->refuses || (run->variant->ending == KIT_RESETS && run->now == last))
            check_heard(run, run->now);
        else if (!is_cut_short(run) && !run->over)
            expect_no_more(run);
    }
}

/* Opens the servers of all steps, so that the protocol may connect before the step comes. */
static void open_servers(const struct run *run)
{
    for (size_t i = 0; i < run->script->n; i++)
        if (run->script->steps[i].act == FB_TEST_ACT_SERVER)
            fb_test_serve(run->test, run->script->steps[i].p, FB_TEST_ACCEPTS);
}

struct kit_outcome kit_script_run(
    const struct kit_script *script, const struct kit_variant *variant)
{
    struct run run = { .script = script, .variant = variant };
    struct kit_outcome outcome = { .failures = 1 };

    assert(variant->ending == KIT_RUNS_TO_END || variant->step < script->n);
    run.test = fb_test_start_with(script->protocol, script->options);
    if (run.test == NULL)
        return outcome;
    snprintf(
        run.test->label, sizeof(run.test->label), "%s: %s", script->protocol->name, variant->name);
    if (variant->trouble)
        kit_trouble(run.test, variant->seed);
    if (variant->refuses)
        fb_test_refuse_memory(run.test, variant->after, 1);
    open_servers(&run);
    run_steps(&run);
    check_all_heard(&run);
    outcome.allocations = fb_test_allocations(run.test);
    outcome.refused = run.test->memory.refused > 0;
    outcome.failures = run.failures + fb_test_end(&run.test);
    return outcome;
}
