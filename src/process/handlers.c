/* SPDX-License-Identifier: BSD-2-Clause */
/* Installs the handlers of signals. A handler only calls signals_deliver(), and keeps errno. */
#include "process/handlers.h"

#include "base/compiler.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

static void handle_signal(int number, siginfo_t *info, void *context)
{
    bool by_process = info->si_code == SI_USER || info->si_code == SI_QUEUE;
    int saved = errno;

    (void)context;
    signals_deliver(number, by_process ? info->si_pid : SIGNALS_BY_KERNEL);
    errno = saved;
}

void handlers_reset(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    sigemptyset(&action.sa_mask);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* fails for those that cannot be caught */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void handlers_ignore_pipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static NORETURN void end_process(int number)
{
    _exit(128 + number); /* the exit code by which a shell reports a signal */
}

void handlers_end_first_process(void)
{
    static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM };
    struct sigaction action = { .sa_handler = end_process };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < countof(numbers) && getpid() == 1; i++)
        sigaction(numbers[i], &action, NULL);
}

void handlers_install(enum role role)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    for (const struct signal_row *s = signals_table; s->number != 0; s++) {
        struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = handle_signal };

        if (s->alias)
            continue;
        if (s->commands[role] == COMMAND_NONE)
            action = (struct sigaction) { .sa_handler = SIG_IGN };
        else
            sigaddset(&blocked, s->number);
        sigfillset(&action.sa_mask);
        sigaction(s->number, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

void handlers_admit(void)
{
    sigset_t blocked;

    sigprocmask(SIG_SETMASK, signals_wait_mask(), &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

void handlers_find_pending(sigset_t *pending)
{
    sigpending(pending);
}
