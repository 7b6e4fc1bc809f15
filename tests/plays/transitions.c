/* SPDX-License-Identifier: BSD-2-Clause */
/* Transitions of the daemon in random plays with whole workers, a stage at a time. */
#include "plays/random_sessions_private.h"

#include "plays/client.h"
#include "plays/whole.h"

#define SMALL_CONNECTIONS 100
#define TRIES_MAX 100 /* to end a transition */
#define SIGNALS 8

static uint32_t below(struct random_sessions *random, uint32_t n)
{
    return random_sessions_below(random, n);
}

static bool one_in(struct random_sessions *random, uint32_t n)
{
    return random_sessions_one_in(random, n);
}

static const char *flag(struct random_sessions *random)
{
    return one_in(random, 2) ? "on" : "off";
}

/* Notes: clients at listeners of the kind are accepted for certain only by undisturbed workers with
 * room; nobody accepts them while the daemon is told to drain. */
static void note_closing(struct random_sessions *random, unsigned first_listener)
{
    for (unsigned i = 0; i < random->sessions.n; i++) {
        struct play_session *session = &random->sessions.list[i];

        if (session->worker == 0 && session->listener >= first_listener &&
            (random->noisy || random->small || random->drained))
            session->safe = false;
    }
}

static void give_up_extra(struct random_sessions *random)
{
    random->keeps_extra = false;
    note_closing(random, LISTENER_EXTRA);
}

void transition_configure(struct random_sessions *random)
{
    static const unsigned connections[] = { 16, 128, 128, 128, 128, 128 };
    struct play *play = random->play;
    const char *directory = play->directory;
    char *text, extra[128] = "";

    random->workers = 1 + below(random, 3);
    random->connections = connections[below(random, countof(connections))];
    random->small = random->small || random->connections < SMALL_CONNECTIONS;
    random->has_extra = one_in(random, 2);
    if (!random->has_extra)
        give_up_extra(random);
    else
        snprintf(extra, sizeof(extra), "server { listen unix:%s/extra; echo; }", directory);
    ck_assert_int_ne(
        asprintf(&text,
            "daemon off;\nerror_log %s/error.log info;\npid %s/pid;\n"
            "control unix:%s/control;\nsandbox off;\nworker_processes %u;\n"
            "worker_watchdog off;\nmax_generations 0;\n"
            "events { worker_connections %u; reclaim_idle off;\n"
            "%s accept_mutex %s; multi_accept %s; accept_share %s; }\n"
            "stream { first_byte_timeout 1d; idle_timeout 1d;\n"
            "server { listen unix:%s/socket; listen %s; listen %s reuseport;"
            " echo; }\nserver { listen unix:%s/proxy; proxy_pass unix:%s/server; } %s }\n",
            directory, directory, directory, random->workers, random->connections,
            one_in(random, 3) ? "use poll;" : "", flag(random), flag(random), flag(random),
            directory, random->names[LISTENER_TCP], random->names[LISTENER_REUSEPORT], directory,
            directory, extra),
        -1);
    play_write(play, "conf", text);
    free(text);
}

/* Notes that the daemon closes all listeners. Connected clients are accepted all the same, unless
 * the workers in question were disturbed, or are full. */
static void stop_listening(struct random_sessions *random)
{
    if (one_in(random, 2))
        random_sessions_burst(random);
    random->listens = random->keeps_extra = false;
    note_closing(random, 0);
}

static bool start_again(struct random_sessions *random)
{
    random_sessions_start(random);
    return true;
}

static bool reload(struct random_sessions *random)
{
    transition_configure(random);
    if (one_in(random, 2))
        play_signal(play_main(random->play), SIGHUP);
    else
        play_control(random->play, "control", "reload");
    return !one_in(random, 3); /* another one follows */
}

/* Begins an upgrade, and waits until the new process serves beside the old; false: not yet. With
 * its first workers killed it never does. */
static bool serve_beside(struct random_sessions *random, bool configures)
{
    if (random->stage == 0) {
        random->old = play_main(random->play);
        random->old->kept = true;
        if (configures && one_in(random, 3))
            transition_configure(random);
        play_signal(random->old, SIGUSR2);
        random->stage = 1;
    }
    if (random->stage == 1) {
        random->new = play_main(random->play);
        if (random->new == NULL || random->new == random->old)
            return false;
        random->new->kept = true;
        random->stage = 2;
        return false;
    }
    return true;
}

static bool upgrade(struct random_sessions *random)
{
    if (!serve_beside(random, true))
        return false;
    play_signal(random->old, SIGQUIT);
    return true;
}

static bool upgrade_and_kill_old(struct random_sessions *random)
{
    if (!serve_beside(random, true))
        return false;
    play_signal(random->old, SIGKILL);
    return true;
}

static bool upgrade_back(struct random_sessions *random)
{
    if (!serve_beside(random, true))
        return false;
    give_up_extra(random);
    play_signal(random->new, SIGQUIT);
    return true;
}

/* The old process reads the file again, with the new process's bindings: so the result is the
 * same. */
static bool upgrade_drain_and_back(struct random_sessions *random)
{
    if (!serve_beside(random, false))
        return false;
    if (random->stage == 2) {
        play_signal(random->old, SIGWINCH);
        random->drained = true;
        random->stage = 3;
        return false;
    }
    if (random->stage == 3) {
        play_signal(random->old, SIGHUP);
        random->stage = 4;
        return false;
    }
    give_up_extra(random);
    play_signal(random->new, SIGQUIT);
    return true;
}

