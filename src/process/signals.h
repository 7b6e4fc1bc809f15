/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals become orders: a handler sets a flag, and the role's loop takes it.
 *
 * The flags are the process's own, as signals are: the one state here without another owner. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum fb_order {
    FB_ORDER_NONE, /* the signal is ignored */
    FB_ORDER_TERM, /* to end as `sigterm_shutdown` says */
    FB_ORDER_TERMINATE,
    FB_ORDER_QUIT,
    FB_ORDER_RELOAD,
    FB_ORDER_REOPEN,
    FB_ORDER_UPGRADE,
    FB_ORDER_DRAIN,
    FB_ORDER_REAP,
    FB_ORDER_DEADLINE,
    FB_ORDER_CHANNEL,
    FB_ORDERS,
};

enum fb_role { FB_ROLE_MASTER, FB_ROLE_WORKER, FB_ROLE_SINGLE, FB_ROLES };

struct fb_signal {
    int number;
    const char *name;  /* "SIGHUP" */
    const char *order; /* the word that -s takes, or NULL */
    const char *doing; /* what the log says is done about it, or NULL: it is not logged */
    enum fb_order orders[FB_ROLES];
};

/* Ends with number 0. */
extern const struct fb_signal fb_signals[];

/* Every disposition to its default and nothing blocked, whatever was inherited. */
void fb_signals_reset(void);
/* As the first process of a container we are given no signal without a handler: from now on, and until
 * fb_signals_install(), those that would end any other process end this one too. */
void fb_signals_end_first_process(void);
/* Handlers for the role; the signals with an order are blocked from now on, outside of a wait with
 * fb_signals_wait_mask(). */
void fb_signals_install(enum fb_role role);
/* The mask to wait with: everything that fb_signals_install() blocks, let through. */
const sigset_t *fb_signals_wait_mask(void);

/* Whether an order may have been given since the last call: one test for a loop that has mostly none to
 * take. After true every order is to be tried. */
bool fb_order_pending(void);
/* Whether the order was given, which it then no longer is. `from`, if not NULL: the pid of the last
 * process that sent it, 0 for the kernel. */
bool fb_order_take(enum fb_order order, pid_t *from);
/* Gives an order from within the process. */
void fb_order_give(enum fb_order order);

/* The signal that stands for the order of a role; never NULL for one that has a signal. */
const struct fb_signal *fb_signal_of(enum fb_role role, enum fb_order order);
