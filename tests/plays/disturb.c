/* SPDX-License-Identifier: BSD-2-Clause */
/* The disturbances of random plays. */
#include "channel/channel.h"
#include "plays/client.h"
#include "plays/random_private.h"
#include "plays/worker.h"
#include "shm/slot.h"

#include <unistd.h>

#define CLIENTS_MAX 24

/* Chooses a process that lives, a worker or a master process; NULL: there is none. */
static struct play_process *choose(struct random_play *random, bool worker)
{
    struct play_process *process, *chosen = NULL;
    uint32_t n = 0;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (!process->exited && (process->worker != NULL) == worker &&
            (worker || process->is_master) && random_one_in(random, ++n))
            chosen = process;
    return chosen;
}

/* Writes a configuration, mostly a valid one. */
static void configure(struct random_play *random)
{
    static const char *const mains[] = { "", "worker_shutdown_timeout 3s;",
        "worker_start_timeout 4s; worker_shutdown_timeout 60s;", "max_generations 2;",
        "max_generations 1;", "worker_watchdog 2s;", "sigterm_shutdown graceful;",
        "worker_watchdog 500ms; worker_shutdown_timeout 1s;" };
    char listen[160] = "", stream[200] = "";

    switch (random_of(random, 5)) {
    case 0:
        snprintf(listen, sizeof(listen), "unix:%s/second", random->play->directory);
        break;
    case 1:
        snprintf(listen, sizeof(listen), "unix:%s/third", random->play->directory);
        break;
    case 2: /* an address of the play's own */
        snprintf(listen, sizeof(listen), "%s:7007 %s", random->play->address,
            random_one_in(random, 2) ? "reuseport" : "");
        break;
    }
    if (*listen != '\0')
        snprintf(stream, sizeof(stream), "server { listen %s; echo; }", listen);
    play_configure(random->play, 1 + random_of(random, 3),
        random_one_in(random, 6) ? "mistake;" : mains[random_of(random, countof(mains))], stream);
}

static void signal_master(struct random_play *random)
{
    static const struct {
        int number;
        bool ends, drains;
    } signals[] = {
        { SIGHUP, false, false },
        { SIGHUP, false, false },
        { SIGHUP, false, false },
        { SIGUSR1, false, false },
        { SIGIO, false, false },
        { SIGALRM, false, false },
        { SIGCHLD, false, false },
        { SIGUSR2, false, false },
        { SIGWINCH, false, true },
        { SIGQUIT, true, false },
        { SIGTERM, true, false },
        { SIGINT, true, false },
    };
    struct play_process *master = choose(random, false);
    uint32_t i = random_of(random, countof(signals));

    if (master == NULL || ((signals[i].ends || signals[i].drains) && !random_one_in(random, 4)))
        return;
    random->may_end |= signals[i].ends;
    random->may_not_accept |= signals[i].drains;
    random->upgraded |= signals[i].number == SIGUSR2;
    play_signal(master, signals[i].number);
}

static void give_command(struct random_play *random)
{
    static const struct {
        const char *word;
        bool ends;
    } commands[] = { { "reload", false }, { "reload", false }, { "reload", false },
        { "status", false }, { "reopen", false }, { "upgrade", false }, { "resume", false },
        { "quit", true }, { "leave", true }, { "stop", true } };
    uint32_t i = random_of(random, countof(commands));

    if (commands[i].ends && !random_one_in(random, 4))
        return;
    random->last = commands[i].word;
    if (play_control(random->play, "control", commands[i].word) == NULL)
        return;
    random->may_end |= commands[i].ends;
    random->upgraded |= strcmp(commands[i].word, "upgrade") == 0;
}

static void connect_client(struct random_play *random)
{
    struct play *play = random->play;
    struct play_client *client;
    unsigned n = 0;

    TAILQ_FOREACH (client, &play->clients, link)
        n++;
    if (n >= CLIENTS_MAX)
        return;
    client = play_connect(play);
    if (client == NULL && !random->may_end && !random->meddled)
        random_give_up(random, "nobody listens");
}

static void close_client(struct random_play *random)
{
    struct play_client *client, *chosen = NULL;
    uint32_t n = 0;

    TAILQ_FOREACH (client, &random->play->clients, link)
        if (random_one_in(random, ++n))
            chosen = client;
    if (chosen != NULL)
        play_client_close(random->play, chosen);
}

/* Sends the master a message: a worker's legal message, or any. */
static void send_message(struct random_play *random, struct play_worker *worker)
{
    struct play_process *other = choose(random, true);

    switch (random_of(random, 4)) {
    case 0:
        play_worker_send(worker, MESSAGE_INBOX_WANTED, slot_incarnation(other->worker->slot));
        break;
    case 1:
        play_worker_send(worker, MESSAGE_OTHERS_WANTED, 0);
        break;
    default:
        play_worker_send(worker, 1 + random_of(random, 20),
            random_one_in(random, 3) ? random_of(random, 64) : 0);
        break;
    }
}