static bool drain_and_revive(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        random->old = play_main(random->play);
        random->old->kept = true;
        play_signal(random->old, SIGWINCH);
        random->drained = true;
        return false;
    }
    play_signal(random->old, SIGHUP);
    return true;
}

static bool quit_and_resume(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        random->old = play_main(random->play);
        random->old->kept = true;
        stop_listening(random);
        play_signal(random->old, SIGQUIT);
        return false;
    }
    if (!random->old->exited)
        play_signal(random->old, SIGHUP);
    return true;
}

static bool restart(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        stop_listening(random);
        play_signal(play_main(random->play), SIGQUIT);
        if (one_in(random, 2))
            return false;
    }
    return start_again(random);
}

static bool leave(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        stop_listening(random);
        play_control(random->play, "control", "leave");
        if (one_in(random, 2))
            return false;
    }
    return start_again(random);
}

static bool terminate(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        stop_listening(random);
        random->terminated = true;
        play_signal(play_main(random->play), one_in(random, 2) ? SIGTERM : SIGINT);
        return false;
    }
    return start_again(random);
}

static bool kill_master(struct random_sessions *random)
{
    if (random->stage++ == 0) {
        stop_listening(random);
        play_signal(play_main(random->play), SIGKILL);
        if (one_in(random, 2))
            return false;
    }
    return start_again(random);
}

/* A random living master process other than `except`; NULL: none. */
static struct play_process *choose_master(
    struct random_sessions *random, const struct play_process *except)
{
    struct play_process *process, *chosen = NULL;
    uint32_t n = 0;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (process->is_master && !process->exited && process != except && one_in(random, ++n))
            chosen = process;
    return chosen;
}

/* Random signals not ending a master process; then one of two quits, and the survivor serves. */
static bool signal_at_random(struct random_sessions *random)
{
    static const int numbers[] = { SIGHUP, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH };
    int number;

    if (random->stage++ < SIGNALS) {
        if (one_in(random, 4))
            transition_configure(random);
        number = numbers[below(random, countof(numbers))];
        random->drained = random->drained || number == SIGWINCH;
        play_signal(choose_master(random, NULL), number);
        return false;
    }
    if (random->stage < SIGNALS + 20) /* an upgrade may be under way */
        return false;
    if (random->old == NULL) {
        random->old = choose_master(random, NULL);
        random->old->kept = true;
        random->new = choose_master(random, random->old);
        give_up_extra(random);
        if (random->new != NULL)
            play_signal(random->new, SIGQUIT);
        return false;
    }
    if (random->stage < SIGNALS + 40)
        return false;
    play_signal(random->old, SIGHUP);
    return true;
}

static bool nothing(struct random_sessions *random)
{
    (void)random;
    return true;
}

static const struct {
    const char *name;
    bool (*advance)(struct random_sessions *random);
    bool upgrades; /* refused while sessions of an old master process last */
} transitions[] = {
    { "reload", reload, false },
    { "reload", reload, false },
    { "reload", reload, false },
    { "upgrade", upgrade, true },
    { "upgrade, the old process is killed", upgrade_and_kill_old, true },
    { "upgrade and back", upgrade_back, true },
    { "upgrade, drain and back", upgrade_drain_and_back, true },
    { "drain and revive", drain_and_revive, false },
    { "quit and resume", quit_and_resume, false },
    { "restart", restart, false },
    { "leave", leave, false },
    { "terminate", terminate, false },
    { "the master process is killed", kill_master, false },
    { "signals", signal_at_random, true },
    { "signals", signal_at_random, true },
    { "nothing", nothing, false },
};

void transition_choose(struct random_sessions *random)
{
    random->transition = below(random, countof(transitions));
    random->last = transitions[random->transition].name;
    random->stage = random->tries = 0;
    random->old = random->new = NULL;
}

bool transition_advance(struct random_sessions *random)
{
    if (random->tries++ == TRIES_MAX) {
        if (!random->noisy)
            random_sessions_give_up(random, "the transition does not end");
        return true;
    }
    if (random->stage == 0 && transitions[random->transition].upgrades &&
        play_count_masters(random->play) > 1)
        return true;
    if (random->stage == 0 && play_main(random->play) == NULL) /* the names are not back yet */
        return false;
    return transitions[random->transition].advance(random);
}

/* A random whole worker, or a worker just woken by a client; NULL: none. */
static struct play_process *choose_worker(struct random_sessions *random)
{
    struct play_process *process, *chosen = NULL;
    bool woken = one_in(random, 2);
    uint32_t n = 0;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (process->kind == PROCESS_WORKER && !process->exited &&
            (!woken || process->whole->woken) && one_in(random, ++n))
            chosen = process;
    return chosen;
}

void transition_disturb_worker(struct random_sessions *random)
{
    static const int numbers[] = { SIGKILL, SIGSEGV, SIGTERM, SIGINT };
    struct play_process *process = choose_worker(random);

    if (process == NULL)
        return;
    if (one_in(random, 2)) {
        play_signal(process, process->stopped ? SIGCONT : SIGSTOP);
        return;
    }
    if (random->killed_n == countof(random->killed))
        return;
    random->killed[random->killed_n++] = process->pid;
    play_signal(process, numbers[below(random, countof(numbers))]);
}
