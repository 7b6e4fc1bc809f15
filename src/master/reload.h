/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of the daemon and of a reload. The function that learns of the success or failure of a
 * step says so: no phase is inferred. */
#pragma once

#include "base/diag.h"
#include "configuration/config_check.h"
#include "event/timer.h"

#include <stdbool.h>
#include <stdint.h>

struct master;
struct pool;

enum master_phase {
    MASTER_RUNS,
    MASTER_QUITS,      /* sessions may end by themselves */
    MASTER_RESUMES,    /* quits, while a generation for a resume starts */
    MASTER_TERMINATES, /* workers end at once */
};

enum reload_phase {
    RELOAD_IDLE,
    RELOAD_CHECKING,  /* another process reads the configuration */
    RELOAD_PREPARING, /* the new generation sets itself up, and may still be taken back */
    RELOAD_COMMITTED, /* the new generation has the listeners, and begins to accept */
    RELOAD_PROVING,   /* the new generation serves, and must not crash at once */
    /* every new worker has crashed: the configuration before starts again */
    RELOAD_GOING_BACK,
};

/* Outcome of the latest reload. */
struct reload_status {
    bool any, ok;
    int64_t at_ms;             /* since the epoch */
    char why[DIAG_REASON_MAX]; /* why it failed */
};

struct reload {
    enum reload_phase phase;
    struct config_check check;
    struct timer deadline; /* deadline of the check */
    struct reload_status result;
    unsigned tried, failed; /* since the start */
};

/* Changes the phase and the title of the daemon. */
void master_set_phase(struct master *master, enum master_phase phase);
void reload_set_phase(struct reload *reload, enum reload_phase phase);
/* Asserts the agreement of phase, check and the pool's starting generation. */
void reload_check(const struct reload *reload, const struct pool *pool);
/* Begins a reload, when none is under way. */
void reload_begin(struct master *master);
/* The configuration check has exited with the waitpid() status. */
void reload_checked(struct master *master, int status);
/* The new configuration serves (`ok`), or the previous one stays in force, after a log line. */
void reload_end(struct master *master, bool ok);
/* The daemon ends: a running check is of no interest any more. */
void reload_cancel(struct master *master);
