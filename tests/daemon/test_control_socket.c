/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: path, permissions, and slow, rude or vanished clients. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define CLIENTS_MAX 32
#define REQUEST_MAX 65536

static bool is_socket(const struct daemon *daemon, const char *name)
{
    struct stat st;

    return lstat(daemon_path(daemon, name), &st) == 0 && S_ISSOCK(st.st_mode);
}

static int run_command(struct daemon *daemon, const char *order)
{
    return daemon_run(daemon, "-s", order, "-c", "forkbeard.conf", NULL);
}

static void check_answers(const struct daemon *daemon)
{
    ck_assert(control_is_ok(control_ask(daemon, "status")));
}

/* The file */

START_TEST(it_is_private_and_there_while_we_serve)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 2; " ECHO);
    struct stat st;
    pid_t workers[2];
    unsigned descriptors;

    ck_assert_int_eq(lstat(daemon_path(daemon, "forkbeard.sock"), &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert(!daemon_has(daemon, "forkbeard.sock.new"));

    /* no worker holds the socket, or a client's connection */
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    descriptors = proc_descriptors(workers[0]);
    daemon_configure(daemon, "worker_processes 2; control off; " ECHO);
    ck_assert_int_eq(run_command(daemon, "reload"), 0);
    WAIT_FOR(proc_state(workers[0]) == 0 && proc_state(workers[1]) == 0);
    ck_assert(!daemon_has(daemon, "forkbeard.sock"));
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    ck_assert_uint_eq(proc_descriptors(workers[0]), descriptors);

    daemon_configure(daemon, "worker_processes 2; " ECHO);
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(is_socket(daemon, "forkbeard.sock"));
    check_answers(daemon);
    daemon_stop(daemon, _i == 0 ? SIGTERM : SIGQUIT);
    ck_assert(!daemon_has(daemon, "forkbeard.sock"));
    daemon_finish(daemon);
}
END_TEST

/* The client of the reload is answered although the socket has changed. */
START_TEST(it_moves_with_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    unsigned descriptors = proc_descriptors(daemon->pid);

    daemon_configure(daemon, "control unix:other.sock; " ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock"));
    ck_assert(is_socket(daemon, "other.sock"));
    ck_assert_int_eq(run_command(daemon, "reload"), 0);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);

    daemon_configure(daemon, ECHO);
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(is_socket(daemon, "forkbeard.sock"));
    WAIT_FOR(!daemon_has(daemon, "other.sock"));
    check_answers(daemon);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    daemon_finish(daemon);
}
END_TEST

/* A reload unable to make the socket is refused, and the old socket stays. */
START_TEST(it_cannot_move)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);

    daemon_expects(daemon, "control socket");
    daemon_configure(daemon, "control unix:nowhere/a.sock; " ECHO);
    ck_assert(!control_is_ok(control_ask(daemon, "reload")));
    daemon_wait_log(daemon, "/nowhere/a.sock\" failed (2: No such file or directory)");
    check_answers(daemon);

    daemon_configure(daemon, "control unix:forkbeard.conf; " ECHO);
    ck_assert(!control_is_ok(control_ask(daemon, "reload")));
    daemon_wait_log(daemon, "/forkbeard.conf\" exists and is not a socket");
    check_answers(daemon);
    daemon_finish(daemon);
}
END_TEST

/* Clients that could not be accepted are, when there are descriptors again. */
START_TEST(no_descriptors)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    struct rlimit before, none;
    int client;

    ck_assert_int_eq(prlimit(daemon->pid, RLIMIT_NOFILE, NULL, &before), 0);
    none = before;
    none.rlim_cur = 0;
    ck_assert_int_eq(prlimit(daemon->pid, RLIMIT_NOFILE, &none, NULL), 0);
    client = control_open(daemon);
    control_send(client, "status");
    daemon_wait_log(daemon, "accept4() for the control socket failed (24: Too many open files)");
    ck_assert_int_eq(prlimit(daemon->pid, RLIMIT_NOFILE, &before, NULL), 0);
    ck_assert(control_is_ok(control_receive(client)));
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(it_comes_back)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);

    ck_assert_int_eq(unlink(daemon_path(daemon, "forkbeard.sock")), 0);
    ck_assert_int_eq(run_command(daemon, "reload"), 0);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "there is no control socket (2: No such file or directory)\n"));
    WAIT_FOR(is_socket(daemon, "forkbeard.sock"));
    check_answers(daemon);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_stale_one_is_replaced)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);

    daemon_expects(daemon, "the master process has gone");
    daemon_signal(daemon, SIGKILL);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGKILL);
    proc_reap_orphans();
    ck_assert(is_socket(daemon, "forkbeard.sock"));
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "(111: Connection refused)"));
    daemon_write(daemon, "forkbeard.sock.new", "of a crash within its making");
    daemon_start(daemon);
    check_answers(daemon);
    daemon_finish(daemon);
}
END_TEST

static const char *const variants[] = { "daemon off;", "daemon on;" };

