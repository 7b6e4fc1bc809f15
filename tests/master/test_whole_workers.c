/* SPDX-License-Identifier: BSD-2-Clause */
/* Transitions of a master process with whole workers: no session is lost by them. */
#include "net/address_parse.h"
#include "plays/client.h"
#include "plays/play.h"
#include "plays/server.h"
#include "plays/sessions.h"
#include "plays/whole.h"

static struct play_sessions sessions;

static void accepted(struct play *play, struct play_process *process, const struct sockaddr *client,
    socklen_t length)
{
    (void)play;
    play_session_accepted(&sessions, process->pid, client, length);
}

/* The events block of play_configure(). */
#define DEFAULT_EVENTS "worker_connections 16;"
/* Workers woken by the kernel one at a time. */
#define EXCLUSIVE "accept_mutex off;"

/* Writes a configuration with these directives in the events block, and in the stream block. */
static void configure(struct play *play, unsigned workers, const char *events, const char *stream)
{
    char *text, *at, *changed;

    play_configure(play, workers, "", stream);
    text = play_read(play, "conf");
    at = strstr(text, DEFAULT_EVENTS);
    ck_assert_ptr_nonnull(at);
    ck_assert_int_ne(
        asprintf(&changed, "%.*s%s%s", (int)(at - text), text, events, at + strlen(DEFAULT_EVENTS)),
        -1);
    play_write(play, "conf", changed);
    free(changed);
    free(text);
}

static struct play *start_with(unsigned workers, const char *events, const char *stream)
{
    struct play *play = play_create(1);

    play->whole_workers = true;
    play->accepted = accepted;
    sessions.n = 0;
    configure(play, workers, events, stream);
    play_start(play);
    play_settle(play);
    ck_assert_uint_eq(play_count_workers(play), workers);
    return play;
}

static struct play *start(unsigned workers)
{
    return start_with(workers, DEFAULT_EVENTS, "");
}

static void finish(struct play *play)
{
    play_session_close_all(&sessions);
    play_destroy(play);
}

static struct play_session *open_session_at(struct play *play, const char *text)
{
    struct play_session *session;
    struct address address;

    ck_assert_ptr_null(address_parse(text, 0, &address));
    session = play_session_open(play, &sessions, &address);
    ck_assert_ptr_nonnull(session);
    play_session_send(session, 100);
    return session;
}

static struct play_session *open_session_of(struct play *play, const char *listener)
{
    char text[128];

    snprintf(text, sizeof(text), "unix:%s", play_path(play, listener));
    return open_session_at(play, text);
}

static struct play_session *open_session(struct play *play)
{
    return open_session_of(play, "socket");
}

static void check_served(struct play_session *session)
{
    play_session_receive(session);
    ck_assert(!session->ended && session->worker != 0);
    ck_assert(play_session_is_served(session));
}

START_TEST(test_start_serves)
{
    struct play *play = start(2);
    struct play_session *session = open_session(play);

    play_settle(play);
    check_served(session);
    finish(play);
}
END_TEST

START_TEST(test_reload_keeps_session)
{
    struct play *play = start(2);
    struct play_session *before = open_session(play), *after;
    struct play_client *client;

    play_settle(play);
    client = play_control(play, "control", "reload");
    play_pass(play, 2000);
    ck_assert(play_client_is_ok(client));
    ck_assert_uint_eq(play_count_workers(play), 3);
    after = open_session(play);
    play_session_send(before, 10);
    play_pass(play, 1000);
    check_served(before);
    check_served(after);
    ck_assert_int_ne(before->worker, after->worker);
    finish(play);
}
END_TEST

static void reload(struct play *play)
{
    struct play_client *client = play_control(play, "control", "reload");

    play_pass(play, 2000);
    ck_assert(play_client_is_ok(client));
}

/* Beyond max_draining_workers: sessions of the oldest workers, without moving bytes. */
START_TEST(test_idle_session_of_too_many_workers_ends)
{
    struct play *play = play_create(1);
    struct play_session *idle, *busy, *newer;

    play->whole_workers = true;
    play->accepted = accepted;
    sessions.n = 0;
    play_configure(play, 1, "max_draining_workers 1;", "");
    play_start(play);
    play_settle(play);
    idle = open_session(play);
    busy = open_session(play);
    play_settle(play);
    reload(play);
    newer = open_session(play);
    play_pass(play, 61000);
    play_session_send(busy, 10);
    play_pass(play, 1000);
    reload(play);
    play_session_receive(idle);
    ck_assert(idle->ended);
    check_served(busy);
    check_served(newer);
    ck_assert(play_has_logged(play, "an idle session ends, because too many old workers drain"));
    finish(play);
}
END_TEST

