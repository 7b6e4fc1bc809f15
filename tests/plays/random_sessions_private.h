/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of random plays with whole workers. */
#pragma once

#include "plays/random_sessions.h"
#include "plays/sessions.h"

#define REST_MS 20000 /* for everything but sessions to end */

enum {
    LISTENER_UNIX,
    LISTENER_TCP,
    LISTENER_REUSEPORT,
    LISTENER_PROXY, /* whose sessions are passed to a server */
    LISTENERS,      /* listeners of every configuration */
    LISTENER_EXTRA = LISTENERS,
    LISTENERS_ALL,
};

struct random_sessions {
    struct play *play;
    const struct random_sessions_options *options;
    struct play_sessions sessions;
    struct address listeners[LISTENERS_ALL];
    char names[LISTENERS_ALL][128];
    int claim; /* a socket of the listeners' address */
    unsigned act, step;
    const char *last;
    /* The configuration file */
    unsigned workers, connections;
    bool has_extra;
    /* The transition of the act */
    unsigned transition, stage, tries;
    struct play_process *old, *new;
    bool over;
    bool drained;      /* a master process was told to drain, and serves again */
    bool listens;      /* a master process listens, and will: to connect succeeds */
    bool keeps_extra;  /* the extra listener stays open for the whole act */
    bool small;        /* a configuration of the play allowed full workers */
    bool noisy;        /* workers are killed and stopped */
    bool terminated;   /* sessions were ended at once */
    pid_t killed[256]; /* workers possibly killed together with their sessions */
    unsigned killed_n;
    /* How long clients wait (sessions_wait.c) */
    uint64_t generation; /* the only generation with clients; 0: none, or several */
    uint64_t quiet_ms;   /* time without a change or a disturbance of the generation */
};

uint32_t random_sessions_below(struct random_sessions *random, uint32_t n);
bool random_sessions_one_in(struct random_sessions *random, uint32_t n);
NORETURN void random_sessions_give_up(const struct random_sessions *random, const char *what);
/* Starts the daemon. */
void random_sessions_start(struct random_sessions *random);

/* Connects a few clients at once. */
void random_sessions_burst(struct random_sessions *random);
/* Receives the bytes of a session, which the daemon may not have ended. */
void random_sessions_receive(struct random_sessions *random, struct play_session *session);

/* rest.c: checks a daemon at rest, and closes sessions ended by the daemon. */
void rest_check(struct random_sessions *random);
/* Whether a worker takes clients, and has room for one at the listener. */
bool rest_has_room(const struct play_process *process, unsigned listener);

/* sessions_wait.c: the clock is about to move on: checks how long clients have waited. */
void wait_check(struct play *play, uint64_t ms);

/* transitions.c */

/* Writes a configuration at random. */
void transition_configure(struct random_sessions *random);
/* Chooses the transition of an act. */
void transition_choose(struct random_sessions *random);
/* Advances the transition, if possible; true: done. */
bool transition_advance(struct random_sessions *random);
/* Kills, stops or tells a worker to end. */
void transition_disturb_worker(struct random_sessions *random);
