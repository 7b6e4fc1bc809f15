/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a script, as its files share it: script.c runs the steps, script_check.c checks what
 * the peers have received when the run is over. */
#pragma once

#include "kit/converse.h"

struct kit_run {
    const struct kit_script *script;
    const struct kit_variant *variant;
    fb_test *test;
    fb_test_peer *peers[FB_TEST_PEERS];
    size_t taken[FB_TEST_PEERS]; /* expected bytes that each peer has received */
    unsigned now;                /* number of the peer whose steps are run */
    size_t step;                 /* number of the current step, from 0 */
    uint64_t said;               /* bytes sent by all peers */
    size_t logged;               /* bytes of the access log that were expected */
    int failures;
    bool over; /* the script cannot go on */
};

/* Number i of the up to four that a step has in its `n`. */
static inline unsigned kit_third_of(uint64_t n, unsigned i)
{
    return (unsigned)(n >> 16 * i & 0xffff);
}

/* Whether this variant lets a step fail. The bytes received until then are checked nevertheless. */
bool kit_run_is_cut_short(const struct kit_run *run);
/* Lets a peer, which may be NULL, take all that the protocol sends. */
void kit_run_resume(const struct kit_run *run, fb_test_peer *peer);
void kit_run_each_peer(
    const struct kit_run *run, void (*visit)(const struct kit_run *run, fb_test_peer *peer));
/* Fails, and returns false, when the current peer has received more than was expected. */
bool kit_run_expect_no_more(struct kit_run *run);

/* access.c: Whether the next line of the access log is the one that the step expects; if not,
 * *found is that one, which the caller frees. */
bool kit_run_has_line(struct kit_run *run, const fb_test_step *step, char **found);

/* script_check.c: Checks what all peers have received. */
void kit_run_check_heard(struct kit_run *run);
