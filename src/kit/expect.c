/* SPDX-License-Identifier: BSD-2-Clause */
/* Expectations of a run: the bytes of each peer, step by step, and once more when the run is over.
 * A variant that ends early or lacks memory may fail a step, and leaves bytes out, but adds none
 * beyond the test's excuse. */
#include "kit/expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_cut_short(const struct kit_run *run)
{
    return run->variant->refuses || run->variant->refuses_start || run->variant->loses ||
           run->variant->ending != KIT_RUNS_TO_END;
}

/* Counts a failure, and begins the line about it. */
static void begin_failure(struct kit_run *run, size_t step)
{
    run->failures++;
    fprintf(stderr, "%s: step %zu: ", run->test->label, step);
}

void kit_run_fail(struct kit_run *run, const char *format, ...)
{
    va_list args;

    run->over = true;
    if (is_cut_short(run))
        return;
    begin_failure(run, run->step);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* ---- Peers ---- */

void kit_run_pause(const struct kit_run *run, fb_test_peer *peer)
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

fb_test_peer *kit_run_add_peer(struct kit_run *run, fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    assert(run->now < FB_TEST_PEERS);
    if (run->variant->window > 0)
        peer->socket->send_most = run->variant->window;
    kit_run_pause(run, peer);
    run->peers[run->now] = peer;
    run->taken[run->now] = 0;
    return peer;
}

fb_test_peer *kit_run_peer(struct kit_run *run)
{
    fb_test_peer *peer = run->peers[run->now];

    if (peer == NULL) {
        peer = kit_run_add_peer(run, fb_test_connect(run->test));
        fb_test_run(run->test);
    }
    return peer;
}

void kit_run_choose_peer(struct kit_run *run, uint64_t i)
{
    if (i >= FB_TEST_PEERS)
        kit_misused("step %zu: peers are numbered from 0 to %d", run->step, FB_TEST_PEERS - 1);
    run->now = (unsigned)i;
}

/* ---- Bytes in lines about failures: escaped, and around the first that differs ---- */

/* Bytes that are printed at most, and how many come before the difference. */
#define SHOWN 48
#define BEFORE 16

static void show_byte(uint8_t c)
{
    static const char escaped[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
    const char *at = c != '\0' ? strchr(escaped, c) : NULL;

    if (at != NULL)
        fprintf(stderr, "\\%c", letters[at - escaped]);
    else
        fprintf(stderr, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
}

static void show_bytes(fb_bytes bytes, size_t from)
{
    size_t end = bytes.n > from + SHOWN ? from + SHOWN : bytes.n;

    assert(from <= bytes.n);
    if (bytes.n == 0) {
        fputs("nothing", stderr);
        return;
    }
    fputs(from > 0 ? "...\"" : "\"", stderr);
    for (size_t i = from; i < end; i++)
        show_byte(bytes.p[i]);
    fputs(end < bytes.n ? "\"..." : "\"", stderr);
}

/* Prints the received and the expected bytes: `label: step 3: ...`. */
static void report_difference(struct kit_run *run, size_t step, fb_bytes expected, fb_bytes heard)
{
    size_t same = 0, from;

    while (same < expected.n && same < heard.n && expected.p[same] == heard.p[same])
        same++;
    from = same > SHOWN - BEFORE ? same - BEFORE : 0;
    begin_failure(run, step);
    if (from > 0)
        fprintf(stderr, "from byte %zu: ", same);
    fputs("expected ", stderr);
    show_bytes(expected, from);
    fputs(", heard ", stderr);
    show_bytes(heard, from);
    fputc('\n', stderr);
}

/* Prints bytes beyond the expected bytes. */
static void report_surplus(struct kit_run *run, fb_bytes heard)
{
    begin_failure(run, run->step);
    fputs("heard more than was expected: ", stderr);
    show_bytes(heard, 0);
    fputc('\n', stderr);
}

/* ---- Steps that expect ---- */

/* The bytes expected by a step. */
static fb_bytes expected_bytes(const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        return (fb_bytes) { step->p, (size_t)step->n };
    case FB_TEST_ACT_EXPECT_WITHIN:
        return (fb_bytes) { step->p, step->n & UINT32_MAX };
    default:
        return (fb_bytes) { step->p, 0 };
    }
}

static fb_bytes heard_bytes(struct kit_run *run)
{
    fb_bytes all = fb_test_heard(kit_run_peer(run));
    size_t taken = run->taken[run->now];

    assert(taken <= all.n);
    return (fb_bytes) { all.p + taken, all.n - taken };
}

static int has_heard(fb_test *test, void *arg)
{
    struct kit_run *run = arg;

    (void)test;
    return heard_bytes(run).n >= (run->script->steps[run->step].n & UINT32_MAX);
}

/* Expects bytes, for which time passes: at most `ms`. */
static void expect_bytes(struct kit_run *run, fb_bytes wanted, uint64_t ms)
{
    fb_bytes found;

    kit_run_resume(run, kit_run_peer(run));
    if (ms > 0)
        fb_test_pass_until(run->test, has_heard, run, ms);
    found = heard_bytes(run);
    if (found.n > wanted.n)
        found.n = wanted.n;
    if (found.n == wanted.n && (wanted.p == NULL || memcmp(found.p, wanted.p, wanted.n) == 0)) {
        run->taken[run->now] += wanted.n;
        kit_run_pause(run, kit_run_peer(run));
    } else if (wanted.p == NULL) {
        kit_run_fail(run, "expected %zu bytes, heard %zu", wanted.n, found.n);
    } else {
        run->over = true;
        if (!is_cut_short(run))
            report_difference(run, run->step, wanted, heard_bytes(run));
    }
}

static bool expect_no_more(struct kit_run *run)
{
    fb_bytes more;

    kit_run_resume(run, kit_run_peer(run));
    more = heard_bytes(run);
    if (more.n == 0)
        return true;
    run->over = true;
    if (!is_cut_short(run))
        report_surplus(run, more);
    return false;
}

static int has_closed(fb_test *test, void *arg)
{
    struct kit_run *run = arg;

    (void)test;
    return fb_test_has_ended(kit_run_peer(run));
}

/* Expects the end, for which time passes: at most `ms`. */
static void expect_closed(struct kit_run *run, uint64_t ms)
{
    fb_test_peer *peer = kit_run_peer(run);

    if (ms > 0) {
        kit_run_resume(run, peer);
        fb_test_pass_until(run->test, has_closed, run, ms);
    }
    if (!expect_no_more(run))
        return;
    if (!fb_test_is_closed(peer) && fb_test_has_ended(peer))
        fb_test_shut(peer); /* a client that reads the end closes */
    if (!fb_test_is_closed(peer))
        kit_run_fail(run, "expected the connection to be closed, it is open");
    else if (fb_test_was_reset(peer))
        kit_run_fail(run, "expected the connection to be closed, it was broken");
}

/* Whether the next line of the access log is the step's; if not, *found is the line, for the caller
 * to free. */
static bool has_line(struct kit_run *run, const fb_test_step *step, char **found)
{
    const char *line = fb_test_access_log(run->test) + run->logged;
    size_t n = strcspn(line, "\n");

    if (n == strlen(step->p) && line[n] == '\n' && memcmp(line, step->p, n) == 0) {
        run->logged += n + 1;
        return true;
    }
    *found = strndup(line, n);
    if (*found == NULL)
        kit_misused("no memory for a line of the access log");
    return false;
}

static void expect_line(struct kit_run *run, const fb_test_step *step)
{
    char *found = NULL;

    kit_run_each_peer(run, kit_run_resume);
    if (!has_line(run, step, &found))
        kit_run_fail(run, "expected the line \"%s\" in the access log, found \"%s\"",
            (const char *)step->p, found);
    kit_run_each_peer(run, kit_run_pause);
    free(found);
}

bool kit_run_expect(struct kit_run *run, const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        expect_bytes(run, expected_bytes(step), 0);
        return true;
    case FB_TEST_ACT_EXPECT_WITHIN:
        expect_bytes(run, expected_bytes(step), step->n >> 32);
        return true;
    case FB_TEST_ACT_EXPECT_END:
        if (expect_no_more(run) && !fb_test_has_ended(kit_run_peer(run)))
            kit_run_fail(run, "expected the end of what is said, it may go on");
        return true;
    case FB_TEST_ACT_EXPECT_CLOSED:
    case FB_TEST_ACT_EXPECT_CLOSED_WITHIN:
        expect_closed(run, step->n);
        return true;
    case FB_TEST_ACT_EXPECT_LOG:
        expect_line(run, step);
        return true;
    case FB_TEST_ACT_EXPECT_ALERT:
        kit_run_resume(run, kit_run_peer(run));
        if (fb_test_alerted(kit_run_peer(run)) != (int)step->n)
            kit_run_fail(
                run, "expected alert %d, got %d", (int)step->n, fb_test_alerted(kit_run_peer(run)));
        kit_run_pause(run, kit_run_peer(run));
        return true;
    case FB_TEST_ACT_EXPECT_RESET:
        if (expect_no_more(run) && !fb_test_was_reset(kit_run_peer(run)))
            kit_run_fail(run, "expected the connection to be broken, it is %s",
                fb_test_is_closed(kit_run_peer(run)) ? "closed" : "open");
        return true;
    default:
        return false;
    }
}

/* ---- The end of a run ---- */

static bool is_short_of_memory(const struct kit_run *run)
{
    return run->variant->refuses || run->variant->refuses_start;
}

/* Whether the received bytes are a part of the expected ones, followed by the protocol's excuse for
 * a failed allocation. */
static bool is_excused(const struct kit_run *run, fb_bytes expected, fb_bytes found)
{
    const char *excuse = run->script->options->excuse;
    size_t n = excuse != NULL ? strlen(excuse) : 0;

    if (excuse == NULL || !is_short_of_memory(run))
        return false;
    for (size_t i = 0; i + n <= found.n; i++) {
        if (memcmp(found.p + i, excuse, n) == 0)
            return true;
        if (i == expected.n || found.p[i] != expected.p[i])
            break;
    }
    return false;
}

/* Fails unless a peer has received a beginning of the script's bytes. */
static void check_heard(struct kit_run *run, unsigned peer)
{
    fb_bytes left = fb_test_heard(run->peers[peer]);
    unsigned now = 0;

    for (size_t i = 0; i < run->script->n && left.n > 0; i++) {
        const fb_test_step *step = &run->script->steps[i];
        fb_bytes expected = expected_bytes(step);
        size_t n = expected.n < left.n ? expected.n : left.n;

        if (step->act == FB_TEST_ACT_PEER || step->act == FB_TEST_ACT_SERVER)
            now = (unsigned)step->n;
        if (step->act == FB_TEST_ACT_CLIENT)
            now = kit_third_of(step->n, 0);
        if (now != peer)
            continue;
        if (n > 0 && expected.p != NULL && memcmp(left.p, expected.p, n) != 0) {
            if (!is_excused(run, expected, left))
                report_difference(run, i, expected, left);
            return;
        }
        left.p += n;
        left.n -= n;
    }
    if (left.n > 0 && !is_excused(run, (fb_bytes) { NULL, 0 }, left))
        report_surplus(run, left);
}

/* Whether peers of the variant must hear exactly the expected bytes. The protocol may say more
 * after a death or the end of a half, without a message, or where workers come to know peers
 * late. */
static bool is_checked(const struct kit_run *run)
{
    const struct kit_variant *variant = run->variant;

    return variant->ending != KIT_SHUTS && variant->ending != KIT_KILLS && !variant->loses &&
           (!variant->refuses_start || run->script->options->workers == 0);
}

/* Whether a server's peer has heard a ClientHello, and the run has ended before its step. */
static bool awaits_handshake(const struct kit_run *run, const fb_test_peer *peer)
{
    for (size_t i = 0; peer->is_server && peer->tls == NULL && i < run->script->n; i++)
        if (run->script->steps[i].act == FB_TEST_ACT_TLS)
            return true;
    return false;
}

void kit_run_check_heard(struct kit_run *run)
{
    unsigned last = run->now;

    kit_run_each_peer(run, kit_run_resume);
    run->step = run->script->n;
    for (run->now = 0; run->now < FB_TEST_PEERS; run->now++) {
        if (run->peers[run->now] == NULL || !is_checked(run) ||
            awaits_handshake(run, run->peers[run->now]))
            continue;
        if (is_short_of_memory(run) || (run->variant->ending == KIT_RESETS && run->now == last))
            check_heard(run, run->now);
        else if (!is_cut_short(run) && !run->over)
            expect_no_more(run);
    }
}
