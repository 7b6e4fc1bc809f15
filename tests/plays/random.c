/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses disturbances, and checks what must hold. */
#include "plays/random.h"

#include "plays/client.h"
#include "plays/play_private.h"
#include "plays/worker.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#define REST_MS 130000 /* in which all that was begun must have ended */
#define CLIENTS_MAX 24

struct random_play {
    struct play *play;
    const struct random_play_options *options;
    unsigned act, step;
    unsigned workers;    /* of the configuration file */
    bool valid;          /* the file is */
    bool may_end;        /* the daemon was told to end, or its master was killed */
    bool may_not_accept; /* it was told to drain */
    bool upgraded;       /* there may be two master processes */
    const char *last;    /* the latest disturbance */
};

static NORETURN void give_up(const struct random_play *random, const char *what)
{
    char *log = play_read(random->play, "error.log");
    size_t n = strlen(log);
    const struct play_process *process;

    fprintf(stderr, "%s\n", n > 6000 ? log + n - 6000 : log);
    TAILQ_FOREACH (process, &random->play->processes, link)
        fprintf(stderr, "process %d, parent %d, %s%s%s, phase %d, deaf %d, stuck %d, sessions %u\n",
            (int)process->pid, process->parent != NULL ? (int)process->parent->pid : 0,
            process->is_master ? "master" : "worker", process->exited ? ", exited" : "",
            process->stopped ? ", stopped" : "",
            process->worker != NULL ? (int)process->worker->phase : -1,
            process->worker != NULL && process->worker->deaf,
            process->worker != NULL && process->worker->stuck,
            process->worker != NULL ? process->worker->session_n : 0);
    ck_abort_msg("seed %llu, act %u, step %u, after \"%s\": %s",
        (unsigned long long)random->options->seed, random->act, random->step, random->last, what);
    abort();
}

static uint32_t below(struct random_play *random, uint32_t n)
{
    return random_below(&random->play->state, n);
}

static bool one_in(struct random_play *random, uint32_t n)
{
    return below(random, n) == 0;
}

/* Writes a configuration: mostly a valid one. */
static void configure(struct random_play *random)
{
    static const char *const mains[] = { "", "worker_shutdown_timeout 3s;",
        "worker_start_timeout 4s; worker_shutdown_timeout 60s;", "max_generations 2;",
        "worker_watchdog 2s;", "sigterm_shutdown graceful;" };
    static const char *const streams[] = { "", "server { listen unix:%s/second; echo; }",
        "server { listen unix:%s/third; discard; }" };
    char stream[256];
    const char *format = streams[below(random, countof(streams))];

    random->workers = 1 + below(random, 3);
    random->valid = !one_in(random, 6);
    snprintf(
        stream, sizeof(stream), "server { listen unix:%s/other; echo; } ", random->play->directory);
    if (strchr(format, '%') != NULL)
        snprintf(stream, sizeof(stream), "server { listen unix:%s/%s; echo; }",
            random->play->directory, format == streams[1] ? "second" : "third");
    else
        stream[0] = '\0';
    play_configure(random->play, random->workers,
        random->valid ? mains[below(random, countof(mains))] : "mistake;", stream);
}

/* A process whose worker or master is chosen at random; NULL: there is none. */
static struct play_process *choose(struct random_play *random, bool worker)
{
    struct play_process *process, *chosen = NULL;
    uint32_t n = 0;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (!process->exited && (process->worker != NULL) == worker &&
            (worker || process->is_master) && one_in(random, ++n))
            chosen = process;
    return chosen;
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
    uint32_t i = below(random, countof(signals));

    if (master == NULL || ((signals[i].ends || signals[i].drains) && !one_in(random, 4)))
        return;
    random->last = "signal";
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
    uint32_t i = below(random, countof(commands));

    if (commands[i].ends && !one_in(random, 4))
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
    random->last = "connect";
    client = play_connect(play);
    if (client == NULL && !random->may_end)
        give_up(random, "nobody listens");
}

static void close_client(struct random_play *random)
{
    struct play_client *client, *chosen = NULL;
    uint32_t n = 0;

    TAILQ_FOREACH (client, &random->play->clients, link)
        if (one_in(random, ++n))
            chosen = client;
    if (chosen != NULL)
        play_client_close(random->play, chosen);
}

static void disturb_worker(struct random_play *random)
{
    static const int fatal[] = { SIGSEGV, SIGABRT, SIGKILL, SIGTERM, SIGINT, SIGQUIT };
    struct play_process *process = choose(random, true);
    struct play_worker *worker;
    int number;

    if (process == NULL)
        return;
    worker = process->worker;
    random->last = "worker";
    switch (below(random, 9)) {
    case 0:
    case 1:
        number = fatal[below(random, countof(fatal))];
        /* one that drains is replaced when its sessions have ended */
        random->may_not_accept |= number == SIGQUIT;
        play_signal(process, number);
        break;
    case 2:
        play_worker_exit(worker, (int)below(random, 3));
        break;
    case 3:
        worker->deaf = true;
        break;
    case 4:
        worker->keeps_sessions = true;
        break;
    case 5:
        play_signal(process, process->stopped ? SIGCONT : SIGSTOP);
        break;
    case 6:
        play_worker_send(worker, 1 + below(random, 20), one_in(random, 3) ? below(random, 64) : 0);
        break;
    case 7:
        play_worker_stick(worker);
        break;
    case 8:
        play_worker_close_channel(worker);
        break;
    }
}

