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

static bool has_failed_enough(const struct converse *converse)
{
    return converse->failures >= FAILURES_MOST;
}

static struct kit_outcome run_variant(struct converse *converse, const struct kit_variant *variant)
{
    struct kit_outcome outcome = { .failures = 0 };

    if (has_failed_enough(converse))
        return outcome;
    if (converse->verbose)
        fprintf(stderr, "%s: %s\n", converse->script->protocol->name, variant->name);
    outcome = kit_script_run(converse->script, variant);
    converse->failures += outcome.failures;
    if (has_failed_enough(converse))
        fprintf(stderr, "%s: %d failures, the rest is left out\n", converse->script->protocol->name,
            converse->failures);
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

    for (uint64_t cut = 1; cut < n; cut += stride_of_script(converse->script, n, CUTS_MOST)) {
        struct kit_variant variant = { .cut = cut };

        snprintf(variant.name, sizeof(variant.name), "cut at byte %" PRIu64, cut);
        run_variant(converse, &variant);
    }
}

static void try_peers(struct converse *converse)
{
    /* however thorough: byte by byte much output takes for ever */
    size_t window = count_step_bytes(converse->script, FB_TEST_ACT_EXPECT) / WINDOWS_MOST + 1;
    const struct kit_variant variants[] = {
        { .name = "byte by byte", .bytes = true },
        { .name = "a peer that takes few bytes at a time", .window = window },
        { .name = "a peer that stops reading", .pausing = true },
        { .name = "byte by byte, a peer that stops reading", .bytes = true, .pausing = true },
    };

    for (size_t i = 0; i < countof(variants); i++)
        run_variant(converse, &variants[i]);
}

static void try_trouble(struct converse *converse)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct kit_variant variant = { .trouble = true, .seed = seed };

        snprintf(variant.name, sizeof(variant.name), "trouble of seed %" PRIu64, seed);
        run_variant(converse, &variant);
    }
}

static void try_end(struct converse *converse, size_t step, enum kit_ending ending, bool half)
{
    struct kit_variant variant = { .ending = ending, .step = step, .half = half };

    snprintf(variant.name, sizeof(variant.name), "the peer %s %s step %zu",
        ending == KIT_RESETS ? "breaks" : "ends", half ? "within" : "before", step);
    run_variant(converse, &variant);
}

static void try_ends(struct converse *converse)
{
    const struct kit_script *script = converse->script;

    for (size_t i = 0; i < script->n; i += stride_of_script(script, script->n, ENDINGS_MOST)) {
        try_end(converse, i, KIT_RESETS, false);
        try_end(converse, i, KIT_SHUTS, false);
        if (script->steps[i].act != FB_TEST_ACT_SAY)
            continue;
        try_end(converse, i, KIT_RESETS, true);
        try_end(converse, i, KIT_SHUTS, true);
    }
}

/* Kills each worker before each step. */
static void try_deaths(struct converse *converse)
{
    const struct kit_script *script = converse->script;
    size_t stride = stride_of_script(script, script->n, DEATHS_MOST);

    for (size_t i = 0; i < script->n; i += stride)
        for (unsigned worker = 0; worker < script->options->workers; worker++) {
            struct kit_variant variant = { .ending = KIT_KILLS, .step = i, .worker = worker };

            snprintf(
                variant.name, sizeof(variant.name), "worker %u dies before step %zu", worker, i);
            run_variant(converse, &variant);
        }
}

/* Runs a variant again and again with its next allocation, or message, until there is none. */
static void try_each(
    struct converse *converse, struct kit_variant *variant, const char *what, uint64_t stride)
{
    bool refused = true;

    for (variant->after = 0; refused; variant->after += stride) {
        snprintf(variant->name, sizeof(variant->name), "%s %" PRIu64 " %s%s", what, variant->after,
            variant->loses ? "is lost" : "fails",
            variant->pausing ? ", a peer that stops reading" : "");
        refused = run_variant(converse, variant).refused;
    }
}

/* Fails the allocations in turn. With peers that stop reading the worker keeps more output, and so
 * allocates more. */
static void try_refusals(struct converse *converse)
{
    uint64_t stride = stride_of_script(converse->script, converse->allocations, REFUSALS_MOST);
    struct kit_variant plain = { .refuses = true };
    struct kit_variant pausing = { .refuses = true, .pausing = true };
    struct kit_variant start = { .refuses_start = true };

    try_each(converse, &plain, "allocation", stride);
    try_each(converse, &pausing, "allocation", stride);
    try_each(converse, &start, "start: allocation", 1);
}

/* Loses a message between workers, the next in every run. */
static void try_losses(struct converse *converse)
{
    struct kit_variant variant = { .loses = true };

    if (converse->script->options->workers > 1)
        try_each(converse, &variant, "message",
            stride_of_script(converse->script, converse->messages, LOSSES_MOST));
}

int fb_test_converse_with(const fb_protocol *protocol, const fb_test_options *options,
    const fb_test_step *steps, size_t n)
{
    static const struct kit_variant plain = { .name = "as it is" };
    const fb_test_options own = kit_options(options);
    const struct kit_script script = { protocol, &own, steps, n };
    struct converse converse = {
        .script = &script,
        .verbose = getenv("FB_TEST_VERBOSE") != NULL,
    };
    struct kit_outcome outcome;

    outcome = run_variant(&converse, &plain);
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
