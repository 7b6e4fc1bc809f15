/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of signals, their handler, and the flags that it sets. A flag is read and cleared by the
 * loop alone; the handler only sets it. */
#include "process/signals.h"

#include "base/compiler.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

const struct fb_signal fb_signals[] = {
    /* master, worker, single process */
    { SIGHUP, "SIGHUP", "reload", "reconfiguring",
        { FB_ORDER_RELOAD, FB_ORDER_NONE, FB_ORDER_RELOAD } },
    { SIGUSR1, "SIGUSR1", "reopen", "reopening logs",
        { FB_ORDER_REOPEN, FB_ORDER_NONE, FB_ORDER_REOPEN } },
    { SIGUSR2, "SIGUSR2", "upgrade", "changing binary",
        { FB_ORDER_UPGRADE, FB_ORDER_NONE, FB_ORDER_UPGRADE } },
    { SIGWINCH, "SIGWINCH", NULL, "gracefully shutting down workers",
        { FB_ORDER_DRAIN, FB_ORDER_NONE, FB_ORDER_NONE } },
    { SIGTERM, "SIGTERM", NULL, "exiting", { FB_ORDER_TERM, FB_ORDER_TERM, FB_ORDER_TERM } },
    { SIGINT, "SIGINT", "stop", "exiting",
        { FB_ORDER_TERMINATE, FB_ORDER_TERMINATE, FB_ORDER_TERMINATE } },
    { SIGQUIT, "SIGQUIT", "quit", "shutting down",
        { FB_ORDER_QUIT, FB_ORDER_QUIT, FB_ORDER_QUIT } },
    { SIGCHLD, "SIGCHLD", NULL, NULL, { FB_ORDER_REAP, FB_ORDER_NONE, FB_ORDER_NONE } },
    { SIGALRM, "SIGALRM", NULL, NULL, { FB_ORDER_DEADLINE, FB_ORDER_NONE, FB_ORDER_NONE } },
    { SIGIO, "SIGIO", NULL, NULL, { FB_ORDER_CHANNEL, FB_ORDER_NONE, FB_ORDER_NONE } },
    { SIGPIPE, "SIGPIPE", NULL, NULL, { FB_ORDER_NONE, FB_ORDER_NONE, FB_ORDER_NONE } },
    { SIGSYS, "SIGSYS", NULL, NULL, { FB_ORDER_NONE, FB_ORDER_NONE, FB_ORDER_NONE } },
    { .number = 0 },
};

static volatile sig_atomic_t given[FB_ORDERS];
static volatile sig_atomic_t pending;
static volatile sig_atomic_t senders[FB_ORDERS];
static volatile sig_atomic_t current_role;
static sigset_t wait_mask;

static void handle_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)context;
    for (const struct fb_signal *s = fb_signals; s->number != 0; s++) {
        enum fb_order command = s->orders[current_role];

        if (s->number != number)
            continue;
        /* a terminal that is resized sends it too; only a person means it */
        if (number == SIGWINCH && info->si_code == SI_KERNEL)
            continue;
        senders[command] = info->si_code == SI_USER || info->si_code == SI_QUEUE ? info->si_pid : 0;
        given[command] = 1;
        pending = 1;
    }
    errno = saved;
}

void fb_signals_reset(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    sigemptyset(&action.sa_mask);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* fails for those that cannot be caught */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static FB_NORETURN void end_process(int number)
{
    _exit(128 + number); /* the code by which a shell tells of a signal */
}

void fb_signals_end_first_process(void)
{
    static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM };
    struct sigaction action = { .sa_handler = end_process };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < fb_countof(numbers) && getpid() == 1; i++)
        sigaction(numbers[i], &action, NULL);
}

void fb_signals_install(enum fb_role role)
{
    sigset_t blocked;

    assert(role < FB_ROLES);
    sigemptyset(&wait_mask);
    sigemptyset(&blocked);
    current_role = role;
    for (int command = 0; command < FB_ORDERS; command++)
        given[command] = 0; /* they were given to the process that has forked us */

    for (const struct fb_signal *s = fb_signals; s->number != 0; s++) {
        struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = handle_signal };

        if (s->orders[role] == FB_ORDER_NONE)
            action = (struct sigaction) { .sa_handler = SIG_IGN };
        else
            sigaddset(&blocked, s->number);
        sigfillset(&action.sa_mask);
        sigaction(s->number, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

const sigset_t *fb_signals_wait_mask(void)
{
    return &wait_mask;
}

bool fb_order_pending(void)
{
    if (!pending)
        return false;
    pending = 0;
    return true;
}

bool fb_order_take(enum fb_order command, pid_t *from)
{
    if (!given[command])
        return false;
    given[command] = 0;
    if (from != NULL)
        *from = senders[command];
    return true;
}

void fb_order_give(enum fb_order command)
{
    assert(command > FB_ORDER_NONE && command < FB_ORDERS);
    senders[command] = 0;
    given[command] = 1;
    pending = 1;
}

const struct fb_signal *fb_signal_of(enum fb_role role, enum fb_order command)
{
    for (const struct fb_signal *s = fb_signals; s->number != 0; s++)
        if (s->orders[role] == command)
            return s;
    return NULL;
}
