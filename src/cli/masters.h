/* SPDX-License-Identifier: BSD-2-Clause */
/* The master processes that may run with a configuration's pid file and control socket: the one at
 * these paths, the old one of an upgrade at PATH.oldbin, and at PATH.quit.PID each one that lets
 * its sessions end after a quit. Names are looked for: a process that was killed has left its own,
 * and whoever connects finds nobody there. A pid, for a signal, is left out where nobody has the
 * lock of the pid file, or the list of workers says that its process has ended. */
#pragma once

#include "settings/cycle.h"

#include <stdint.h>
#include <sys/types.h>

enum masters_place {
    MASTERS_FIRST,    /* at the paths of the configuration */
    MASTERS_OLD,      /* the old one of an upgrade */
    MASTERS_QUITTING, /* left the paths, and lets its sessions end */
};

/* Names of one process; at least one of pid and control socket is there. */
struct masters_entry {
    enum masters_place place;
    pid_t pid;        /* read from the pid file, or from its name; -1: not known */
    char *control;    /* path of the control socket; NULL: there is none */
    int64_t since_ns; /* when the latest of its names was made, since the epoch */
};

struct masters {
    struct masters_entry *list; /* by place; of quitting ones the latest first */
    unsigned n;
};

/* Finds them. Returns -1 without memory, and then there are none. */
int masters_find(struct masters *masters, const struct core_settings *core);
void masters_free(struct masters *masters);
/* Returns the names of the process at this place; without a pid and a control socket where there is
 * none. */
struct masters_entry masters_at(const struct masters *masters, enum masters_place place);
/* Returns the process that has begun to quit last, of those that run; NULL where there is none. */
const struct masters_entry *masters_quitting(const struct masters *masters);
