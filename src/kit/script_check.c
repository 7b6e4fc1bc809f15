/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks what the peers have received when a run of a script is over. A variant that ends early or
 * lacks memory leaves bytes out, but adds none, but for what the test excuses. */
#include "kit/script.h"

#include <string.h>

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

/* The number of bytes that a step expects. */
static size_t expected_n(const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        return (size_t)step->n;
    case FB_TEST_ACT_EXPECT_WITHIN:
        return (size_t)(step->n & UINT32_MAX);
    default:
        return 0;
    }
}

static void check_excuse(struct kit_run *run, size_t i, fb_bytes found)
{
    const fb_test_step *step = &run->script->steps[i];
    fb_bytes expected = { step->p, expected_n(step) };

    if (is_excused(run, expected, found))
        return;
    run->failures++;
    kit_report_difference(run->test->label, i, expected, found);
}

/* Fails unless the bytes that a peer has received are the beginning of those that the script
 * expects. */
static void check_heard(struct kit_run *run, unsigned peer)
{
    fb_bytes left = fb_test_heard(run->peers[peer]);
    unsigned now = 0;

    for (size_t i = 0; i < run->script->n && left.n > 0; i++) {
        const fb_test_step *step = &run->script->steps[i];
        size_t n = expected_n(step) < left.n ? expected_n(step) : left.n;

        if (step->act == FB_TEST_ACT_PEER || step->act == FB_TEST_ACT_SERVER)
            now = (unsigned)step->n;
        if (step->act == FB_TEST_ACT_CLIENT)
            now = kit_third_of(step->n, 0);
        if (now != peer)
            continue;
        if (n > 0 && step->p != NULL && memcmp(left.p, step->p, n) != 0) {
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

/* Whether peers of this variant hear nothing but what is expected. The protocol may have something
 * else to say after a death or the end of a half, without a message, or where workers come to know
 * each other late. */
static bool is_checked(const struct kit_run *run)
{
    const struct kit_variant *variant = run->variant;

    return variant->ending != KIT_SHUTS && variant->ending != KIT_KILLS && !variant->loses &&
           (!variant->refuses_start || run->script->options->workers == 0);
}

void kit_run_check_heard(struct kit_run *run)
{
    unsigned last = run->now;

    kit_run_each_peer(run, kit_run_resume);
    run->step = run->script->n;
    for (run->now = 0; run->now < FB_TEST_PEERS; run->now++) {
        if (run->peers[run->now] == NULL || !is_checked(run))
            continue;
        if (is_short_of_memory(run) || (run->variant->ending == KIT_RESETS && run->now == last))
            check_heard(run, run->now);
        else if (!kit_run_is_cut_short(run) && !run->over)
            kit_run_expect_no_more(run);
    }
}
