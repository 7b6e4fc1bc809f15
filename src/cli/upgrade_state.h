/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the two master processes of an upgrade, as their control sockets say, or without these the
 * pid files. What a daemon replies is input: a member that is missing counts as empty. */
#pragma once

#include "base/json.h"
#include "settings/cycle.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A master process; all but pid and control is what it has replied. */
struct upgrade_master {
    pid_t pid;     /* -1: none is known */
    char *control; /* path of its control socket, or NULL */
    bool replied;
    bool silent; /* the connection was accepted, and no reply has come in time */
    char version[64];
    char state[32];
    char role[8]; /* in an upgrade "old" or "new"; else "" */
    pid_t other;  /* the other process of the upgrade; 0: there is none */
    bool serves;  /* the new one of the two does */
    bool main;    /* the service manager's main process */
    unsigned workers, accepting;
    int64_t sessions;
    char *text; /* the reply, with its newline */
    size_t text_n;
};

struct upgrade_state {
    bool under_way;
    bool serves; /* the new one does */
    /* With an upgrade under way both pids are known; else `new` is the only process, if any. */
    struct upgrade_master old, new;
    pid_t quitting; /* a process that shuts down beside them, or alone; 0: there is none */
};

/* Asks all that may run with this configuration, until the deadline. -1 without memory. */
int upgrade_state_read(
    struct upgrade_state *state, const struct core_settings *core, int64_t deadline);
void upgrade_state_free(struct upgrade_state *state);

/* Whether the process ends: after its sessions, or at once. */
bool upgrade_master_ends(const struct upgrade_master *master);
