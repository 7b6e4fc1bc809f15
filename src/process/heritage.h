/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of a worker: the heritage, everything a worker gets from the master across fork(), and
 * the privileges to give up. A worker uses nothing else, and closes every other descriptor before
 * the begin. The user is changed last, and never changed back. */
#pragma once

#include "base/log.h"
#include "base/memory.h"
#include "process/descriptors.h"
#include "settings/cycle.h"
#include "shm/shared.h"

struct worker;

/* Bells wake the workers of a generation. The master opens all before the first fork, for every
 * worker to inherit, and rings none. A bell carries no data, and the count means nothing: all
 * workers can write to a bell. */
struct bells {
    int *fds; /* watched descriptors, by the worker's number among worker_processes, followed by
                 ringing descriptors, if these differ; NULL: no bells */
    unsigned n;
    unsigned fd_n; /* all descriptors */
};

/* More workers have no bells: each worker keeps the descriptors of all. */
#define BELLS_MAX 256

/* Opens n bells, or none (no descriptors, no memory): wake-ups are later without bells. */
void bells_open(struct bells *bells, unsigned n);
void bells_close(struct bells *bells);
/* Rings, and never waits. A full count is emptied first. */
void bells_ring(const struct bells *bells, unsigned i);
/* Empties the count of a rung bell. */
void bells_quiet(const struct bells *bells, unsigned i);

/* The work of a generation's process. */
enum heritage_task {
    TASK_ALL,   /* serves and asks, as a single process */
    TASK_SERVE, /* serves clients */
    TASK_KEEP,  /* a helper: shakes hands for the worker of the same number */
    TASK_ASK,   /* a helper: only asks for the names of the servers of groups */
};

struct heritage {
    struct cycle *cycle; /* with open listeners and logs */
    struct shared *shared;
    struct slot_id slot;
    enum heritage_task task;
    unsigned index;              /* number among worker_processes, from 0; helpers' come last */
    uint32_t place;              /* the number together with the generation's: slot_place() */
    const struct bells *bells;   /* the generation's; NULL in a single process */
    int channel;                 /* the worker's end; -1 in a single process */
    const struct memory *memory; /* memory of connections; NULL: the allocator's */
    struct diag *diag;           /* collects reasons of a failed start; or NULL */
    uint32_t diag_session;       /* session of `diag` for these messages */
    bool simulated;              /* a test's worker: its process is not confined */
    /* the source of random numbers; NULL: the system's */
    void (*random)(struct worker *worker, void *p, size_t n);
    /* takes the mistakes of checked protocols; NULL: the log does, and the worker aborts */
    void (*mistake)(struct worker *worker, const char *text);
    void *tickets; /* a keeper's memory for the keys of tickets; NULL: its own */
    /* keepers' memory for pairs, and the first keeper's of the generation before, if any */
    struct tls_memory pairs, former_pairs;
    struct descriptors descriptors; /* the worker's descriptors, beside the standard ones */
};

/* Opens the process's log: the configuration's, and the collector of a failed start's reasons. */
void heritage_open_log(const struct heritage *heritage, struct log *log);
/* Puts the level in force that the master has published for all logs, or takes it back. */
void heritage_override_log(const struct heritage *heritage, struct log *log);
/* Names the descriptors that the worker keeps: channel, bells, logs, listeners, and `opened`. */
void heritage_add_descriptors(struct heritage *heritage, const struct descriptors *opened);
/* Adds the descriptors kept by workers of an earlier configuration, `before`, to `opened`: a
 * library used by modules of both stays loaded, with the descriptors of its first load. */
void heritage_keep_opened(
    struct descriptors *opened, const struct descriptors *before, const struct cycle *before_cycle);
/* Confines this process as worker number `index`, or as a helper, beyond worker_processes: limits,
 * priority, processors, user, directory. -1 after an emerg line where it must not go on. */
int process_confine(const struct cycle *cycle, unsigned index, struct log *log);
/* Sets the limits alone, for a single process, which keeps its user. */
void process_limit(const struct cycle *cycle, struct log *log);
