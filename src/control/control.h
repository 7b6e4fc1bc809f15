/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's clients: each client sends lines of JSON, {"command":"reload"}, and gets a
 * reply line with the outcome. Commands are noted here and carried out by the master, which reports
 * the outcome; until then the client waits. The pool is read, never changed, and the master reached
 * by a table of operations. */
#pragma once

#include "control/problem.h"
#include "control/socket.h"
#include "control/status.h"
#include "event/timer.h"
#include "pool/layout.h"
#include "process/signals.h"

#define CONTROL_KIND KIND('C', 'n', 't', 'l')

/* Events that clients wait for. */
enum control_wait {
    CONTROL_WAIT_NONE,
    CONTROL_WAIT_RELOAD,       /* the beginning of a reload */
    CONTROL_WAIT_RELOAD_END,   /* the outcome of a begun reload */
    CONTROL_WAIT_REOPEN,       /* open logs */
    CONTROL_WAIT_UPGRADE,      /* the beginning of an upgrade */
    CONTROL_WAIT_UPGRADE_END,  /* a new binary that serves */
    CONTROL_WAIT_RESUME,       /* the beginning of a resume; the outcome is a reload's */
    CONTROL_WAIT_CERTIFICATES, /* a keeper's report */
    CONTROL_WAIT_EVENTS,       /* the next events, again and again (events.h) */
    CONTROL_WAIT_QUIT,         /* no worker of ours accepts clients any more */
    CONTROL_WAIT_EXIT,         /* the master's exit: the kernel closes the connection */
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

/* Operations of the host; `host` is the pointer of control_init(). */
struct control_ops {
    /* Writes the first members of the status, but for version and pid; whether the daemon ends. */
    bool (*write_head)(void *host, struct json *json);
    /* Adds the problems that the host knows of. */
    void (*add_problems)(void *host, struct problems *problems);
    /* Writes the members behind the listeners: workers left behind, and waiting commands. */
    void (*write_tail)(void *host, struct json *json);
    /* Takes a command, to be carried out as a signal's; or returns the reason of a refusal. */
    const char *(*command)(void *host, enum command command);
    /* Whether the process is a master: ours, or the second of an upgrade. */
    bool (*is_master)(void *host, pid_t pid);
    /* Asks a keeper to report on certificates, for control_report(); or returns the reason of a
     * refusal. */
    const char *(*ask_certificates)(void *host);
    /* Sets the level of all error logs, or takes it back, as pool_log_level_set(). */
    void (*set_log_level)(void *host, uint32_t override, int64_t ms, const char *text);
    /* Has a worker write its sessions into the pipe; false: it does not serve, or read. */
    bool (*list_sessions)(void *host, pid_t worker, int pipe);
};

struct control_client;

struct control {
    unsigned kind;
    const struct control_ops *ops;
    void *host;
    const struct pool *pool;
    const struct control_socket *sockets; /* the host's, CONTROL_SOCKETS */
    struct ticks_mark ticks;              /* the beginning, to measure the rate of ticks */
    TAILQ_HEAD(, control_client) clients;
    unsigned client_n;
    uint64_t event_n;   /* number of the latest event that followers were sent */
    uint64_t activity;  /* number of requests and replies of all clients */
    uint64_t lost;      /* number of lost log lines at the latest status */
    uint64_t lost_ms;   /* time of the latest increase; 0: never */
    bool accept_failed; /* a failed accept was logged */
    struct timer retry; /* accepts again after a failure */
};

/* The pointers stay the caller's and outlive the control. */
void control_init(struct control *control, const struct control_ops *ops, void *host,
    const struct pool *pool, const struct control_socket *sockets);
/* Asserts the invariants between two calls, of all clients too. */
void control_check(const struct control *control);
/* Accepts clients, and serves all clients without waiting. */
void control_serve(struct control *control);
/* Accepts and identifies queued clients, before an exited child, perhaps one, is reaped. */
void control_accept(struct control *control);
/* In a child that replaces the host: has sockets wake the child; -1 with errno. */
int control_take_over(struct control *control);
/* Moves clients from waiting for `from` to waiting for `to`. */
void control_wait_on(struct control *control, enum control_wait from, enum control_wait to);
/* Sends the reason of a wait to clients that want progress and do not know it yet. */
void control_tell(
    struct control *control, enum control_wait waiting_for, const char *why, bool changed);
/* Replies to all clients awaiting the event. */
void control_reply(
    struct control *control, enum control_wait waiting_for, const struct control_outcome *outcome);
/* Sends new events to their followers, at the end of a wake-up. */
void control_tell_events(struct control *control);
/* Replies with a keeper's report to all clients that await it; NULL: there is none. */
void control_report(struct control *control, const char *text, size_t n);
/* Drops all clients at the exit; clients that wait for the exit stay connected until then. */
void control_end(struct control *control);
