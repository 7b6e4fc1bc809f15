/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets clients come, talk and go at random during the daemon's transitions, and checks for lost
 * clients. */
#include "net/address_parse.h"
#include "plays/random_sessions_private.h"

#include "plays/client.h"
#include "plays/server.h"
#include "plays/whole.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 40
#define SMALL 6       /* sessions for which any worker has room */
#define REST_MS 20000 /* for everything but sessions to end */

static void print_sessions(const struct random_sessions *random)
{
    for (unsigned i = 0; i < random->sessions.n; i++) {
        const struct play_session *session = &random->sessions.list[i];

        fprintf(stderr, "session %u: listener %u, worker %d, %zu sent, %zu echoed%s%s\n", i,
            session->listener, (int)session->worker, session->sent, session->echoed,
            session->safe ? ", safe" : "", session->ended ? ", ended" : "");
    }
}

NORETURN void random_sessions_give_up(const struct random_sessions *random, const char *what)
{
    char *log = play_read(random->play, "error.log"), *conf = play_read(random->play, "conf");
    const struct play_process *process;
    size_t n = strlen(log);

    fprintf(stderr, "%s\n%s\n", n > 6000 ? log + n - 6000 : log, conf);
    TAILQ_FOREACH (process, &random->play->processes, link)
        fprintf(stderr,
            "process %d, parent %d, %s%s%s, wait %d until %llu, sessions %u, counts %u\n",
            (int)process->pid, process->parent != NULL ? (int)process->parent->pid : 0,
            process->is_master ? "master" : "worker", process->exited ? ", exited" : "",
            process->stopped ? ", stopped" : "", (int)process->wait,
            (unsigned long long)process->until_ms,
            play_sessions_of(&random->sessions, process->pid),
            process->whole != NULL ? (unsigned)play_whole_counter(process, COUNTER_ACTIVE) : 0);
    print_sessions(random);
    ck_abort_msg("seed %llu, act %u, step %u, transition \"%s\" at stage %u: %s",
        (unsigned long long)random->options->seed, random->act, random->step, random->last,
        random->stage, what);
    abort();
}

uint32_t random_sessions_below(struct random_sessions *random, uint32_t n)
{
    return random_below(&random->play->state, n);
}

bool random_sessions_one_in(struct random_sessions *random, uint32_t n)
{
    return random_sessions_below(random, n) == 0;
}

static uint32_t below(struct random_sessions *random, uint32_t n)
{
    return random_sessions_below(random, n);
}

static bool one_in(struct random_sessions *random, uint32_t n)
{
    return random_sessions_one_in(random, n);
}

static void accepted(struct play *play, struct play_process *process, const struct sockaddr *client,
    socklen_t length)
{
    struct random_sessions *random = play->arg;

    play_session_accepted(&random->sessions, process->pid, client, length);
}

static bool was_killed(const struct random_sessions *random, pid_t worker)
{
    for (unsigned i = 0; i < random->killed_n; i++)
        if (random->killed[i] == worker)
            return true;
    return false;
}

void random_sessions_receive(struct random_sessions *random, struct play_session *session)
{
    bool ended = session->ended;

    play_session_receive(session);
    if (!session->ended || ended || random->terminated || !session->safe)
        return;
    if (session->listener == LISTENER_PROXY && random->small)
        return; /* no room was left for the connection to the server */
    if (session->worker == 0)
        random_sessions_give_up(random, "a client that waited was lost");
    if (!was_killed(random, session->worker))
        random_sessions_give_up(random, "a session was ended");
}

static void connect_client(struct random_sessions *random, unsigned listener)
{
    struct play_session *session;

    if (random->sessions.n >= CLIENTS_MAX)
        return;
    session = play_session_open(random->play, &random->sessions, &random->listeners[listener]);
    if (session == NULL) {
        if (listener < LISTENERS ? random->listens : random->keeps_extra)
            random_sessions_give_up(random, "nobody listens");
        return;
    }
    session->listener = listener;
    session->slow = one_in(random, 4);
    session->safe = listener < LISTENERS ? random->listens : random->keeps_extra;
    if (!one_in(random, 4))
        play_session_send(session, 1 + below(random, 300));
}

/* Acts for a client: half of the clients leave at some time, the rest stay. */
static void use_session(struct random_sessions *random)
{
    struct play_session *session;

    if (random->sessions.n == 0)
        return;
    session = &random->sessions.list[below(random, random->sessions.n)];
    switch (below(random, 4)) {
    case 0:
        play_session_send(session, 1 + below(random, 300));
        break;
    case 1:
        if (!session->slow || one_in(random, 8))
            random_sessions_receive(random, session);
        break;
    case 2:
        random_sessions_receive(random, session);
        if (session->ended || one_in(random, 4))
            play_session_close(&random->sessions, session);
        break;
    case 3:
        if (session->ended)
            play_session_close(&random->sessions, session);
        break;
    }
}

static void disturb(struct random_sessions *random)
{
    switch (below(random, 8)) {
    case 0:
    case 1:
    case 2:
        connect_client(random, below(random, LISTENERS_ALL));
        break;
    case 3:
    case 4:
    case 5:
        use_session(random);
        break;
    case 6:
        if (random->noisy && one_in(random, 4))
            transition_disturb_worker(random);
        break;
    case 7:
        play_server_step(random->play->server);
        if (one_in(random, 4))
            play_pass(random->play, below(random, 600));
        break;
    }
}

/* Stopped workers go on, and the transition ends. */
static void calm(struct random_sessions *random)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (process->stopped)
            play_signal(process, SIGCONT);
    while (!random->over) {
        random->over = transition_advance(random);
        play_pass(random->play, below(random, 1000));
    }
    if (random->drained && random->noisy) /* workers may have been killed before accepting again */
        play_signal(random->old, SIGHUP);
}