static void fail_call(struct random_play *random)
{
    struct play_failures *failures = &random->play->failures;

    random->last = "failure";
    switch (below(random, 4)) {
    case 0:
        failures->fork++;
        break;
    case 1:
        failures->wakeup_add++;
        break;
    case 2:
        failures->handle_open++;
        break;
    case 3:
        failures->execute++;
        break;
    }
}

/* A new worker may do wrong from its start. */
static void forked(struct play *play, struct play_process *process)
{
    struct random_play *random = play->arg;
    struct play_worker *worker = process->worker;

    worker->start_ms = one_in(random, 4) ? below(random, 500) : 0;
    if (!one_in(random, 12))
        return;
    switch (below(random, 4)) {
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

static void kill_master(struct random_play *random)
{
    struct play_process *master = choose(random, false);

    if (master == NULL || !one_in(random, 8))
        return;
    random->last = "kill";
    random->may_end = true;
    play_signal(master, SIGKILL);
}

static void disturb(struct random_play *random)
{
    switch (below(random, 16)) {
    case 0:
    case 1:
        signal_master(random);
        break;
    case 2:
    case 3:
        give_command(random);
        break;
    case 4:
    case 5:
    case 6:
        connect_client(random);
        break;
    case 7:
    case 8:
        close_client(random);
        break;
    case 9:
    case 10:
    case 11:
        disturb_worker(random);
        break;
    case 12:
        fail_call(random);
        break;
    case 13:
        configure(random);
        break;
    case 14:
        kill_master(random);
        break;
    case 15:
        play_pass(random->play, below(random, 3000));
        break;
    }
}

/* Nobody disturbs any more: workers recover, calls succeed. */
static void calm(struct random_play *random)
{
    struct play *play = random->play;
    struct play_process *process;

    memset(&play->failures, 0, sizeof(play->failures));
    play->forked = NULL;
    TAILQ_FOREACH (process, &play->processes, link) {
        if (process->stopped)
            play_signal(process, SIGCONT);
        if (process->worker != NULL)
            play_worker_recover(process->worker);
    }
}

/* What must hold of a daemon at rest. */
static void check_rest(struct random_play *random)
{
    struct play *play = random->play;
    struct play_client *client;
    struct play_process *process;

    TAILQ_FOREACH (client, &play->clients, link) {
        if (client->replied || client->ended)
            continue;
        if (client->of_control)
            give_up(random, "a client of the control socket waits for ever");
        if (!random->may_not_accept && !random->may_end)
            give_up(random, "a client waits for ever");
    }
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->exited && process->parent != NULL && !process->parent->exited)
            give_up(random, "a process that has exited is not reaped");
    if (random->may_end || random->may_not_accept || random->upgraded)
        return;
    if (play_count_masters(play) != 1 || play_main(play) == NULL)
        give_up(random, "there is not one master process, named by the pid file");
    if (play_count_workers(play) == 0)
        give_up(random, "there is no worker");
}

/* Ends the daemon, and checks that nothing is left. */
static void check_end(struct random_play *random)
{
    struct play *play = random->play;
    struct play_process *process;
    DIR *directory;
    struct dirent *entry;

    play_client_close_all(play);
    for (unsigned tries = 0; play_count_masters(play) > 0; tries++) {
        if (tries == 4)
            give_up(random, "the daemon does not end");
        TAILQ_FOREACH (process, &play->processes, link)
            if (process->is_master && !process->exited)
                play_signal(process, SIGINT);
        play_pass(play, 20000);
    }
    play_pass(play, 70000); /* workers of a master process that was killed let sessions end */
    if (play_count_workers(play) > 0)
        give_up(random, "a worker is left");
    directory = opendir(play->directory);
    while ((entry = readdir(directory)) != NULL) {
        if (*entry->d_name == '.' || strcmp(entry->d_name, "conf") == 0 ||
            strcmp(entry->d_name, "stderr") == 0 || strcmp(entry->d_name, "error.log") == 0)
            continue;
        if (play->killed_masters == 0) {
            random->last = entry->d_name;
            give_up(random, "a file is left");
        }
        unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    play->killed_masters = 0;
}

static void begin(struct random_play *random)
{
    struct play *play = random->play;

    random->may_end = random->may_not_accept = random->upgraded = false;
    play_configure(play, random->workers = 1 + below(random, 3), "", "");
    random->valid = true;
    play->forked = NULL;
    play_start(play);
    play_settle(play);
    if (play_main(play) == NULL)
        give_up(random, "the daemon does not start");
    play->forked = forked;
}

static void run_act(struct random_play *random)
{
    struct play *play = random->play;

    random->last = "start";
    if (play_count_masters(play) == 0 || random->may_end) {
        check_end(random);
        begin(random);
    }
    play->forked = forked;
    random->may_not_accept = false;
    for (random->step = 0; random->step < random->options->steps; random->step++) {
        if (one_in(random, 4))
            disturb(random);
        else if (!play_step(play) && !play_pass_to_deadline(play))
            disturb(random);
    }
    calm(random);
    play_pass(play, REST_MS);
    check_rest(random);
}

unsigned long random_play(const struct random_play_options *options)
{
    struct random_play random = { .options = options, .last = "" };
    unsigned long steps;

    random.play = play_create(options->seed);
    random.play->arg = &random;
    for (random.act = 0; random.act < options->acts; random.act++)
        run_act(&random);
    random.last = "end";
    check_end(&random);
    steps = random.play->steps;
    play_destroy(random.play);
    return steps;
}
