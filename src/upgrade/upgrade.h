/* SPDX-License-Identifier: BSD-2-Clause */
/* An upgrade: the master process starts the binary that lies at its path now, and hands it the
 * listening sockets. The new master process serves beside the old one until one of the two is
 * told to quit. Until the new one serves a failure is a rollback, which leaves the old one as it
 * was; afterwards the end of either leaves the other alone. At any time at most one of the two
 * is the service manager's main process. Nothing here knows the master: the host is reached
 * through operations that it hands down. */
#pragma once

#include "base/check.h"
#include "base/diag.h"
#include "base/log.h"
#include "event/timer.h"
#include "net/listener.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"
#include "upgrade/inboxes.h"
#include "upgrade/link.h"
#include "upgrade/sockets.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define UPGRADE_KIND KIND('U', 'p', 'g', 'r')

/* From STARTING on the upgrade is pending: we are the old process, the new one runs and does not
 * serve yet, no reload begins, and our exit waits for its end. */
enum upgrade_phase {
    UPGRADE_NONE,         /* no other master process runs */
    UPGRADE_JOINING,      /* new: started by the old one, we do not serve yet */
    UPGRADE_BESIDE,       /* new: we serve, and the old one still runs */
    UPGRADE_HANDED_OVER,  /* old: the new one serves, and has the pid file and the control socket */
    UPGRADE_STARTING,     /* old: the new one was started */
    UPGRADE_ROLLING_BACK, /* old: the new one was told to end, and is killed if it does not */
    UPGRADE_PHASES,
};

struct pool;

/* Operations of the host; `host` is its own pointer, given at upgrade_init(). */
struct upgrade_ops {
    /* The listeners of the configuration that serves, or NULL before the first does. */
    const struct listeners *(*listeners)(void *host);
    /* Returns the path of our control socket, or NULL. */
    const char *(*control_path)(void *host);
    /* Writes what the new process needs; `link` leads to us. */
    void (*write_state)(void *host, struct exec_state_writer *state, int link);
    /* Gives the pid file and the control socket second names; -1 after an emerg line. */
    int (*prepare_hand_over)(void *host);
    /* Leaves the first names to the new process. */
    void (*hand_over)(void *host);
    /* Takes the first names again, and gives up the second ones. */
    void (*take_back)(void *host);
    /* The upgrade that clients have asked for is refused, has begun, and has come to an outcome. */
    void (*refused)(void *host, const char *why);
    void (*begun)(void *host);
    void (*ended)(void *host, bool ok, const char *why, const struct diag *diag);
    /* Names `to` to the service manager as the main process; `stored`: and has our copies of
     * listening sockets dropped, because that process stores its own. */
    void (*leave_main)(void *host, pid_t to, bool stored);
    /* We are the service manager's main process from now on. */
    void (*become_main)(void *host);
    /* The old one is alone again, by the new one's end. */
    void (*left_alone)(void *host);
    /* The new one quits: it listens no more, and may have sessions for long. */
    void (*other_quits)(void *host);
    /* Makes the workers look at their listeners, which another process has released. */
    void (*rescan)(void *host);
    /* Takes a listening socket that only the other process had. */
    void (*adopt_socket)(void *host, int fd);
};

struct upgrade {
    unsigned kind;
    enum upgrade_phase phase;
    const struct upgrade_ops *ops;
    void *host;
    struct log *log;
    struct timers *timers;
    struct pool *pool; /* whose workers exchange messages with those of the other process */
    const struct binary *binary;    /* to be executed */
    struct execution execution;     /* given to the new process, kept until it serves */
    bool main;                      /* we are the service manager's main process */
    bool main_owed;                 /* the other one is, and is told so when the manager has been */
    pid_t other;                    /* the other master process; 0: there is none, or none yet */
    struct upgrade_link link;       /* to it */
    struct upgrade_sockets sockets; /* the listening sockets of the other process */
    struct upgrade_inboxes inboxes; /* the workers' messages, as far as known */
    char *control;                  /* path of the other process's control socket, or NULL */
    struct timer deadline;          /* for STARTING, and for ROLLING_BACK until the kill */
    bool late;                      /* the new process has not served in time */
    struct diag *diag;              /* why the new one could not start, or NULL */
    uint32_t diag_session;
};

/* Takes the link of `state`, if another master process has started us, and the diagnostics of the
 * pool's log. */
void upgrade_init(struct upgrade *upgrade, const struct upgrade_ops *ops, void *host,
    struct pool *pool, struct exec_state *state, const struct binary *binary);
/* Asserts what must hold between two calls; of messages of the other process only how members fit
 * together. */
void upgrade_check(const struct upgrade *upgrade);
/* Begins an upgrade, or refuses it for the reason given (NULL: for reasons of its own). The new
 * process has `timeout_ms` (0: for ever) to serve. */
void upgrade_begin(struct upgrade *upgrade, const char *refused, int64_t timeout_ms);
/* Handles all messages that have come from the other process. */
void upgrade_receive(struct upgrade *upgrade);
/* Tells the other process that another generation serves, and on which sockets. */
void upgrade_announce(struct upgrade *upgrade);
/* Tells the other process on which sockets we listen from now on, NULL: on none, before we give up
 * others, and then looks what it has told us: of two that give up the same socket at once at least
 * one learns that the other does, and removes the path of a unix socket. */
void upgrade_tell_listeners(struct upgrade *upgrade, const struct listeners *listeners);
/* Makes the other process's workers look at their listeners, from which one of ours has
 * withdrawn. */
void upgrade_send_rescan(struct upgrade *upgrade);
/* Tells the other process that it is the main one, as soon as the service manager has been told:
 * what it sends the manager before would be ignored. Called in each wake-up. */
void upgrade_tell_main(struct upgrade *upgrade);
/* A child has exited: if it is the new process, the old one goes on alone. */
void upgrade_reaped(struct upgrade *upgrade, pid_t pid, int status);
/* The daemon begins to end and its listeners are still open: gives the queues that the other
 * process lacks to it, and announces that ours are closed: whoever of the two closes the last
 * socket of a unix path removes the path. With `both` the other process ends too, as the service
 * manager ends the service and knows of one process alone. */
void upgrade_ending(struct upgrade *upgrade, bool gracefully, bool both);
/* The daemon exits: if the other process still runs, it becomes the main process. */
void upgrade_ended(struct upgrade *upgrade);
/* Frees all; `failed`: and tells the old process why we could not start. */
void upgrade_done(struct upgrade *upgrade, bool failed);

/* Whether we are the new process of an upgrade. */
bool upgrade_is_new(const struct upgrade *upgrade);
