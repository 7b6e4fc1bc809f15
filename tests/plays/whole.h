/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole worker of a play: worker_main(), in a thread with a table of descriptors, on real sockets
 * and on the play's clock. Memory is not copied on write, so the worker has a separate
 * configuration, loaded again from the text of the master's, with the descriptors of the master's
 * listeners at the moment of the fork, and maps the same zones.
 *
 * The worker gives up the turn when waiting for events, and at random before each accept, receive,
 * send and close. */
#pragma once

#include "plays/play.h"

struct io_result;
struct source;

struct play_whole {
    struct heritage heritage;
    struct bells bells;
    ino_t stats; /* the file of its statistics, which workers of a daemon share */
    bool waits;  /* within its wait for events */
    bool woken;  /* by an exclusive watch; the kernel wakes only one */
};

/* In the master's thread, by fork(): begins the worker of the heritage. */
void play_whole_begin(struct play_process *process, const struct heritage *heritage);
void play_whole_destroy(struct play_whole **whole);
/* Whether an event awaited by the worker has come. */
bool play_whole_is_woken(struct play_process *process);
/* The counter of the worker's slot. */
uint64_t play_whole_counter(const struct play_process *process, enum counter counter);

/* mechanism.c: epoll, whose waits are the play's; with or without exclusive watches. */
const struct mechanism *play_mechanism(bool exclusive);

/* Exclusive watches of listeners (exclusive.c): which waiting worker a client wakes is modelled as
 * Linux does it, because no worker of a play waits in the kernel. */

/* A listener that a worker watches exclusively. */
struct play_watch {
    TAILQ_ENTRY(play_watch) link; /* in the kernel's order of waking */
    struct play_process *process;
    struct source *source;
    ino_t socket;
    bool told; /* the next wait looks at the listener */
};

void play_watch_add(struct play_process *process, struct source *source);
void play_watch_remove(struct play_process *process, const struct source *source);
/* The watches of an exited process. */
void play_watch_remove_all(struct play_process *process);
/* Whether a client waits at a listener of the process that was notified. */
bool play_watch_has_event(struct play_process *process);
/* Calls `report` for each of these. */
void play_watch_report(
    struct play_process *process, void (*report)(void *arg, struct source *source), void *arg);
/* In the test: takes a descriptor of a listener, to see when clients come to it. */
void play_watch_take(struct play *play, int fd);
/* In the test: reports arrived clients to watches. To be called at any possible arrival. */
void play_watch_step(struct play *play);
