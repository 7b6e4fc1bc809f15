/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals become commands: a handler sets a flag, and the role's loop takes it. One table says which
 * signal means which command in which role. Handlers do nothing else, and keep errno; signals with a
 * command are blocked but while a loop waits. The flags are the process's own, as signals are. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum fb_order {
    FB_ORDER_NONE,      /* the signal is ignored */
    FB_ORDER_TERM,      /* end as `sigterm_shutdown` says */
    FB_ORDER_TERMINATE, /* end at once */
    FB_ORDER_QUIT,      /* end after the sessions */
    FB_ORDER_RELOAD,
    FB_ORDER_REOPEN,
    FB_ORDER_UPGRADE,
    FB_ORDER_DRAIN,
    FB_ORDER_REAP,     /* a child has exited */
    FB_ORDER_DEADLINE, /* a timer has expired */
    FB_ORDER_CHANNEL,  /* a channel or a socket is readable */
    FB_ORDERS,
};

enum fb_role { FB_ROLE_MASTER, FB_ROLE_WORKER, FB_ROLE_SINGLE, FB_ROLES };

struct fb_signal {
    int number;
    const char *name;  /* "SIGHUP" */
    const char *order; /* the word that -s takes, or NULL */
    const char *doing; /* log text of what is done about it; NULL: the signal is not logged */
    enum fb_order orders[FB_ROLES];
};

/* The table; its last row has number 0. */
extern const struct fb_signal fb_signals[];

/* Sets every disposition to its default and blocks nothing, whatever was inherited. */
void fb_signals_reset(void);
/* Makes SIGINT, SIGQUIT and SIGTERM end this process, until fb_signals_install(), if it is the first of a
 * container: the kernel gives such a process no signal that has no handler. */
void fb_signals_end_first_process(void);
/* Installs the handlers of a role and drops commands of the role before. From now on signals with a
 * command are blocked but in a wait with fb_signals_wait_mask(). */
void fb_signals_install(enum fb_role role);
/* The mask to wait with: lets through what fb_signals_install() blocks. */
const sigset_t *fb_signals_wait_mask(void);

/* Whether a command may have been given since the last call: one test for a loop that has mostly none to
 * take. After true every command is to be tried. */
bool fb_order_pending(void);
/* Takes the command; returns whether it was given since it was taken last. `from`, if not NULL, becomes
 * the pid of the last process that sent it, 0 for the kernel. */
bool fb_order_take(enum fb_order command, pid_t *from);
/* Gives a command from within the process. */
void fb_order_give(enum fb_order command);

/* The signal that means this command in this role; NULL where none does. */
const struct fb_signal *fb_signal_of(enum fb_role role, enum fb_order command);