/* Starts the daemon where a transition has left none. */
static void ensure_service(struct random_sessions *random)
{
    play_pass(random->play, REST_MS);
    for (unsigned tries = 0; play_main(random->play) == NULL; tries++) {
        if (random->listens || tries == 3)
            random_sessions_give_up(random, "no daemon runs");
        random_sessions_start(random);
        play_pass(random->play, REST_MS);
    }
}

/* Closes one in so many sessions. */
static void end_sessions(struct random_sessions *random, uint32_t n)
{
    for (unsigned i = random->sessions.n; i > 0; i--) {
        if (!one_in(random, n))
            continue;
        random_sessions_receive(random, &random->sessions.list[i - 1]);
        play_session_close(&random->sessions, &random->sessions.list[i - 1]);
    }
    play_pass(random->play, 1000);
}

void random_sessions_burst(struct random_sessions *random)
{
    unsigned listener = below(random, LISTENERS_ALL);

    for (uint32_t n = below(random, 6); n > 0; n--) {
        connect_client(random, listener);
        if (one_in(random, 4))
            play_step(random->play);
    }
}

/* Clients come, and the woken workers are killed before the accept. */
static void strand_clients(struct random_sessions *random)
{
    random_sessions_burst(random);
    for (uint32_t n = 1 + below(random, 3); n > 0; n--)
        transition_disturb_worker(random);
}

/* Whether the configuration in force has the extra listener: an upgrade may have failed, or was
 * taken back. */
static bool has_extra(struct random_sessions *random)
{
    struct play_session *session =
        play_session_open(random->play, &random->sessions, &random->listeners[LISTENER_EXTRA]);

    if (session != NULL)
        session->listener = LISTENER_EXTRA;
    return session != NULL;
}

/* Goes on with the transition; workers that clients wake soon after may be killed. */
static void advance(struct random_sessions *random)
{
    random->over = transition_advance(random);
    if (!random->noisy || !one_in(random, 2))
        return;
    for (uint32_t n = below(random, 40); n > 0; n--)
        play_step(random->play);
    strand_clients(random);
}

static void run_act(struct random_sessions *random)
{
    transition_choose(random);
    random->listens = true;
    random->keeps_extra = random->has_extra && has_extra(random);
    random->noisy = one_in(random, 2);
    random->terminated = random->over = random->drained = false;
    for (random->step = 0; random->step < random->options->steps; random->step++) {
        if (one_in(random, 3))
            disturb(random);
        else if (!random->over && one_in(random, 24))
            advance(random);
        else if (!play_step(random->play) && one_in(random, 8))
            play_pass(random->play, below(random, 100));
    }
    if (random->noisy && one_in(random, 2))
        strand_clients(random);
    calm(random);
    ensure_service(random);
    rest_check(random);
    end_sessions(random, one_in(random, 3) ? 1 : 2);
}

static void end_daemon(struct random_sessions *random)
{
    struct play *play = random->play;
    struct play_process *process;

    random->last = "end";
    random->terminated = true;
    end_sessions(random, 1);
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->is_master && !process->exited)
            play_signal(process, SIGINT);
    play_pass(play, REST_MS);
    if (play_count_masters(play) > 0 || play_count_workers(play) > 0)
        random_sessions_give_up(random, "a process is left");
}

void random_sessions_start(struct random_sessions *random)
{
    play_start(random->play);
}

/* Claims an address for as long as the descriptor is open: another test program may have the same
 * seed. -1: the address is taken. */
static int claim_address(unsigned seed, unsigned n)
{
    struct address address;
    char text[64];
    int fd;

    snprintf(text, sizeof(text), "127.77.%u.%u:6999", seed % 250, 1 + n);
    ck_assert_ptr_null(address_parse(text, 0, &address));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    test_require(fd != -1);
    if (bind(fd, &address.any, address.length) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The addresses are the seed's, because a queue of reuseport is chosen by them. */
static void choose_addresses(struct random_sessions *random)
{
    static const char *const formats[] = { "unix:%s/socket", NULL, NULL, "unix:%s/proxy",
        "unix:%s/extra" };
    unsigned seed = (unsigned)random->options->seed, n = 0;

    while ((random->claim = claim_address(seed, n)) == -1)
        test_require(++n < 250);

    for (unsigned i = 0; i < LISTENERS_ALL; i++) {
        char *name = random->names[i];

        if (formats[i] != NULL)
            snprintf(name, sizeof(random->names[i]), formats[i], random->play->directory);
        else
            snprintf(
                name, sizeof(random->names[i]), "127.77.%u.%u:%u", seed % 250, 1 + n, 6999 + i);
        ck_assert_ptr_null(address_parse(name, 0, &random->listeners[i]));
    }
}

void random_sessions(
    const struct random_sessions_options *options, struct random_sessions_result *result)
{
    static struct random_sessions random;

    random = (struct random_sessions) { .options = options, .last = "start" };
    random.play = play_create(options->seed);
    random.play->arg = &random;
    random.play->whole_workers = true;
    random.play->accepted = accepted;
    random.play->passes = wait_check;
    random.play->server = play_server_create(random.play, "server");
    choose_addresses(&random);
    transition_configure(&random);
    random_sessions_start(&random);
    ensure_service(&random);
    for (random.act = 0; random.act < options->acts; random.act++)
        run_act(&random);
    end_daemon(&random);
    if (play_server_count(random.play->server) > 0)
        random_sessions_give_up(&random, "a worker has left a connection to the server");
    play_server_destroy(&random.play->server);
    result->steps += random.play->steps;
    result->connected += random.sessions.connected;
    result->accepted += random.sessions.accepted;
    result->served += random.sessions.served;
    play_destroy(random.play);
    close(random.claim);
}