START_TEST(test_killed_worker_ends_own_sessions)
{
    struct play *play = start(2);
    struct play_session *list[8];
    pid_t killed;

    for (size_t i = 0; i < countof(list); i++) {
        list[i] = open_session(play);
        play_settle(play);
        check_served(list[i]);
    }
    killed = list[0]->worker;
    play_signal(play_find(play, killed), SIGKILL);
    play_pass(play, 3000);
    ck_assert_uint_eq(play_count_workers(play), 2);
    for (size_t i = 0; i < countof(list); i++) {
        play_session_receive(list[i]);
        ck_assert_int_eq(list[i]->ended, list[i]->worker == killed);
    }
    finish(play);
}
END_TEST

/* The new process quits with a lasting session, after the old process has drained. */
START_TEST(test_drained_process_serves_when_other_quits)
{
    struct play *play = start(2);
    struct play_process *old = play_main(play), *new;
    struct play_session *before, *after;

    old->kept = true;
    play_signal(old, SIGUSR2);
    play_settle(play);
    new = play_main(play);
    ck_assert_ptr_ne(new, old);
    play_signal(old, SIGWINCH);
    play_pass(play, 1000);
    before = open_session(play);
    play_settle(play);
    check_served(before);
    play_signal(new, SIGQUIT);
    play_pass(play, 1000);
    after = open_session(play);
    play_pass(play, 5000);
    check_served(after);
    check_served(before);
    finish(play);
}
END_TEST

/* Opens the only session admitted by a limit. */
static struct play_session *open_only_session(struct play *play)
{
    struct play_session *session = open_session(play);

    play_settle(play);
    check_served(session);
    return session;
}

/* Either process is killed, and later its worker, whose session counts in a limit until then: only
 * the remaining process can take the session out of the count. */
START_TEST(test_limit_forgets_worker_of_killed_process)
{
    struct play *play =
        start_with(1, DEFAULT_EVENTS, "limit_conn_zone all zone=all:32k; limit_conn all 1;");
    struct play_process *old = play_main(play), *new, *killed;
    struct play_session *session = _i == 0 ? open_only_session(play) : NULL, *refused;

    play_signal(old, SIGUSR2);
    play_settle(play);
    new = play_main(play);
    ck_assert_ptr_ne(new, old);
    killed = _i == 0 ? old : new;
    if (_i == 1) {
        play_signal(old, SIGWINCH);
        play_settle(play);
        session = open_only_session(play);
    }
    ck_assert_ptr_eq(play_find(play, session->worker)->parent, killed);
    play_kill(killed, SIGKILL);
    play_pass(play, 2000);
    refused = open_session(play);
    play_settle(play);
    play_session_receive(refused);
    ck_assert(refused->ended);
    play_signal(play_find(play, session->worker), SIGKILL);
    play_pass(play, 1000);
    open_only_session(play);
    finish(play);
}
END_TEST

static void expect_connections(struct play *play, unsigned n)
{
    struct play_client *client = play_request(play, "control", "{\"command\":\"upstream\"}");
    char text[64];

    play_settle(play);
    ck_assert(play_client_is_ok(client));
    snprintf(text, sizeof(text), "\"connections\":%u,", n);
    ck_assert_msg(strstr(client->line, text) != NULL, "reply: %s", client->line);
}

/* "upstream" tells an operator how many connections workers have to a server at this moment. */
START_TEST(test_connections_to_server_are_told)
{
    struct play *play = start_with(2, DEFAULT_EVENTS,
        "upstream u { zone u 64k; server unix:$D/server; }"
        "server { listen unix:$D/proxy; proxy_pass u; }");

    play->server = play_server_create(play, "server");
    for (unsigned n = 0; n < 3; n++) {
        expect_connections(play, n);
        open_session_of(play, "proxy");
        play_settle(play);
    }
    expect_connections(play, 3);
    play_session_close_all(&sessions);
    play_pass(play, 1000);
    expect_connections(play, 0);
    play_server_destroy(&play->server);
    finish(play);
}
END_TEST

/* Sessions are in all workers of the old process, and the configuration file has a mistake. */
START_TEST(test_drained_process_needs_no_file_to_serve)
{
    struct play *play = start(1);
    struct play_process *old = play_main(play), *new;
    struct play_session *before = open_session(play), *after;

    play_settle(play);
    check_served(before);
    play_signal(old, SIGUSR2);
    play_settle(play);
    new = play_main(play);
    ck_assert_ptr_ne(new, old);
    play_signal(old, SIGWINCH);
    play_pass(play, 1000);
    play_configure(play, 1, "mistake;", "");
    play_signal(new, _i == 0 ? SIGQUIT : SIGKILL);
    play_pass(play, 1000);
    after = open_session(play);
    play_pass(play, 5000);
    check_served(after);
    check_served(before);
    finish(play);
}
END_TEST

static struct play_process *find_woken(struct play *play)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->whole != NULL && !process->exited && process->whole->woken)
            return process;
    return NULL;
}

/* After every step of a reload a client comes, and the worker woken for the client is killed. */
START_TEST(test_woken_worker_is_killed_during_reload)
{
    struct play *play = start_with(2, EXCLUSIVE, "");
    struct play_process *woken;
    struct play_session *session;

    play_signal(play_main(play), SIGHUP);
    for (int i = 0; i < _i; i++)
        play_step(play);
    session = open_session(play);
    woken = find_woken(play);
    if (woken != NULL)
        play_signal(woken, SIGKILL);
    play_pass(play, 500);
    check_served(session);
    finish(play);
}
END_TEST

