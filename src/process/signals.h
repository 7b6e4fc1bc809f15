/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals become commands: a handler sets a flag, and the loop of the role reads and clears the
 * flag. One table maps each signal to a command for each role. Handlers only set the flag, write a
 * byte where the loop asks for one, and keep errno; signals with a command are blocked but while a
 * loop waits. The flags are the process's own, as signals are. */
#pragma once

#include "base/log.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct timers;

enum command {
    COMMAND_NONE,      /* the signal is ignored */
    COMMAND_TERM,      /* end as `sigterm_shutdown` says */
    COMMAND_TERMINATE, /* end at once */
    COMMAND_QUIT,      /* end after the sessions */
    COMMAND_LEAVE,     /* ... in a child, and this process ends: no signal's own */
    COMMAND_RELOAD,
    COMMAND_RESUME, /* take a quit back: what COMMAND_RELOAD means then, and no signal's own */
    COMMAND_REOPEN,
    COMMAND_UPGRADE,
    COMMAND_DRAIN,
    COMMAND_REAP,     /* a child has exited */
    COMMAND_DEADLINE, /* a timer has expired */
    COMMAND_CHANNEL,  /* a channel or a socket is readable */
    COMMAND_N,
};

enum role { ROLE_MASTER, ROLE_WORKER, ROLE_SINGLE, ROLE_N };

struct signal_row {
    int number;
    const char *name;    /* "SIGHUP" */
    const char *command; /* name of the command for -s and the control socket, or NULL */
    bool alias;          /* for -s alone: the signal has another command */
    const char *doing;   /* in the words of the log's line; NULL: not logged */
    enum command commands[ROLE_N];
};

/* The table; its last row has number 0. */
extern const struct signal_row signals_table[];

/* The flags of a process. A simulation exchanges signals_state with the running process. */
struct signals_state {
    atomic_uint given;                        /* commands, as bits */
    volatile sig_atomic_t senders[COMMAND_N]; /* pids of the senders, by command */
    volatile sig_atomic_t any; /* a command may have been given since signals_pending() */
    volatile sig_atomic_t role;
    volatile sig_atomic_t wake_fd; /* a delivery writes a byte to it; or -1 */
    sigset_t wait_mask;            /* lets through what signals_install() blocks */
};

extern struct signals_state *signals_state;

/* The process's interval timer, which only signals_await() sets. */
struct alarm {
    uint64_t deadline_ms; /* of the earliest timer then; 0: SIGALRM is not set, or has come */
};

#define SIGNALS_BY_KERNEL (-1)

/* Sets the flag of a signal's command, as a handler; `sender`: a pid, or SIGNALS_BY_KERNEL. */
void signals_deliver(int number, pid_t sender);
/* Installs the handlers of a role and drops commands of the previous role. From now on signals with
 * a command are blocked but in a wait with signals_state->wait_mask. */
void signals_install(enum role role);

/* Whether a command may have been given since the last call: then all are to be tried. */
static inline bool signals_pending(void)
{
    bool any = signals_state->any;

    if (any)
        signals_state->any = 0;
    return any;
}

/* Lets handlers also write a byte to this descriptor, for waits without a mask; -1: to none. */
void signals_wake_by(int fd);
/* Sleeps until a signal comes, or the earliest of these timers has expired, by SIGALRM, and reads
 * the clock: the sleep of a process without events but signals. Takes COMMAND_REAP,
 * COMMAND_DEADLINE and COMMAND_CHANNEL; returns all commands given, as bits. */
unsigned signals_await(struct alarm *alarm, const struct timers *timers, struct clock *clock);
/* Runs the handlers of pending signals, and takes COMMAND_CHANNEL; returns the commands given, as
 * bits. The next signals_await() sleeps, unless a child has exited or a deadline has come. */
unsigned signals_admit(void);
/* Whether the command was given and not taken yet; it stays given. */
bool signals_given(enum command command);
/* Clears the command; returns whether it was given. `from`: the last sender's pid, 0: the
 * kernel. */
bool signals_take(enum command command, pid_t *from);
/* Sends a signal to this process; a failure is an alert, unless the process is gone already. */
void signals_send(pid_t pid, int number, struct log *log);
/* Signals as signals_send() does, by a handle; -1: our child. */
void signals_send_held(pid_t pid, int handle, int number, struct log *log);
/* Sends our successor the commands' signals that have come since the last sleep. */
void signals_forward(pid_t pid, struct log *log);
/* Gives a command from within the process, as if its signal had arrived. */
void signals_raise(enum command command);
/* Row lookups: NULL without a row. */
const struct signal_row *signals_named(const char *command);
const struct signal_row *signals_find(enum role role, enum command command);
