/* SPDX-License-Identifier: BSD-2-Clause */
/* An upgrade: the master process starts the binary now at the path, and hands over the listening
 * sockets. The new master process serves beside the old one until either is told to quit; a
 * failure before that is a rollback, and leaves the old process unchanged. At most one of the two
 * is the service manager's main process. */
#pragma once

#include "base/check.h"
#include "control/control.h"
#include "control/endpoints.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"
#include "upgrade/inboxes.h"
#include "upgrade/link.h"
#include "upgrade/sockets.h"

#define UPGRADE_KIND KIND('U', 'p', 'g', 'r')

/* From STARTING on the upgrade is pending: the new process runs and does not serve yet, no reload
 * begins, and the exit waits for its end. */
enum upgrade_phase {
    UPGRADE_NONE,         /* no other master process runs */
    UPGRADE_JOINING,      /* new: started, and does not serve yet */
    UPGRADE_BESIDE,       /* new: serves, and the old process still runs */
    UPGRADE_HANDED_OVER,  /* old: the new process serves, at the paths of both endpoints */
    UPGRADE_STARTING,     /* old: the new process was started */
    UPGRADE_ROLLING_BACK, /* old: the new process was told to end, and is killed unless it does */
    UPGRADE_PHASES,
};

/* Operations of the host. */
struct upgrade_ops {
    /* Whether a generation serves, and the daemon does not end. */
    bool (*serves)(void *host);
    /* Names `to` to the service manager as the main process; `stored`: drops our copies of
     * listening sockets, because the process stores own sockets. */
    void (*leave_main)(void *host, pid_t to, bool stored);
    /* Tells the service manager of us as the main process. */
    void (*become_main)(void *host);
};

struct upgrade {
    unsigned kind;
    enum upgrade_phase phase;
    const struct upgrade_ops *ops;
    void *host;
    struct log *log;
    struct pool *pool;
    struct endpoints *endpoints; /* handed over to the new process */
    struct control *clients;     /* some wait for the outcome */
    const struct binary *binary;
    struct execution execution;      /* state of the new process, kept until serving */
    bool main;                       /* we are the service manager's main process */
    bool main_owed;                  /* the other process must learn to be the main process */
    pid_t other;                     /* pid of the other master process; 0: none, or none yet */
    struct upgrade_link link;        /* to it */
    struct upgrade_sockets sockets;  /* the listening sockets of the other process */
    struct upgrade_inboxes inboxes;  /* the workers' messages, as far as known */
    char *controls[CONTROL_SOCKETS]; /* paths of the other control sockets, or NULL */
    struct timer deadline;           /* for STARTING, and for ROLLING_BACK until the kill */
    bool late;                       /* the new process has not served in time */
    struct timer others_left;        /* polls for the end of workers of an ended master process */
    struct timer lost_paths;         /* when to see whether they still listen on paths of ours */
    unsigned lost_paths_tries;       /* how often to see that yet */
    struct diag *diag;               /* messages of a failed start, or NULL */
    uint32_t diag_session;
};

/* Takes operations, host, binary, pool, endpoints and clients of `from`, the link of `state`, if a
 * master process has started us, and the diagnostics of the pool's log. */
void upgrade_init(struct upgrade *upgrade, const struct upgrade *from, struct exec_state *state);
void upgrade_check(const struct upgrade *upgrade);
/* Begins or refuses an upgrade (`refused`, or NULL), to serve within `timeout_ms` (0: no limit). */
void upgrade_begin(struct upgrade *upgrade, const char *refused, int64_t timeout_ms);
/* Handles all received messages of the other process. */
void upgrade_receive(struct upgrade *upgrade);
/* Sends the serving generation's listening sockets, our form of messages and our control path. */
void upgrade_announce(struct upgrade *upgrade);
/* Sends the sockets that we listen on from now on (NULL: none), before we close sockets, and then
 * reads the link: of two processes that close a unix socket at once, at least the second learns of
 * the first and removes the path. */
void upgrade_tell_listeners(struct upgrade *upgrade, const struct listeners *listeners);
/* Makes the other process's workers rescan after the withdrawal of a worker of ours. */
void upgrade_send_rescan(struct upgrade *upgrade);
/* Names the main process over the link, once the service manager has been told, which ignores
 * earlier messages. Called in each wake-up while `main_owed`. */
void upgrade_tell_main(struct upgrade *upgrade);
/* Notes a child's exit: after the new process's exit the old process continues alone. */
void upgrade_reaped(struct upgrade *upgrade, pid_t pid, int status);
/* Begins the end of the daemon with open listeners: gives the queues to the other process, and
 * announces that ours are closed; the last process to close a unix socket removes the path. With
 * `both` the other process ends too: the service manager knows one process alone. */
void upgrade_ending(struct upgrade *upgrade, bool gracefully, bool both);
/* Ends: the other process, if still running, becomes the main process. */
void upgrade_ended(struct upgrade *upgrade);
/* Frees all; `failed`: and sends the old process the reason of a failed start. */
void upgrade_done(struct upgrade *upgrade, bool failed);
/* Whether we are the new process of an upgrade. */
bool upgrade_is_new(const struct upgrade *upgrade);
