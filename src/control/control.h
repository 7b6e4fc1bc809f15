/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's clients: each client sends lines of JSON, {"command":"reload"}, and gets a
 * reply line with the outcome. Commands are noted here and carried out by the master, which reports
 * the outcome; until then the client waits. Nothing here knows the master: the host is reached by a
 * table of operations. */
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
    CONTROL_WAIT_RELOAD_END,  /* the outcome of a begun reload */
    CONTROL_WAIT_REOPEN,      /* open logs */
    CONTROL_WAIT_UPGRADE,     /* the beginning of an upgrade */
    CONTROL_WAIT_UPGRADE_END, /* a new binary that serves */
    CONTROL_WAIT_RESUME,      /* the beginning of a resume; the outcome is a reload's */
    CONTROL_WAIT_QUIT,        /* no worker of ours accepts clients any more */
    CONTROL_WAIT_EXIT,        /* the master's exit: the kernel closes the connection */
};

/* The outcome of a command. */
struct control_outcome {
    bool ok;
    const char *error;       /* why not */
    pid_t pid;               /* pid of the new binary; 0: left out of the reply */
    unsigned generation;     /* the serving generation; 0: left out of the reply */
    const char *in_force;    /* configuration after a failed reload: "new", "previous", or NULL */
    const struct diag *diag; /* messages, or NULL */
};

/* Outcome of a change of a server's state. */
enum control_set {
    CONTROL_SET_DONE,
    CONTROL_SET_NO_STATE,  /* unknown state */
    CONTROL_SET_NO_SERVER, /* the group has no server of the name or address */
    CONTROL_SET_NO_ZONE,   /* the group has no zone for states */
    CONTROL_SET_NO_ROOM,   /* the zone is full */
};

/* Operations of the host; `host` is the pointer of control_init(). */
struct control_ops {
    /* Fills in the daemon's state; strings stay valid until the next call. */
    void (*status)(void *host, struct control_status *out);
    /* Fills in generation number `i`, oldest first, without generations that have no workers; false
     * behind the last. */
    bool (*generation)(void *host, unsigned i, struct control_generation *out);
    /* Fills in worker number `j` of generation number `i`; false behind the last. */
    bool (*worker)(void *host, unsigned i, unsigned j, struct control_worker *out);
    /* Fills in the resolver process of generation number `i`; false: none. */
    bool (*resolver)(void *host, unsigned i, struct control_worker *out);
    /* Returns the name of serving protocol number `i`; NULL behind the last. */
    const char *(*protocol)(void *host, unsigned i);
    /* Fills in metric number `j` of protocol number `i`; false behind the last. */
    bool (*metric)(void *host, unsigned i, unsigned j, struct control_metric *out);
    /* Fills in the next group behind `before` (NULL: the first) of the configuration in force, and
     * returns its handle; NULL behind the last. */
    const void *(*upstream)(void *host, const void *before, struct control_upstream *out);
    /* Calls `each` for the group's servers, at all addresses. */
    void (*upstream_servers)(void *host, const void *group,
        void (*each)(void *arg, const struct control_server *server), void *arg);
    /* Calls `each` for the group's servers with a name. */
    void (*upstream_names)(void *host, const void *group,
        void (*each)(void *arg, const struct control_name *name), void *arg);
    /* Sets the state of a server of the group. */
    enum control_set (*upstream_set)(
        void *host, const void *group, const char *server, const char *state);
    /* Ends a command about groups: servers do not change between the first look and this call. */
    void (*upstreams_end)(void *host);
    /* Takes a client's command, to be carried out as a signal's; or returns the reason of a
     * refusal. */
    const char *(*command)(void *host, enum command command);
    /* Whether the process is a worker, by the master's own record. */
    bool (*is_worker)(void *host, pid_t pid);
    /* Whether workers run as this user. */
    bool (*is_worker_user)(void *host, uid_t uid);
    /* Whether the process is a master: ours, or the second of an upgrade. */
    bool (*is_master)(void *host, pid_t pid);
};

struct control_client;

struct control {
    unsigned kind;
    const struct control_ops *ops;
    void *host;
    struct log *log;
    struct timers *timers;
    const struct control_socket *socket; /* the host's */
    TAILQ_HEAD(, control_client) clients;
    unsigned client_n;
    uint64_t activity;  /* number of requests and replies of all clients */
    bool accept_failed; /* a failed accept was logged */
    struct timer retry; /* accepts again after a failure */
};

/* The pointers stay the caller's and outlive the control. */
void control_init(struct control *control, const struct control_ops *ops, void *host,
    const struct control_socket *socket, struct log *log, struct timers *timers);
/* Asserts the invariants between two calls, of all clients too. */
void control_check(const struct control *control);
/* Accepts clients, and serves all clients without waiting. */
void control_serve(struct control *control);
/* Identifies the queued clients while an exited child keeps its pid: called before the child is
 * reaped, where there is a socket. */
void control_before_reaping(struct control *control);
/* In a child that replaces the host: has sockets wake the child; -1 with errno. */
int control_take_over(struct control *control);
/* Moves clients from waiting for `from` to waiting for `to`. */
void control_wait_on(struct control *control, enum control_wait from, enum control_wait to);
/* Sends the reason of a wait to clients that want progress: to all if the reason has changed, else
 * to clients without a progress line. */
void control_tell(
    struct control *control, enum control_wait waiting_for, const char *why, bool changed);
/* Replies to all clients awaiting the event. */
void control_reply(
    struct control *control, enum control_wait waiting_for, const struct control_outcome *outcome);
/* Drops all clients at the daemon's exit; clients that wait for the exit stay connected until
 * then. */
void control_end(struct control *control);