static void kill_worker(struct random_play *random)
{
    static const int fatal[] = { SIGSEGV, SIGABRT, SIGKILL, SIGTERM, SIGINT, SIGQUIT };
    struct play_process *process = choose(random, true);
    int number = fatal[random_of(random, countof(fatal))];

    if (process == NULL)
        return;
    /* a draining worker is replaced at the end of the sessions */
    random->may_not_accept |= number == SIGQUIT;
    random->lost = true;
    play_signal(process, number);
}

static void disturb_worker(struct random_play *random)
{
    struct play_process *process = choose(random, true);
    struct play_worker *worker;

    if (process == NULL)
        return;
    worker = process->worker;
    if (random_one_in(random, 3)) {
        send_message(random, worker);
        random->lost = true;
        return;
    }
    random->lost = worker->disturbed = true;
    switch (random_of(random, 6)) {
    case 0:
        play_worker_exit(worker, (int)random_of(random, 3));
        break;
    case 1:
        worker->deaf = true;
        break;
    case 2:
        worker->keeps_sessions = true;
        break;
    case 3:
        play_signal(process, process->stopped ? SIGCONT : SIGSTOP);
        break;
    case 4:
        play_worker_stick(worker);
        break;
    case 5:
        play_worker_close_channel(worker);
        break;
    }
}

static void fail_call(struct random_play *random)
{
    struct play_failures *failures = &random->play->failures;
    unsigned *calls[] = { &failures->fork, &failures->wakeup_add, &failures->handle_open,
        &failures->execute };

    if (!random->faults)
        return;
    if (random_one_in(random, 2))
        failures->call = 1 + random_of(random, 8);
    else
        ++*calls[random_of(random, countof(calls))];
}

/* Removes a file of the daemon's. */
static void meddle(struct random_play *random)
{
    static const char *const names[] = { "pid", "pid.lock", "control", "socket" };

    if (!random->faults || !random_one_in(random, 6))
        return;
    random->meddled = true;
    unlink(play_path(random->play, names[random_of(random, countof(names))]));
}

static void kill_master(struct random_play *random)
{
    struct play_process *master = choose(random, false);

    if (master == NULL || !random_one_in(random, 8))
        return;
    random->may_end = random->lost = true;
    play_signal(master, SIGKILL);
}

static void pass_time(struct random_play *random)
{
    play_pass(random->play, random_of(random, 3000));
}

void random_call_made(struct play *play, struct play_process *process)
{
    static const int numbers[] = { SIGHUP, SIGHUP, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGQUIT,
        SIGINT };
    struct random_play *random = play->arg;
    int number;

    if (!random_one_in(random, 200))
        return;
    number = numbers[random_of(random, countof(numbers))];
    if ((number == SIGQUIT || number == SIGINT) && !random_one_in(random, 4))
        return;
    random->may_end |= number == SIGQUIT || number == SIGINT;
    random->upgraded |= number == SIGUSR2;
    play_signal(process, number);
}

void random_worker_forked(struct play *play, struct play_process *process)
{
    struct random_play *random = play->arg;
    struct play_worker *worker = process->worker;

    worker->start_ms = random_one_in(random, 2) ? random_of(random, 3000) : 0;
    if (!random_one_in(random, 12))
        return;
    random->lost = worker->disturbed = true;
    switch (random_of(random, 4)) {
    case 0:
        worker->never_ready = true;
        break;
    case 1:
        worker->never_accepts = true;
        break;
    case 2:
        worker->fails_start = true;
        break;
    case 3:
        worker->crashes_accepting = true;
        break;
    }
}

void random_disturb(struct random_play *random)
{
    static const struct {
        const char *name;
        unsigned share;
        void (*disturb)(struct random_play *random);
    } all[] = {
        { "signal", 2, signal_master },
        { "command", 2, give_command },
        { "connect", 3, connect_client },
        { "close", 2, close_client },
        { "kill worker", 1, kill_worker },
        { "worker", 2, disturb_worker },
        { "failure", 1, fail_call },
        { "configure", 1, configure },
        { "kill", 1, kill_master },
        { "meddle", 1, meddle },
        { "time", 1, pass_time },
    };
    uint32_t n = 0;

    for (size_t i = 0; i < countof(all); i++)
        n += all[i].share;
    n = random_of(random, n);
    for (size_t i = 0; i < countof(all); i++) {
        if (n < all[i].share) {
            random->last = all[i].name;
            all[i].disturb(random);
            return;
        }
        n -= all[i].share;
    }
}
