/* SPDX-License-Identifier: BSD-2-Clause */
/* A script is played once. */
#include "kit/converse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct play {
    const struct fb_kit_script *script;
    const struct fb_kit_way *way;
    fb_test *test;
    fb_test_peer *peers[FB_TEST_PEERS];
    size_t taken[FB_TEST_PEERS]; /* of what each has heard, what was expected */
    unsigned now;                /* the peer whose steps these are */
    size_t step;
    uint64_t said; /* by all */
    int failures;
    bool over; /* the script cannot go on */
};

/* Whether the script may end early, but for what is heard until then. */
static bool is_cut_short(const struct play *play)
{
    return play->way->refuses || play->way->ending != FB_KIT_TO_THE_END;
}

static void FB_PRINTF(2, 3) fail(struct play *play, const char *format, ...)
{
    va_list args;

    play->over = true;
    if (is_cut_short(play))
        return;
    play->failures++;
    fprintf(stderr, "%s: step %zu: ", play->test->label, play->step);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Peers */

static void pause_peer(const struct play *play, fb_test_peer *peer)
{
    if (play->way->pausing && peer != NULL)
        fb_test_take(peer, 0);
}

static void resume_peer(const struct play *play, fb_test_peer *peer)
{
    if (!play->way->pausing || peer == NULL)
        return;
    fb_test_take(peer, 1);
    fb_test_run(play->test);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(play->test);
}

static void each_peer(
    const struct play *play, void (*visit)(const struct play *play, fb_test_peer *peer))
{
    for (unsigned i = 0; i < FB_TEST_PEERS; i++)
        visit(play, play->peers[i]);
}

static fb_test_peer *add_peer(struct play *play, fb_test_peer *peer)
{
    if (play->way->window > 0)
        peer->socket->send_most = play->way->window;
    pause_peer(play, peer);
    play->peers[play->now] = peer;
    play->taken[play->now] = 0;
    return peer;
}

static fb_test_peer *current(struct play *play)
{
    fb_test_peer *peer = play->peers[play->now];

    if (peer == NULL) {
        peer = add_peer(play, fb_test_connect(play->test));
        fb_test_run(play->test);
    }
    return peer;
}

static void choose(struct play *play, uint64_t i)
{
    if (i >= FB_TEST_PEERS)
        fb_kit_misused("step %zu: peers are numbered from 0 to %d", play->step, FB_TEST_PEERS - 1);
    play->now = (unsigned)i;
}

static void become_server(struct play *play, const fb_test_step *step)
{
    fb_test_peer *peer = fb_test_accept(fb_test_serve(play->test, step->p, FB_TEST_ACCEPTS));

    choose(play, step->n);
    if (peer != NULL)
        add_peer(play, peer);
    else
        fail(play, "nothing is connected to %s", (const char *)step->p);
}

/* What is said and done */

static void say(struct play *play, fb_bytes bytes)
{
    if (bytes.n == 0)
        return;
    fb_test_say(current(play), bytes.p, bytes.n);
    fb_test_run(play->test);
}

static void say_in_pieces(struct play *play, fb_bytes bytes)
{
    uint64_t cut = play->way->cut;

    if (play->way->bytes) {
        for (size_t i = 0; i < bytes.n; i++)
            say(play, (fb_bytes) { bytes.p + i, 1 });
    } else if (cut > play->said && cut - play->said < bytes.n) {
        size_t n = (size_t)(cut - play->said);

        say(play, (fb_bytes) { bytes.p, n });
        say(play, (fb_bytes) { bytes.p + n, bytes.n - n });
    } else {
        say(play, bytes);
    }
    play->said += bytes.n;
}

static void end_early(struct play *play)
{
    if (play->way->ending == FB_KIT_BREAKS)
        fb_test_reset(current(play));
    else
        fb_test_shut(current(play));
    play->over = true;
}

static void pass(struct play *play, uint64_t ms)
{
    each_peer(play, resume_peer); /* else what they have not taken may time out */
    fb_test_pass(play->test, ms);
    each_peer(play, pause_peer);
}

/* What is expected */

static fb_bytes heard(struct play *play)
{
    fb_bytes all = fb_test_heard(current(play));
    size_t taken = play->taken[play->now];

    return (fb_bytes) { all.p + taken, all.n - taken };
}

static void expect(struct play *play, const fb_test_step *step)
{
    fb_bytes wanted = { step->p, (size_t)step->n }, found;

    resume_peer(play, current(play));
    found = heard(play);
    if (found.n > wanted.n)
        found.n = wanted.n;
    if (found.n == wanted.n && (wanted.p == NULL || memcmp(found.p, wanted.p, wanted.n) == 0)) {
        play->taken[play->now] += wanted.n;
        pause_peer(play, current(play));
        return;
    }
    play->over = true;
    if (is_cut_short(play))
        return;
    if (wanted.p == NULL) {
        fail(play, "expected %zu bytes, heard %zu", wanted.n, found.n);
        return;
    }
    play->failures++;
    fb_kit_differs(play->test->label, play->step, wanted, heard(play));
}

/* False: it has heard more, which was said. */
static bool expect_no_more(struct play *play)
{
    fb_bytes more;

    resume_peer(play, current(play));
    more = heard(play);
    if (more.n == 0)
        return true;
    play->over = true;
    if (!is_cut_short(play)) {
        play->failures++;
        fb_kit_says_more(play->test->label, play->step, more);
    }
    return false;
}

static void expect_closed(struct play *play)
{
    fb_test_peer *peer = current(play);

    if (!expect_no_more(play))
        return;
    if (!fb_test_is_closed(peer) && fb_test_has_ended(peer))
        fb_test_shut(peer); /* as who has read the end does */
    if (!fb_test_is_closed(peer))
        fail(play, "expected the connection to be closed, it is open");
    else if (fb_test_was_reset(peer))
        fail(play, "expected the connection to be closed, it was broken");
}

static void do_step(struct play *play, const fb_test_step *step)
{
    switch (step->act) {
    case FB_TEST_ACT_SAY:
        say_in_pieces(play, (fb_bytes) { step->p, (size_t)step->n });
        break;
    case FB_TEST_ACT_EXPECT:
    case FB_TEST_ACT_EXPECT_ANY:
        expect(play, step);
        break;
    case FB_TEST_ACT_EXPECT_END:
        if (expect_no_more(play) && !fb_test_has_ended(current(play)))
            fail(play, "expected the end of what is said, it may go on");
        break;
    case FB_TEST_ACT_EXPECT_CLOSED:
        expect_closed(play);
        break;
    case FB_TEST_ACT_EXPECT_RESET:
        if (expect_no_more(play) && !fb_test_was_reset(current(play)))
            fail(play, "expected the connection to be broken, it is %s",
                fb_test_is_closed(current(play)) ? "closed" : "open");
        break;
    case FB_TEST_ACT_SHUT:
        fb_test_shut(current(play));
        fb_test_run(play->test);
        break;
    case FB_TEST_ACT_RESET:
        fb_test_reset(current(play));
        fb_test_run(play->test);
        break;
    case FB_TEST_ACT_PASS:
        current(play);
        pass(play, step->n);
        break;
    case FB_TEST_ACT_DRAIN:
        current(play);
        fb_test_drain(play->test, step->n);
        break;
    case FB_TEST_ACT_PEER:
        choose(play, step->n);
        current(play);
        break;
    case FB_TEST_ACT_SERVER:
        become_server(play, step);
        break;
    case FB_TEST_ACT_REPLY:
        fb_test_serve(play->test, step->p, (fb_test_reply)step->n);
        break;
    default:
        fb_kit_misused("step %zu: there is no act %" PRIu32, play->step, step->act);
    }
}

static void play_steps(struct play *play)
{
    const struct fb_kit_script *script = play->script;
    const struct fb_kit_way *way = play->way;

    for (size_t i = 0; i < script->n && !play->over; i++) {
        const fb_test_step *step = &script->steps[i];
        bool ends = way->ending != FB_KIT_TO_THE_END && i == way->step;

        play->step = i;
        if (ends && way->half)
            say(play, (fb_bytes) { step->p, (size_t)step->n / 2 });
        if (ends)
            end_early(play);
        else
            do_step(play, step);
    }
}

/* The end */

/* Whether what was heard instead is what the protocol may say without memory: it may have the
 * beginning in common with what was expected. */
static bool is_excused(const struct play *play, fb_bytes expected, fb_bytes found)
{
    const char *excuse = play->script->options->excuse;
    size_t n = excuse != NULL ? strlen(excuse) : 0;

    if (excuse == NULL || !play->way->refuses)
        return false;
    for (size_t i = 0; i + n <= found.n; i++) {
        if (memcmp(found.p + i, excuse, n) == 0)
            return true;
        if (i == expected.n || found.p[i] != expected.p[i])
            break;
    }
    return false;
}

static void check_excuse(struct play *play, size_t i, fb_bytes found)
{
    const fb_test_step *step = &play->script->steps[i];
    fb_bytes expected = { step->p, (size_t)step->n };

    if (is_excused(play, expected, found))
        return;
    play->failures++;
    fb_kit_differs(play->test->label, i, expected, found);
}

/* Whether all that a peer has heard begins what it was to hear. */
static void check_heard(struct play *play, unsigned peer)
{
    fb_bytes left = fb_test_heard(play->peers[peer]);
    unsigned now = 0;

    for (size_t i = 0; i < play->script->n && left.n > 0; i++) {
        const fb_test_step *step = &play->script->steps[i];
        size_t n = step->n < left.n ? (size_t)step->n : left.n;

        if (step->act == FB_TEST_ACT_PEER || step->act == FB_TEST_ACT_SERVER)
            now = (unsigned)step->n;
        if (now != peer || (step->act != FB_TEST_ACT_EXPECT && step->act != FB_TEST_ACT_EXPECT_ANY))
            continue;
        if (step->act == FB_TEST_ACT_EXPECT && memcmp(left.p, step->p, n) != 0) {
            check_excuse(play, i, left);
            return;
        }
        left.p += n;
        left.n -= n;
    }
    if (left.n == 0)
        return;
    if (!is_excused(play, (fb_bytes) { NULL, 0 }, left)) {
        play->failures++;
        fb_kit_says_more(play->test->label, play->script->n, left);
    }
}

static void check_rest(struct play *play)
{
    unsigned last = play->now;

    each_peer(play, resume_peer);
    play->step = play->script->n;
    for (play->now = 0; play->now < FB_TEST_PEERS; play->now++) {
        if (play->peers[play->now] == NULL || play->way->ending == FB_KIT_ENDS)
            continue;
        if (play->way->refuses || (play->way->ending == FB_KIT_BREAKS && play->now == last))
            check_heard(play, play->now);
        else if (!is_cut_short(play) && !play->over)
            expect_no_more(play);
    }
}

/* Servers are there from the beginning. */
static void open_servers(const struct play *play)
{
    for (size_t i = 0; i < play->script->n; i++)
        if (play->script->steps[i].act == FB_TEST_ACT_SERVER)
            fb_test_serve(play->test, play->script->steps[i].p, FB_TEST_ACCEPTS);
}

struct fb_kit_outcome fb_kit_play(const struct fb_kit_script *script, const struct fb_kit_way *way)
{
    struct play play = { .script = script, .way = way };
    struct fb_kit_outcome outcome = { .failures = 1 };

    play.test = fb_test_start_with(script->protocol, script->options);
    if (play.test == NULL)
        return outcome;
    snprintf(
        play.test->label, sizeof(play.test->label), "%s: %s", script->protocol->name, way->name);
    if (way->trouble)
        fb_kit_trouble(play.test, way->seed);
    if (way->refuses)
        fb_test_refuse_memory(play.test, way->after, 1);
    open_servers(&play);
    play_steps(&play);
    check_rest(&play);
    outcome.allocations = fb_test_allocations(play.test);
    outcome.refused = play.test->memory.refused > 0;
    outcome.failures = play.failures + fb_test_end(&play.test);
    return outcome;
}