START_TEST(a_start_fails_where_it_cannot_be_made)
{
    static const struct {
        const char *configuration, *line;
        int code;
    } cases[] = {
        { "control unix:nowhere/a.sock; " ECHO, "/nowhere/a.sock\" failed (2: No such file", 1 },
        { "control unix:forkbeard.conf; " ECHO, "/forkbeard.conf\" exists and is not a socket", 1 },
        { "control unix:$D/../in_use.sock; " ECHO, "/in_use.sock\" is in use: give this daemon",
            75 },
    };
    struct daemon *other = daemon_create(1), *daemon = daemon_create(1);
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(other, "../in_use.sock"));
    daemon_configure(other, "control unix:../in_use.sock; " ECHO);
    daemon_start(other);
    daemon_configure(daemon, "%s", cases[_i / 2].configuration);
    daemon_expects(daemon, cases[_i / 2].line);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", variants[_i % 2], NULL),
        cases[_i / 2].code);
    ck_assert_msg(strstr(daemon->err, cases[_i / 2].line) != NULL, "%s", daemon->err);
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    close(client_open_unix(path));
    daemon_stop(other, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
    daemon_finish(other);
}
END_TEST

/* Permissions */

static void become_nobody(void)
{
    if (setgid(65534) == -1 || setuid(65534) == -1)
        _exit(123);
}

/* Asks as another user: returns the result of connect(), and the answer's first bytes. */
static int ask_as_nobody(const struct daemon *daemon, char answer[256])
{
    int ends[2], code;
    pid_t pid;
    ssize_t n;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s",
            daemon_path(daemon, "forkbeard.sock"));
        become_nobody();
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1)
            _exit(errno);
        n = recv(fd, answer, 255, 0);
        _exit(n > 0 && write(ends[1], answer, (size_t)n) == n ? 0 : 124);
    }
    close(ends[1]);
    code = proc_wait(pid);
    n = read(ends[0], answer, 255);
    ck_assert_int_ge(n, 0);
    answer[n] = '\0';
    close(ends[0]);
    return code;
}

START_TEST(others_may_not_ask)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    char answer[256];

    ck_assert_int_eq(ask_as_nobody(daemon, answer), EACCES);
    ck_assert_int_eq(chmod(daemon_path(daemon, "forkbeard.sock"), 0666), 0);
    ck_assert_int_eq(ask_as_nobody(daemon, answer), 0);
    ck_assert_str_eq(answer, "{\"ok\":false,\"error\":\"permission denied: only root and the "
                             "daemon's own user may ask\"}\n");
    daemon_wait_log(daemon, "[warn] ");
    daemon_wait_log(daemon, " of user 65534 may not use the control socket, refused");
    check_answers(daemon);

    daemon->before_exec = become_nobody;
    ck_assert_int_eq(run_command(daemon, "quit"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "permission denied"));
    daemon->before_exec = NULL;
    daemon_finish(daemon);
}
END_TEST

/* A daemon not run as root: root and its own user may ask. */
START_TEST(the_daemons_user_and_root_may_ask)
{
    struct daemon *daemon = daemon_create(1);

    ck_assert_int_eq(chmod(daemon->directory, 0777), 0);
    daemon_configure(daemon, ECHO);
    daemon->before_exec = become_nobody;
    daemon_start(daemon);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    daemon->before_exec = NULL;
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    daemon_finish(daemon);
}
END_TEST

/* Rude clients */

static const struct {
    const char *request, *error;
} wrong[] = {
    { "\n", "the request is no JSON object on a line" },
    { "status\n", "the request is no JSON object on a line" },
    { "[\"status\"]\n", "the request is no JSON object on a line" },
    { "{\"command\":\"status\"\n", "the request is no JSON object on a line" },
    { "GET / HTTP/1.1\r\n", "the request is no JSON object on a line" },
    { "\xff\xfe\x01\n", "the request is no JSON object on a line" },
    { "{}\n", "the request has no \"command\": expected status, upstream, sessions, certificates, "
              "events, log, "
              "reload, reopen, upgrade, "
              "resume, quit, leave or stop" },
    { "{\"command\":1}\n", "the request has no \"command\": expected status, upstream, sessions, "
                           "certificates, events, log, "
                           "reload, reopen, upgrade, resume, quit, leave or stop" },
    { "{\"command\":\"kill \\\"\"}\n", "unknown command \"kill \"\", expected status, upstream, "
                                       "sessions, certificates, events, log, "
                                       "reload, reopen, upgrade, resume, quit, leave or stop" },
};

