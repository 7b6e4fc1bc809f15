/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of signals, and the flags that a delivered signal sets. A delivery only sets a flag,
 * and writes a byte to a loop that cannot wait with a mask; the loop alone reads and clears it. */
#include "process/signals.h"

#include "event/timer.h"
#include "process/process_ops.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static_assert(COMMAND_N <= 32, "a command is a bit");

#define SIGNAL(number) number, #number
#define MASTER(command) { [ROLE_MASTER] = command }
#define NOT_WORKER(command) { [ROLE_MASTER] = command, [ROLE_SINGLE] = command }
#define ALL(command) { command, command, command }

const struct signal_row signals_table[] = {
    { SIGNAL(SIGHUP), "reload", false, "reconfiguring", NOT_WORKER(COMMAND_RELOAD) },
    { SIGNAL(SIGHUP), "resume", true, "resuming", MASTER(COMMAND_RESUME) },
    { SIGNAL(SIGUSR1), "reopen", false, "reopening logs", NOT_WORKER(COMMAND_REOPEN) },
    { SIGNAL(SIGUSR2), "upgrade", false, "changing binary", NOT_WORKER(COMMAND_UPGRADE) },
    { SIGNAL(SIGWINCH), NULL, false, "gracefully shutting down workers", MASTER(COMMAND_DRAIN) },
    { SIGNAL(SIGTERM), NULL, false, "exiting", ALL(COMMAND_TERM) },
    { SIGNAL(SIGINT), "stop", false, "exiting", ALL(COMMAND_TERMINATE) },
    { SIGNAL(SIGQUIT), "quit", false, "shutting down", ALL(COMMAND_QUIT) },
    { SIGNAL(SIGQUIT), "leave", true, "shutting down, sessions are left to a child process",
        MASTER(COMMAND_LEAVE) },
    { SIGNAL(SIGCHLD), NULL, false, NULL, MASTER(COMMAND_REAP) },
    { SIGNAL(SIGALRM), NULL, false, NULL, MASTER(COMMAND_DEADLINE) },
    { SIGNAL(SIGIO), NULL, false, NULL, MASTER(COMMAND_CHANNEL) },
    { SIGNAL(SIGPIPE), NULL, false, NULL, MASTER(COMMAND_NONE) },
    { SIGNAL(SIGXFSZ), NULL, false, NULL, MASTER(COMMAND_NONE) },
    { SIGNAL(SIGSYS), NULL, false, NULL, MASTER(COMMAND_NONE) },
    { .number = 0 },
};

struct signals_state *signals_state = &(struct signals_state) { .wake_fd = -1 };

void signals_deliver(int number, pid_t sender)
{
    struct signals_state *state = signals_state;

    for (const struct signal_row *s = signals_table; s->number != 0; s++) {
        enum command command = s->commands[state->role];

        if (s->number != number || s->alias)
            continue;
        /* a resized terminal sends SIGWINCH too; only a person means it */
        if (number == SIGWINCH && sender == SIGNALS_BY_KERNEL)
            continue;
        state->senders[command] = sender != SIGNALS_BY_KERNEL ? sender : 0;
        atomic_fetch_or(&state->given, 1u << command);
        state->any = 1;
    }
    if (state->wake_fd != -1 && write(state->wake_fd, "", 1) == -1)
        return; /* a full pipe is as good: the loop will wake */
}

void signals_install(enum role role)
{
    assert(role < ROLE_N);
    signals_state->role = role;
    signals_state->wake_fd = -1;
    signals_state->given = 0; /* commands of the process that has forked us */
    sigemptyset(&signals_state->wait_mask);
    process_ops->install_handlers(role);
}

void signals_wake_by(int fd)
{
    assert(fd >= -1);
    signals_state->wake_fd = fd;
}

bool signals_given(enum command command)
{
    return (signals_state->given >> command & 1) != 0;
}

bool signals_take(enum command command, pid_t *from)
{
    if ((signals_state->given >> command & 1) == 0)
        return false;
    atomic_fetch_and(&signals_state->given, ~(1u << command));
    if (from != NULL)
        *from = signals_state->senders[command];
    return true;
}

void signals_send(pid_t pid, int number, struct log *log)
{
    assert(pid > 0); /* a process, never a group */
    if (process_ops->kill(pid, number) == -1 && errno != ESRCH)
        log_write(log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)pid, number);
}

void signals_send_held(pid_t pid, int handle, int number, struct log *log)
{
    if (handle == -1) /* our child keeps the pid until the reaping */
        signals_send(pid, number, log);
    else if (process_ops->handle_signal(handle, number) == -1 && errno != ESRCH)
        log_write(
            log, LEVEL_ALERT, errno, "no signal %d could be sent to process %d", number, (int)pid);
}

void signals_forward(pid_t pid, struct log *log)
{
    sigset_t pending;

    process_ops->find_pending(&pending);
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (!s->alias && s->doing != NULL && sigismember(&pending, s->number) == 1)
            signals_send(pid, s->number, log);
}

void signals_raise(enum command command)
{
    assert(command > COMMAND_NONE && command < COMMAND_N);
    signals_state->senders[command] = 0;
    atomic_fetch_or(&signals_state->given, 1u << command);
    signals_state->any = 1;
}

const struct signal_row *signals_find(enum role role, enum command command)
{
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (s->commands[role] == command)
            return s;
    return NULL;
}

const struct signal_row *signals_named(const char *command)
{
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (s->command != NULL && strcmp(s->command, command) == 0)
            return s;
    return NULL;
}

/* The system's timer is set only when the deadline has changed: most wake-ups leave it as it is. */
unsigned signals_await(struct alarm *alarm, const struct timers *timers, struct clock *clock)
{
    uint64_t deadline_ms = timers->soonest != TIMERS_NONE ? timers->soonest : 0;
    unsigned given;

    if (deadline_ms != alarm->deadline_ms) {
        process_ops->set_alarm(timers_wait(timers));
        alarm->deadline_ms = deadline_ms;
    }
    /* a handler may have run outside the sleep, by process_ops->admit_signals() */
    if (!signals_state->any)
        process_ops->wakeup_sleep();
    signals_state->any = 0;
    given = atomic_fetch_and(&signals_state->given,
        ~(1u << COMMAND_REAP | 1u << COMMAND_DEADLINE | 1u << COMMAND_CHANNEL));
    if ((given >> COMMAND_DEADLINE & 1) != 0)
        alarm->deadline_ms = 0;
    process_ops->read_clock(clock);
    return given;
}

unsigned signals_admit(void)
{
    unsigned given;

    process_ops->admit_signals();
    given = atomic_fetch_and(&signals_state->given, ~(1u << COMMAND_CHANNEL));
    if ((given & (1u << COMMAND_REAP | 1u << COMMAND_DEADLINE)) == 0)
        signals_state->any = 0;
    return given;
}
