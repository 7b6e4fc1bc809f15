/* SPDX-License-Identifier: BSD-2-Clause */
/* The pid file and the control sockets, by which the outside finds the daemon. A start or a
 * reload prepares new paths, which can fail, then publishes or undoes them. In an upgrade the
 * old process adds second names, leaves the first names to the new process, and takes them back
 * when the new process has ended; endpoints that were handed over are never prepared or
 * published. A graceful end leaves the first names and the lock to the next start; a resume
 * publishes them again. */
#pragma once

#include "control/socket.h"
#include "settings/cycle.h"

enum endpoints_phase {
    ENDPOINTS_OURS,        /* at their names alone */
    ENDPOINTS_SHARED,      /* with second names too, for a begun upgrade */
    ENDPOINTS_HANDED_OVER, /* at their second names alone; the new process has the first names */
    ENDPOINTS_ASIDE,       /* at their second names alone; the next start takes the first names */
    ENDPOINTS_PHASES,
};

struct endpoints {
    unsigned kind;
    enum endpoints_phase phase;
    struct log *log;
    struct pidfile pidfile;      /* in force, locked; its path is allocated */
    struct pidfile next_pidfile; /* prepared, not in force yet; or none */
    /* in force, or none; and prepared, not in force yet, or none */
    struct control_socket controls[CONTROL_SOCKETS], next_controls[CONTROL_SOCKETS];
};

/* Takes the locked pid file of the start. */
void endpoints_init(struct endpoints *endpoints, const struct pidfile *pidfile, struct log *log);
void endpoints_check(const struct endpoints *endpoints);
/* Makes what is to be at this configuration's paths and is not there yet; control sockets at the
 * paths `replaced` (NULL, or for each a path or NULL) make way. -1 after an emerg line. */
int endpoints_prepare(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced);
/* Puts prepared endpoints in force, after preparing missing ones, and removes replaced endpoints.
 * -1 after an emerg line, with nothing changed and nothing prepared. */
int endpoints_publish(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced);
/* endpoints_publish() for a configuration that serves already: a failure is only logged. */
void endpoints_publish_again(
    struct endpoints *endpoints, const struct core_settings *core, char *const *replaced);
/* Removes what was prepared and not published. */
void endpoints_undo(struct endpoints *endpoints);
/* Adds second names; -1 after an emerg line. */
int endpoints_prepare_hand_over(struct endpoints *endpoints);
/* Leaves the first names to the new process. */
void endpoints_hand_over(struct endpoints *endpoints);
/* Takes the first names again, unless left to the next start. */
void endpoints_take_back(struct endpoints *endpoints);
/* Leaves the first names to the next start, which waits for the lock. */
void endpoints_step_aside(struct endpoints *endpoints);
/* Removes all at the daemon's end. */
void endpoints_remove(struct endpoints *endpoints);