/* They are told, and may try again. */
START_TEST(wrong_requests)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    int client = control_open(daemon);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct json_value answer;

        client_send(client, wrong[i].request);
        answer = control_receive(client);
        ck_assert(!control_is_ok(answer));
        ck_assert_str_eq(control_text(answer, "error"), wrong[i].error);
    }
    client_send(client, " { \"id\" : [1, {}], \"command\" : \"stat\\u0075s\" } \r\n");
    ck_assert(control_is_ok(control_receive(client)));
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(pieces_and_many_at_once)
{
    static const char request[] = "{\"command\":\"status\"}\n";
    struct daemon *daemon = daemon_start_new(1, ECHO);
    int client = control_open(daemon);

    for (const char *p = request; *p != '\0'; p++) {
        ck_assert_int_eq(send(client, p, 1, MSG_NOSIGNAL), 1);
        check_answers(daemon); /* no client waits for it */
    }
    ck_assert(control_is_ok(control_receive(client)));

    for (int i = 0; i < 100; i++)
        client_send(client, request);
    for (int i = 0; i < 100; i++)
        ck_assert(control_is_ok(control_receive(client)));

    /* the last line need not end, if nothing follows */
    client_send(client, "{\"command\":\"status\"}");
    ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
    ck_assert(control_is_ok(control_receive(client)));
    client_expect_end(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_request_has_a_limit)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    char *request = malloc(REQUEST_MAX + 1);
    int client = control_open(daemon);

    ck_assert_ptr_nonnull(request);
    memset(request, ' ', REQUEST_MAX);
    memcpy(request, "{\"command\":\"status\"}", 20);
    request[REQUEST_MAX - 1] = '\n';
    request[REQUEST_MAX] = '\0';
    client_send(client, request);
    ck_assert(control_is_ok(control_receive(client)));

    request[REQUEST_MAX - 1] = ' ';
    client_send(client, request);
    ck_assert_str_eq(control_text(control_receive(client), "error"),
        "the request is too long: 65536 bytes without a line's end");
    client_expect_gone(client);
    close(client);
    free(request);
    check_answers(daemon);
    daemon_finish(daemon);
}
END_TEST

/* Workers come and go at any moment. */
START_TEST(clients_that_go)
{
    static const char *const last[] = { "", "{\"comm", "{\"command\":\"status\"}\n",
        "{\"command\":\"reload\"}\n", "{\"command\":\"reopen\"}\n" };
    struct daemon *daemon = daemon_start_new(1, ECHO);
    unsigned descriptors = proc_descriptors(daemon->pid);

    for (int i = 0; i < 50; i++) {
        int client = control_open(daemon);

        client_send(client, last[i % 5]);
        close(client);
    }
    /* the reloads have merged into at least one complete reload */
    WAIT_FOR(strcmp(control_text(control_ask(daemon, "status"), "state"), "running") == 0 &&
             proc_child_n(daemon->pid) == 1);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    daemon_finish(daemon);
}
END_TEST

/* The longest idle of too many clients gives way, and nobody new is refused. */
START_TEST(too_many_clients)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    int clients[CLIENTS_MAX];

    for (int i = 0; i < CLIENTS_MAX; i++) {
        clients[i] = control_open(daemon);
        control_send(clients[i], "status");
        ck_assert(control_is_ok(control_receive(clients[i])));
    }
    for (int i = 0; i < 3; i++)
        ck_assert(control_is_ok(control_ask(daemon, "status")));
    ck_assert_str_eq(control_text(control_receive(clients[0]), "error"),
        "closed, for a new client: too many are connected");
    client_expect_gone(clients[0]);
    for (int i = 1; i < CLIENTS_MAX; i++) {
        control_send(clients[i], "status");
        ck_assert(control_is_ok(control_receive(clients[i])));
    }
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    for (int i = 0; i < CLIENTS_MAX; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

/* The client asks again and again, and takes no answer until the end. */
START_TEST(a_client_that_does_not_listen)
{
    static const char request[] = "{\"command\":\"status\"}\n";
    struct daemon *daemon = daemon_start_new(1, "worker_processes 8; " ECHO);
    int client = control_open(daemon), asked = 0;

    while (send(client, request, sizeof(request) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           sizeof(request) - 1)
        asked++;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_gt(asked, 100);
    for (int i = 0; i < 3; i++)
        check_answers(daemon);
    for (int i = 0; i < asked; i++)
        ck_assert(control_is_ok(control_receive(client)));
    ck_assert(client_is_quiet(client));
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, it_is_private_and_there_while_we_serve, 0, 2);
    tcase_add_test(tcase, it_moves_with_a_reload);
    tcase_add_test(tcase, it_cannot_move);
    tcase_add_test(tcase, no_descriptors);
    tcase_add_test(tcase, it_comes_back);
    tcase_add_test(tcase, a_stale_one_is_replaced);
    tcase_add_loop_test(tcase, a_start_fails_where_it_cannot_be_made, 0, 6);
    if (geteuid() == 0) {
        tcase_add_test(tcase, others_may_not_ask);
        tcase_add_test(tcase, the_daemons_user_and_root_may_ask);
    }
    tcase_add_test(tcase, wrong_requests);
    tcase_add_test(tcase, pieces_and_many_at_once);
    tcase_add_test(tcase, a_request_has_a_limit);
    tcase_add_test(tcase, clients_that_go);
    tcase_add_test(tcase, too_many_clients);
    tcase_add_test(tcase, a_client_that_does_not_listen);
}

TEST_MAIN("control_socket", add_tests)
