/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's clients: each sends lines of JSON, {"command":"reload"}, and gets a reply
 * line with the outcome. Commands are noted here and carried out by the master, which takes them
 * when it can and reports their outcome; until then the client waits. Nothing here knows the
 * master: the host is reached through operations that it hands down. */
#pragma once

#include "base/diag.h"
#include "base/log.h"
#include "control/socket.h"
#include "control/status.h"
#include "event/timer.h"
#include "process/signals.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_KIND KIND('C', 'n', 't', 'l')

/* Events that clients wait for. */
enum control_wait {
    CONTROL_WAIT_NONE,
    CONTROL_WAIT_RELOAD,      /* the beginning of a reload */
    CONTROL_WAIT_RELOAD_END,  /* the outcome of the reload that has begun */
    CONTROL_WAIT_REOPEN,      /* open logs */
    CONTROL_WAIT_UPGRADE,     /* the beginning of an upgrade */
    CONTROL_WAIT_UPGRADE_END, /* a new binary that serves */
    CONTROL_WAIT_RESUME,      /* the beginning of a resume, whose outcome is a reload's */
    CONTROL_WAIT_QUIT,        /* no process of ours accepts clients any more */
    CONTROL_WAIT_EXIT,        /* the master's exit: the kernel closes the connection */
};

/* The outcome of a command. */
struct control_outcome {
    bool ok;
    const char *error;       /* why not */
    pid_t pid;               /* the new binary's; 0: left out of the reply */
    unsigned generation;     /* the one that serves; 0: left out of the reply */
    const char *in_force;    /* configuration after a reload that failed when its own was: "new" or
                             "previous"; NULL: it never was */
    const struct diag *diag; /* messages, or NULL */
};

/* Outcome of a change of a server's state. */
enum control_set {
    CONTROL_SET_DONE,
    CONTROL_SET_NO_STATE,  /* no such state */
    CONTROL_SET_NO_SERVER, /* the group has none of this name, nor of this address */
    CONTROL_SET_NO_ZONE,   /* the group has no zone, in which it would stand */
    CONTROL_SET_NO_ROOM,   /* the zone is full */
};

/* Operations of the host; `host` is its own pointer, given at control_init(). */
struct control_ops {
    /* Fills in the daemon's state; strings stay valid until the next call. */
    void (*status)(void *host, struct control_status *out);
    /* Fills in generation number `i` of those that have workers, oldest first; false behind the
     * last. */
    bool (*generation)(void *host, unsigned i, struct control_generation *out);
    /* Fills in worker number `j` of generation number `i`; false behind the last. */
    bool (*worker)(void *host, unsigned i, unsigned j, struct control_worker *out);
    /* Does the same for the process that asks for names; false: the generation has none. */
    bool (*resolver)(void *host, unsigned i, struct control_worker *out);
    /* Returns the name of protocol number `i` of those that serve; NULL behind the last. */
    const char *(*protocol)(void *host, unsigned i);
    /* Fills in metric number `j` of protocol number `i`; false behind the last. */
    bool (*metric)(void *host, unsigned i, unsigned j, struct control_metric *out);
    /* Fills in the group of the configuration in force that follows this one, or the first one for
     * NULL, and returns what it is known by; NULL behind the last. */
    const void *(*upstream)(void *host, const void *before, struct control_upstream *out);
    /* Calls `each` for each server of the group, at each of its addresses. */
    void (*upstream_servers)(void *host, const void *group,
        void (*each)(void *arg, const struct control_server *server), void *arg);
    /* Calls `each` for each server of the group that has a name. */
    void (*upstream_names)(void *host, const void *group,
        void (*each)(void *arg, const struct control_name *name), void *arg);
    /* Gives a server of the group this state. */
    enum control_set (*upstream_set)(
        void *host, const void *group, const char *server, const char *state);
    /* Ends a command about groups, which see the servers as they were at its first look. */
    void (*upstreams_end)(void *host);
    /* Takes a command that a client has given, to carry it out as if a signal had said so; or
     * returns why it is refused. */
    const char *(*command)(void *host, enum command command);
    /* Whether this process is a worker, by the master's own record. */
    bool (*is_worker)(void *host, pid_t pid);
    /* Whether workers run as this user. */
    bool (*is_worker_user)(void *host, uid_t uid);
    /* Whether this process is a master: we, or the other one of an upgrade. */
    bool (*is_master)(void *host, pid_t pid);
};

struct control_client;

struct control {
    unsigned kind;
    const struct control_ops *ops;
    void *host;
    struct log *log;
    struct timers *timers;
    const struct control_socket *socket; /* clients come from here; the host's */
    TAILQ_HEAD(, control_client) clients;
    unsigned client_n;
    uint64_t activity;  /* requests and replies of all clients so far */
    bool accept_failed; /* the latest accept has, which was logged */
    struct timer retry; /* accepts again, as nothing else tells when to */
};

/* The pointers stay the caller's and outlive the control. */
void control_init(struct control *control, const struct control_ops *ops, void *host,
    const struct control_socket *socket, struct log *log, struct timers *timers);
/* Asserts what must hold between two calls, of all clients too. */
void control_check(const struct control *control);
/* Accepts clients, and serves all of them as far as it can without waiting. */
void control_serve(struct control *control);
/* Finds out who the waiting clients are while a child that has exited keeps its pid: called before
 * the child is reaped, where there is a socket. */
void control_before_reaping(struct control *control);
/* In a child that takes the place of the host: sockets wake this process; -1 with errno. */
int control_take_over(struct control *control);
/* Makes the clients that wait for `from` wait for `to`. */
void control_wait_on(struct control *control, enum control_wait from, enum control_wait to);
/* Tells clients that wait for this, and want to be told, why: all of them if the reason has
 * changed, else those that were not told yet. */
void control_tell(
    struct control *control, enum control_wait waiting_for, const char *why, bool changed);
/* Replies the same to all clients that wait for this. */
void control_reply(
    struct control *control, enum control_wait waiting_for, const struct control_outcome *outcome);
/* Drops all clients as the daemon exits; those that wait for the exit stay connected until then. */
void control_end(struct control *control);
