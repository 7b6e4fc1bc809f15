/* SPDX-License-Identifier: BSD-2-Clause */
/* In which ways a script is played. */
#include "kit/converse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Places that are tried, of more a part, evenly spread. */
#define CUTS_MOST 200
#define ENDINGS_MOST 100
#define REFUSALS_MOST 300
/* Windows in which all is taken; usually of one byte. */
#define WINDOWS_MOST 10000
/* Networks that make trouble. */
#define SEEDS 10
/* More failures are not looked for. */
#define FAILURES_MOST 20

struct converse {
    const struct fb_kit_script *script;
    int failures;
    uint64_t allocations; /* of the script as it is */
    bool verbose;
};

static bool is_enough(const struct converse *converse)
{
    return converse->failures >= FAILURES_MOST;
}

static struct fb_kit_outcome play(struct converse *converse, const struct fb_kit_way *way)
{
    struct fb_kit_outcome outcome = { .failures = 0 };

    if (is_enough(converse))
        return outcome;
    if (converse->verbose)
        fprintf(stderr, "%s: %s\n", converse->script->protocol->name, way->name);
    outcome = fb_kit_play(converse->script, way);
    converse->failures += outcome.failures;
    if (is_enough(converse))
        fprintf(stderr, "%s: %d failures, the rest is left out\n", converse->script->protocol->name,
            converse->failures);
    return outcome;
}

static uint64_t stride(uint64_t n, uint64_t most)
{
    return n / most + 1;
}

static uint64_t count(const struct fb_kit_script *script, uint32_t act)
{
    uint64_t n = 0;

    for (size_t i = 0; i < script->n; i++)
        if (script->steps[i].act == act)
            n += script->steps[i].n;
    return n;
}

static void cut_in_two(struct converse *converse)
{
    uint64_t n = count(converse->script, FB_TEST_ACT_SAY);

    for (uint64_t cut = 1; cut < n; cut += stride(n, CUTS_MOST)) {
        struct fb_kit_way way = { .cut = cut };

        snprintf(way.name, sizeof(way.name), "cut at byte %" PRIu64, cut);
        play(converse, &way);
    }
}

static void play_as_others(struct converse *converse)
{
    size_t window = stride(count(converse->script, FB_TEST_ACT_EXPECT), WINDOWS_MOST);
    const struct fb_kit_way ways[] = {
        { .name = "byte by byte", .bytes = true },
        { .name = "a peer that takes few bytes at a time", .window = window },
        { .name = "a peer that stops reading", .pausing = true },
        { .name = "byte by byte, a peer that stops reading", .bytes = true, .pausing = true },
    };

    for (size_t i = 0; i < fb_countof(ways); i++)
        play(converse, &ways[i]);
}

static void make_trouble(struct converse *converse)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fb_kit_way way = { .trouble = true, .seed = seed };

        snprintf(way.name, sizeof(way.name), "trouble of seed %" PRIu64, seed);
        play(converse, &way);
    }
}

static void end_at(struct converse *converse, size_t step, enum fb_kit_ending ending, bool half)
{
    struct fb_kit_way way = { .ending = ending, .step = step, .half = half };

    snprintf(way.name, sizeof(way.name), "the peer %s %s step %zu",
        ending == FB_KIT_BREAKS ? "breaks" : "ends", half ? "within" : "before", step);
    play(converse, &way);
}

static void end_early(struct converse *converse)
{
    const struct fb_kit_script *script = converse->script;

    for (size_t i = 0; i < script->n; i += stride(script->n, ENDINGS_MOST)) {
        end_at(converse, i, FB_KIT_BREAKS, false);
        end_at(converse, i, FB_KIT_ENDS, false);
        if (script->steps[i].act != FB_TEST_ACT_SAY)
            continue;
        end_at(converse, i, FB_KIT_BREAKS, true);
        end_at(converse, i, FB_KIT_ENDS, true);
    }
}

/* Peers that stop reading have the worker keep more. */
static void refuse_memory(struct converse *converse, bool pausing)
{
    bool refused = true;

    for (uint64_t i = 0; refused; i += stride(converse->allocations, REFUSALS_MOST)) {
        struct fb_kit_way way = { .refuses = true, .after = i, .pausing = pausing };

        snprintf(way.name, sizeof(way.name), "allocation %" PRIu64 " fails%s", i,
            pausing ? ", a peer that stops reading" : "");
        refused = play(converse, &way).refused;
    }
}

int fb_test_converse_with(const fb_protocol *protocol, const fb_test_options *options,
    const fb_test_step *steps, size_t n)
{
    static const struct fb_kit_way plain = { .name = "as it is" };
    const fb_test_options own = fb_kit_options(options);
    const struct fb_kit_script script = { protocol, &own, steps, n };
    struct converse converse = {
        .script = &script,
        .verbose = getenv("FB_TEST_VERBOSE") != NULL,
    };

    converse.allocations = play(&converse, &plain).allocations;
    if (converse.failures > 0) /* the others would only repeat it */
        return converse.failures;
    play_as_others(&converse);
    cut_in_two(&converse);
    make_trouble(&converse);
    end_early(&converse);
    refuse_memory(&converse, false);
    refuse_memory(&converse, true);
    return converse.failures;
}

int fb_test_converse(
    const fb_protocol *protocol, const char *server, const fb_test_step *script, size_t n)
{
    const fb_test_options options = { .size = sizeof(options), .server = server };

    return fb_test_converse_with(protocol, &options, script, n);
}
