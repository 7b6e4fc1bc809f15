/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of random plays. */
#pragma once

#include "base/compiler.h"
#include "plays/play.h"
#include "plays/random.h"

struct random_play {
    struct play *play;
    const struct random_play_options *options;
    unsigned act, step;
    const char *last;     /* the latest disturbance */
    bool may_end;         /* the daemon was told to end, or its master process was killed */
    bool may_not_accept;  /* workers were told to drain, and are not replaced */
    bool upgraded;        /* two master processes may run */
    bool faults;          /* calls fail, and somebody removes files */
    bool meddled;         /* somebody has removed files of the daemon */
    bool lost;            /* a worker has died together with its sessions */
    size_t logged;        /* checked bytes of the error log */
    unsigned descriptors; /* open in a master process at rest, under the plain configuration */
};

/* Fails the test: reports the fault, the disturbance and the seed. */
NORETURN void random_give_up(const struct random_play *random, const char *what);

static inline uint32_t random_of(struct random_play *random, uint32_t n)
{
    return random_below(&random->play->state, n);
}

static inline bool random_one_in(struct random_play *random, uint32_t n)
{
    return random_of(random, n) == 0;
}

/* disturb.c: makes a random disturbance of the daemon. */
void random_disturb(struct random_play *random);
/* A worker was forked, and may misbehave from the start: play->forked. */
void random_worker_forked(struct play *play, struct play_process *process);
/* A master process makes a call, in which a signal may come: play->called. */
void random_call_made(struct play *play, struct play_process *process);

/* rest.c: checks the invariants of a state with all processes waiting. */
void random_check_moment(const struct random_play *random);
/* Lets the daemon come to rest, and checks what must hold then. */
void random_rest(struct random_play *random);
/* Ends the daemon, and checks for leftovers. */
void random_end(struct random_play *random);
/* Starts the daemon with the plain configuration. */
void random_start(struct random_play *random);