/* No further worker can be forked for a while: the workers not woken look for the client. */
START_TEST(test_client_of_killed_worker_is_accepted_by_other)
{
    struct play *play = start_with(2, EXCLUSIVE, "");
    struct play_process *woken;
    struct play_session *session;

    session = open_session(play);
    woken = find_woken(play);
    ck_assert_ptr_nonnull(woken);
    play->failures.fork = 1;
    play_signal(woken, SIGKILL);
    play_pass(play, 100);
    ck_assert_uint_eq(play_count_workers(play), 1);
    check_served(session);
    finish(play);
}
END_TEST

static struct play_process *find_mutex_holder(struct play *play)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link) {
        const struct heritage *heritage;
        struct slot_id owner;

        if (process->whole == NULL || process->exited)
            continue;
        heritage = &process->whole->heritage;
        owner = shm_lock_id(shm_lock_owner(&heritage->shared->common->accept_mutex));
        if (owner.slot == heritage->slot.slot && owner.serial == heritage->slot.serial)
            return process;
    }
    return NULL;
}

/* The worker with the accept turn drains with a lasting session. The second worker takes the turn
 * at once: the clock does not move before the next client is accepted. */
START_TEST(test_client_is_accepted_at_once_when_worker_drains)
{
    static const char *const events[] = { "use poll; accept_share off;",
        "use poll; accept_share on;" };
    struct play *play = start_with(2, events[_i], "");
    struct play_process *holder;
    struct play_session *session;

    do {
        session = open_session(play);
        play_settle(play);
        check_served(session);
        holder = find_mutex_holder(play);
        ck_assert_ptr_nonnull(holder);
    } while (play_sessions_of(&sessions, holder->pid) == 0);
    play_signal(holder, SIGQUIT);
    play_settle(play);
    session = open_session(play);
    play_settle(play);
    check_served(session);
    ck_assert_int_ne(session->worker, holder->pid);
    ck_assert(!holder->exited);
    finish(play);
}
END_TEST

/* Clients come until so many wait, in the queue of a worker that has gone. */
static void open_waiting_sessions(struct play *play, const char *address, unsigned n)
{
    unsigned waiting;

    do {
        open_session_at(play, address);
        play_settle(play);
        waiting = 0;
        for (unsigned i = 0; i < sessions.n; i++)
            waiting += sessions.list[i].worker == 0;
    } while (waiting < n);
}

/* A worker was killed, and before another one is forked in its place the listener is closed, by a
 * quit or a reload: clients in the queue of the killed worker are accepted first. */
START_TEST(test_queue_of_killed_worker_is_emptied_before_it_is_closed)
{
    struct play *play =
        start_with(2, "accept_share off;", "server { listen $A:7000 reuseport; echo; }");
    char address[64];

    snprintf(address, sizeof(address), "%s:7000", play->address);
    play_signal(play_find_kind(play, PROCESS_WORKER), SIGKILL);
    play_settle(play);
    open_waiting_sessions(play, address, 3);
    ck_assert_uint_eq(play_count_workers(play), 1);
    if (_i == 0)
        play_configure(play, 2, "", "");
    play_signal(play_main(play), _i == 0 ? SIGHUP : SIGQUIT);
    play_settle(play);
    for (unsigned i = 0; i < sessions.n; i++)
        check_served(&sessions.list[i]);
    finish(play);
}
END_TEST

START_TEST(test_quit_ends_all)
{
    struct play *play = start(2);
    struct play_process *master = play_main(play);

    play_signal(master, SIGQUIT);
    play_settle(play);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    finish(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_start_serves);
    tcase_add_test(tcase, test_reload_keeps_session);
    tcase_add_test(tcase, test_idle_session_of_too_many_workers_ends);
    tcase_add_test(tcase, test_killed_worker_ends_own_sessions);
    tcase_add_test(tcase, test_drained_process_serves_when_other_quits);
    tcase_add_loop_test(tcase, test_drained_process_needs_no_file_to_serve, 0, 2);
    tcase_add_loop_test(tcase, test_limit_forgets_worker_of_killed_process, 0, 2);
    tcase_add_test(tcase, test_connections_to_server_are_told);
    tcase_add_loop_test(tcase, test_woken_worker_is_killed_during_reload, 0, 40);
    tcase_add_test(tcase, test_client_of_killed_worker_is_accepted_by_other);
    tcase_add_loop_test(tcase, test_client_is_accepted_at_once_when_worker_drains, 0, 2);
    tcase_add_loop_test(tcase, test_queue_of_killed_worker_is_emptied_before_it_is_closed, 0, 2);
    tcase_add_test(tcase, test_quit_ends_all);
}

TEST_MAIN("whole workers", add_tests)
