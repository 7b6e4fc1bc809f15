/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a script, the peers, and the expected bytes. */
#pragma once

#include "kit/script.h"

struct kit_run {
    const struct kit_script *script;
    const struct kit_variant *variant;
    fb_test *test;
    fb_test_peer *peers[FB_TEST_PEERS];
    size_t taken[FB_TEST_PEERS]; /* expected bytes that each peer has received */
    unsigned now;                /* number of the peer of the running steps */
    size_t step;                 /* number of the current step, from 0 */
    uint64_t said;               /* bytes sent by all peers */
    size_t logged;               /* expected bytes of the access log */
    int failures;
    bool over; /* the script cannot go on */
};

/* Number i of up to four in a step's `n`. */
static inline unsigned kit_third_of(uint64_t n, unsigned i)
{
    return (unsigned)(n >> 16 * i & 0xffff);
}

/* Notes that the current step has failed, and ends the run; prints a line unless the variant lets
 * steps fail. The bytes received until then are checked nevertheless. */
void kit_run_fail(struct kit_run *run, const char *format, ...) PRINTF_FORMAT(2, 3);

/* Adds a peer as the current peer. */
fb_test_peer *kit_run_add_peer(struct kit_run *run, fb_test_peer *peer);
/* Returns the current peer, a new client where there is none. */
fb_test_peer *kit_run_peer(struct kit_run *run);
void kit_run_choose_peer(struct kit_run *run, uint64_t i);
/* Pause and resume the output to a peer, which may be NULL. */
void kit_run_pause(const struct kit_run *run, fb_test_peer *peer);
void kit_run_resume(const struct kit_run *run, fb_test_peer *peer);
void kit_run_each_peer(
    const struct kit_run *run, void (*visit)(const struct kit_run *run, fb_test_peer *peer));

/* Runs a step of an expectation; false when the step is of no such kind. */
bool kit_run_expect(struct kit_run *run, const fb_test_step *step);
/* Checks what all peers have received. */
void kit_run_check_heard(struct kit_run *run);
