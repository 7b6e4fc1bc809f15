/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoints by which the outside finds the daemon: the pid file and the control socket. Both
 * go through the same life. A start or a reload prepares what is to be at new paths, which can
 * fail; publishing it replaces what was there before, and undoing leaves that alone. In an
 * upgrade the old process gives both second names, leaves the first ones to the new process, and
 * takes them back when that has ended. Endpoints that were handed over are never prepared or
 * published: they are the other process's. */
#pragma once

#include "base/log.h"
#include "control/socket.h"
#include "process/pidfile.h"

#include <stdbool.h>

enum endpoints_phase {
    ENDPOINTS_OURS,        /* at their names alone */
    ENDPOINTS_SHARED,      /* with second names too, for an upgrade that has begun */
    ENDPOINTS_HANDED_OVER, /* at their second names alone: the first ones are the new process's */
    ENDPOINTS_PHASES,
};

union endpoint_file {
    struct pidfile pidfile;
    struct control_socket control;
};

/* Operations of a kind of endpoint. */
struct endpoint_ops {
    void (*init)(union endpoint_file *file);
    /* Whether there is one. */
    bool (*exists)(const union endpoint_file *file);
    /* Whether it is at this path, however that is spelled. */
    bool (*is_at)(const union endpoint_file *file, const char *path);
    /* Makes it; with `replace` one that is in use at the path makes way. -1 after an emerg line. */
    int (*create)(union endpoint_file *file, const char *path, bool replace, struct log *log);
    /* Makes it visible to the outside, if creating it did not; -1 after an emerg line. */
    int (*show)(union endpoint_file *file, struct log *log);
    void (*remove)(union endpoint_file *file, struct log *log);
    void (*close)(union endpoint_file *file); /* in a child */
    /* The steps of a hand-over; -1 after an emerg line. */
    int (*link_old)(union endpoint_file *file, struct log *log);
    void (*leave_path)(union endpoint_file *file, struct log *log);
    void (*restore_path)(union endpoint_file *file, struct log *log);
};

struct endpoint {
    const struct endpoint_ops *ops;
    union endpoint_file current; /* in force: the outside finds us here */
    union endpoint_file next;    /* prepared, until it is in force */
};

struct endpoints {
    unsigned kind;
    enum endpoints_phase phase;
    struct endpoint pidfile, control;
};

/* The paths that a configuration wants. */
struct endpoint_paths {
    const char *pidfile;
    const char *control;  /* NULL: no socket */
    const char *replaced; /* a control socket that will make way for ours, or NULL */
};

/* Takes the locked pid file of the start. */
void endpoints_init(struct endpoints *endpoints, const struct pidfile *pidfile);
void endpoints_check(const struct endpoints *endpoints);
/* Makes what is to be at these paths and is not there yet; -1 after an emerg line. */
int endpoints_prepare(
    struct endpoints *endpoints, const struct endpoint_paths *paths, struct log *log);
/* Puts in force what is prepared, and removes what it replaces; prepares first what is not. -1
 * after an emerg line, and then nothing has changed. */
int endpoints_publish(
    struct endpoints *endpoints, const struct endpoint_paths *paths, struct log *log);
/* Removes what was prepared and not published. */
void endpoints_undo(struct endpoints *endpoints, struct log *log);

/* Gives them second names; -1 after an emerg line. */
int endpoints_prepare_hand_over(struct endpoints *endpoints, struct log *log);
/* Leaves the first names to the new process. */
void endpoints_hand_over(struct endpoints *endpoints, struct log *log);
/* Takes the first names again, in any phase. */
void endpoints_take_back(struct endpoints *endpoints, struct log *log);

/* Removes all at the daemon's end. */
void endpoints_remove(struct endpoints *endpoints, struct log *log);
/* Closes all in a child. */
void endpoints_close(struct endpoints *endpoints);
