/* SPDX-License-Identifier: BSD-2-Clause */
/* The master processes of a configuration: at its pid file and control socket, at PATH.oldbin (the
 * old process of an upgrade), and at PATH.quit.PID (quitting processes). A killed process leaves
 * its names: a pid, for a signal, is left out where the lock or the list of workers shows that. */
#pragma once

#include "settings/cycle.h"

#include <stdint.h>
#include <sys/types.h>

enum masters_place {
    MASTERS_FIRST,    /* at the paths of the configuration */
    MASTERS_OLD,      /* the old process of an upgrade */
    MASTERS_QUITTING, /* quitting: left the paths, with sessions */
};

/* Names of a process: a pid, a control socket, or both. */
struct masters_entry {
    enum masters_place place;
    pid_t pid;        /* from the pid file, or from the file's name; -1: unknown */
    char *control;    /* path of the control socket, or NULL */
    int64_t since_ns; /* time of the latest name, since the epoch */
};

struct masters {
    struct masters_entry *list; /* by place; quitting processes latest first */
    unsigned n;
};

/* Finds the processes. Returns -1 after an emerg line, with an empty list. */
int masters_find(struct masters *masters, const struct core_settings *core, struct log *log);
void masters_free(struct masters *masters);
/* Returns the process at this place; without pid and control socket for none. */
struct masters_entry masters_at(const struct masters *masters, enum masters_place place);
/* Returns the running process that has begun to quit last, or NULL. */
const struct masters_entry *masters_quitting(const struct masters *masters);
