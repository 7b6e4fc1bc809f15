/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the variants of a script for a conversation: different pieces, slow peers, network
 * trouble, early ends and failing allocations. A script that fails as written is run only once,
 * because variants would only repeat the failure. */
#include "kit/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The limit of tried places. A longer script is tried at some places, evenly spread. */
#define CUTS_MOST 200
#define ENDINGS_MOST 100
#define REFUSALS_MOST 300
/* Windows in which a peer takes all output at most. A window has a single byte unless that makes
 * more windows. */
#define WINDOWS_MOST 10000
#define DEATHS_MOST 20
#define LOSSES_MOST 50
/* The number of tried seeds for network trouble. */
#define SEEDS 10
/* The kit stops after so many failures. */
#define FAILURES_MOST 20

struct converse {
    const struct kit_script *script;
    int failures;
    uint64_t allocations; /* allocations of the script as written */
    uint64_t messages;    /* between workers, in it */
    bool verbose;
};

/* Runs a variant of the name, unless there were enough failures. */
static PRINTF_FORMAT(3, 4) struct kit_outcome
    run_variant(struct converse *converse, struct kit_variant variant, const char *format, ...)
{
    const char *protocol = converse->script->protocol->name;
    struct kit_outcome outcome = { .failures = 0 };
    va_list args;

    if (converse->failures >= FAILURES_MOST)
        return outcome;
    va_start(args, format);
    vsnprintf(variant.name, sizeof(variant.name), format, args);
    va_end(args);
    if (converse->verbose)
        fprintf(stderr, "%s: %s\n", protocol, variant.name);
    outcome = kit_script_run(converse->script, &variant);
    converse->failures += outcome.failures;
    if (converse->failures >= FAILURES_MOST)
        fprintf(stderr, "%s: %d failures, the rest is left out\n", protocol, converse->failures);
    return outcome;
}

/* The distance of places that are tried, of n at most so many; or of all. */
static uint64_t stride_of_script(const struct kit_script *script, uint64_t n, uint64_t most)
{
    assert(most > 0);
    return script->options->thorough != 0 ? 1 : n / most + 1;
}

/* Counts the bytes of all steps of a kind. */
static uint64_t count_step_bytes(const struct kit_script *script, uint32_t act)
{
    uint64_t n = 0;

    for (size_t i = 0; i < script->n; i++)
        if (script->steps[i].act == act)
            n += script->steps[i].n;
    return n;
}

static void try_cuts(struct converse *converse)
{
    uint64_t n = count_step_bytes(converse->script, FB_TEST_ACT_SAY);

    for (uint64_t cut = 1; cut < n; cut += stride_of_script(converse->script, n, CUTS_MOST))
        run_variant(converse, (struct kit_variant) { .cut = cut }, "cut at byte %" PRIu64, cut);
}

static void try_peers(struct converse *converse)
{
    /* however thorough: byte by byte much output takes for ever */
    size_t window = count_step_bytes(converse->script, FB_TEST_ACT_EXPECT) / WINDOWS_MOST + 1;
    struct kit_variant few = { .window = window }, bytes = { .bytes = true };
    struct kit_variant pausing = { .pausing = true }, both = { .bytes = true, .pausing = true };

    run_variant(converse, bytes, "byte by byte");
    run_variant(converse, few, "a peer that takes few bytes at a time");
    run_variant(converse, pausing, "a peer that stops reading");
    run_variant(converse, both, "byte by byte, a peer that stops reading");
}

static void try_trouble(struct converse *converse)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        run_variant(converse, (struct kit_variant) { .trouble = true, .seed = seed },
            "trouble of seed %" PRIu64, seed);
}

static void try_end(struct converse *converse, size_t step, bool half)
{
    struct kit_variant variant = { .ending = KIT_RESETS, .step = step, .half = half };
    const char *place = half ? "within" : "before";

    run_variant(converse, variant, "the peer breaks %s step %zu", place, step);
    variant.ending = KIT_SHUTS;
    run_variant(converse, variant, "the peer ends %s step %zu", place, step);
}

static void try_ends(struct converse *converse)
{
    const struct kit_script *script = converse->script;

    for (size_t i = 0; i < script->n; i += stride_of_script(script, script->n, ENDINGS_MOST)) {
        try_end(converse, i, false);
        if (script->steps[i].act == FB_TEST_ACT_SAY)
            try_end(converse, i, true);
    }
}

/* Kills each worker before each step. */
static void try_deaths(struct converse *converse)
{
    const struct kit_script *script = converse->script;
    size_t stride = stride_of_script(script, script->n, DEATHS_MOST);

    for (size_t i = 0; i < script->n; i += stride)
        for (unsigned worker = 0; worker < script->options->workers; worker++)
            run_variant(converse,
                (struct kit_variant) { .ending = KIT_KILLS, .step = i, .worker = worker },
                "worker %u dies before step %zu", worker, i);
}

/* Runs a variant again and again with its next allocation, or message, until there is none. */
static void try_each(
    struct converse *converse, struct kit_variant variant, const char *what, uint64_t stride)
{
    bool refused = true;

    for (variant.after = 0; refused; variant.after += stride)
        refused = run_variant(converse, variant, "%s %" PRIu64 " %s%s", what, variant.after,
            variant.loses ? "is lost" : "fails",
            variant.pausing ? ", a peer that stops reading" : "")
                      .refused;
}

/* Fails the allocations in turn. With peers that stop reading the worker keeps more output, and so
 * allocates more. */
static void try_refusals(struct converse *converse)
{
    uint64_t stride = stride_of_script(converse->script, converse->allocations, REFUSALS_MOST);
    struct kit_variant plain = { .refuses = true };
    struct kit_variant pausing = { .refuses = true, .pausing = true };
    struct kit_variant start = { .refuses_start = true };

    try_each(converse, plain, "allocation", stride);
    try_each(converse, pausing, "allocation", stride);
    try_each(converse, start, "start: allocation", 1);
}

/* Loses a message between workers, the next in every run. */
static void try_losses(struct converse *converse)
{
    struct kit_variant variant = { .loses = true };

    if (converse->script->options->workers > 1)
        try_each(converse, variant, "message",
            stride_of_script(converse->script, converse->messages, LOSSES_MOST));
}

int fb_test_converse_with(const fb_protocol *protocol, const fb_test_options *options,
    const fb_test_step *steps, size_t n)
{
    const fb_test_options own = kit_options(options);
    const struct kit_script script = { protocol, &own, steps, n };
    struct converse converse = {
        .script = &script,
        .verbose = getenv("FB_TEST_VERBOSE") != NULL,
    };
    struct kit_outcome outcome;

    outcome = run_variant(&converse, (struct kit_variant) { .cut = 0 }, "as it is");
    converse.allocations = outcome.allocations;
    converse.messages = outcome.messages;
    if (converse.failures > 0)
        return converse.failures;
    try_peers(&converse);
    try_cuts(&converse);
    try_trouble(&converse);
    try_ends(&converse);
    try_deaths(&converse);
    try_losses(&converse);
    try_refusals(&converse);
    return converse.failures;
}

int fb_test_converse(
    const fb_protocol *protocol, const char *server, const fb_test_step *script, size_t n)
{
    const fb_test_options options = { .size = sizeof(options), .server = server };

    return fb_test_converse_with(protocol, &options, script, n);
}
