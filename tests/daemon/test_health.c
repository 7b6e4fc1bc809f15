/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of servers on the real kernel: sessions avoid a server that is down, answers wrongly or
 * not at all, and come back; all workers together make one check in each interval, also when the
 * checking worker is killed; the state kept over a reload. The daemon itself serves the servers'
 * sessions, and names the server; the test is the checked service: it listens at the same addresses
 * on another port. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "support/regex_built.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVERS 3
#define WORKERS 3
#define INTERVAL_MS 100

static int servers[SERVERS];

/* $0 is for clients, $1 for servers, $2 for checks of servers. */
#define CONFIGURATION                                                                              \
    "worker_processes 3; events { }"                                                               \
    "stream { %s"                                                                                  \
    "upstream s { zone s 256k; server 127.0.0.1:$1; server 127.0.0.2:$1; server 127.0.0.3:$1; }"   \
    "server { listen 127.0.0.1:$0; proxy_pass s; health_check interval=100ms port=$2 %s; }"        \
    "server { listen 127.0.0.1:$1; return 1; }"                                                    \
    "server { listen 127.0.0.2:$1; return 2; }"                                                    \
    "server { listen 127.0.0.3:$1; return 3; } }"

static int listen_at(unsigned i, in_port_t port)
{
    static const int on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, SOMAXCONN), 0);
    return fd;
}

static void open_server(const struct daemon *daemon, unsigned i)
{
    servers[i] = listen_at(i, daemon->ports[2]);
}

static void close_server(unsigned i)
{
    close(servers[i]);
    servers[i] = -1;
}

static void configure(struct daemon *daemon, const char *options, const char *more)
{
    daemon_configure(daemon, CONFIGURATION, more, options);
}

/* Starts a daemon with all servers running. */
static struct daemon *start(const char *options, const char *more)
{
    struct daemon *daemon = daemon_create(3);

    for (unsigned i = 0; i < SERVERS; i++)
        open_server(daemon, i);
    configure(daemon, options, more);
    daemon_start(daemon);
    return daemon;
}

static void finish(struct daemon *daemon)
{
    daemon_finish(daemon);
    for (unsigned i = 0; i < SERVERS; i++)
        if (servers[i] != -1)
            close_server(i);
}

/* Loads the configuration, and waits until the workers of before have gone. */
static void reload(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, " serves in place of generation ");
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
}

/* The number of the server of a session, or '-'. */
static char serve(const struct daemon *daemon)
{
    const char *text = client_read_all(client_open(daemon->ports[0]));

    return *text != '\0' ? *text : '-';
}

static bool is_used(const struct daemon *daemon, char server)
{
    for (unsigned i = 0; i < 2 * SERVERS; i++)
        if (serve(daemon) == server)
            return true;
    return false;
}

static void expect_line(struct daemon *daemon, const char *state, unsigned server)
{
    char text[256];

    snprintf(text, sizeof(text), "health check of peer 127.0.0.%u:%u in upstream \"s\" port %u",
        server + 1, daemon->ports[1], daemon->ports[2]);
    daemon_wait_log(daemon, state);
    ck_assert_ptr_nonnull(strstr(daemon_text(daemon, daemon->log), text));
}

/* Takes the next check of a server; -1: none has come yet. */
static int try_take(unsigned i)
{
    int fd = accept(servers[i], NULL, NULL);

    ck_assert(fd != -1 || errno == EAGAIN || errno == ECONNABORTED);
    return fd;
}

static int take(unsigned i)
{
    int fd = -1;

    WAIT_FOR((fd = try_take(i)) != -1);
    return fd;
}

static bool is_ended(int fd)
{
    char bytes[64];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    return n == 0 || (n == -1 && errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Waits until the daemon has closed the connection. */
static void wait_end(int fd)
{
    WAIT_FOR(is_ended(fd));
    close(fd);
}

START_TEST(sessions_avoid_a_server_until_it_passes)
{
    struct daemon *daemon = start("passes=2", "");

    WAIT_FOR(is_used(daemon, '2'));
    close_server(1);
    expect_line(daemon, "peer is unhealthy", 1);
    ck_assert(!is_used(daemon, '2'));
    ck_assert(is_used(daemon, '1') && is_used(daemon, '3'));
    open_server(daemon, 1);
    expect_line(daemon, "peer is healthy", 1);
    ck_assert(is_used(daemon, '2'));
    ck_assert_uint_eq(daemon_count_log(daemon, "peer is"), 2);
    finish(daemon);
}
END_TEST

#define NO_LIVE "no live upstreams while connecting to upstream"
#define TIMEOUT_MS 3000 /* health_check_timeout of PING */
#define PING_IN(time)                                                                              \
    "match ping { send \"PING\\r\\n\"; expect +PONG; } health_check_timeout " time "; "
#define PING PING_IN("3s")

/* Answers the next check of the first server, by pieces. */
static void answer(const char *first, const char *second)
{
    int fd = take(0);

    client_expect(fd, "PING\r\n");
    client_send(fd, first);
    if (*second != '\0')
        client_send(fd, second);
    wait_end(fd);
}

START_TEST(a_server_has_to_say_the_right_words)
{
    struct daemon *daemon = start("match=ping fails=2", PING_IN("30s"));

    daemon_expects(daemon, NO_LIVE); /* the others do not answer */
    answer("+PO", "NG\r\n");
    answer("-", "");
    answer("+PONG and more", "");
    answer("-LOADING\r\n", "");
    answer("+POX", "");
    daemon_wait_log(daemon,
        "peer is unhealthy while checking response from upstream, health check \"ping\" of peer "
        "127.0.0.1");
    ck_assert(!is_used(daemon, '1'));
    answer("+PONG", "");
    daemon_wait_log(daemon, "peer is healthy");
    finish(daemon);
}
END_TEST

START_TEST(a_server_has_to_answer_in_time)
{
    struct daemon *daemon = start("match=ping", PING);
    int fd = take(0);

    daemon_wait_log(daemon,
        "peer is unhealthy (110: Connection timed out) while reading response from upstream, "
        "health check \"ping\" of peer 127.0.0.");
    wait_end(fd);
    fd = take(0); /* closing is no answer either */
    close(fd);
    answer("+PONG", "");
    daemon_wait_log(daemon, "peer is healthy");
    finish(daemon);
}
END_TEST

START_TEST(an_answer_comes_while_the_worker_stands_still)
{
    struct daemon *daemon = start("match=ping", PING);
    int fd = take(0);
    pid_t worker = proc_server_of(daemon->pid, fd);
    int64_t stopped_ms;

    client_expect(fd, "PING\r\n");
    proc_freeze(worker);
    stopped_ms = now_ms();
    client_send(fd, "+PONG");
    WAIT_FOR(now_ms() > stopped_ms + TIMEOUT_MS); /* the time of the check is over */
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    wait_end(fd);
    answer("+PONG", "");
    ck_assert_uint_eq(daemon_count_log(daemon, "health check \"ping\" of peer 127.0.0.1:"), 0);
    finish(daemon);
}
END_TEST

/* Empties the queue of a server. */
static void take_all(unsigned i)
{
    int fd;

    while ((fd = try_take(i)) != -1)
        close(fd);
}

/* Takes n checks of a server, three times as fast if every worker made checks. */
static void count_checks(unsigned i, unsigned n)
{
    int64_t began = now_ms();

    take_all(i);
    for (unsigned taken = 0; taken < n; taken++)
        close(take(i));
    ck_assert_int_ge(now_ms() - began, (int64_t)n * INTERVAL_MS * 2 / 3);
}

START_TEST(all_workers_make_one_check_in_each_interval)
{
    struct daemon *daemon = start("", "");

    close(take(0));
    count_checks(0, 12);
    finish(daemon);
}
END_TEST

START_TEST(another_worker_goes_on_when_the_one_that_checks_dies)
{
    struct daemon *daemon = start("match=ping fails=1000", PING);

    daemon_expects(daemon, "exited on signal 9");
    for (unsigned i = 0; i < 3; i++) {
        int fd = take(0);
        pid_t worker = proc_server_of(daemon->pid, fd);

        ck_assert_int_eq(kill(worker, SIGKILL), 0);
        wait_end(fd);
        answer("+PONG", "");
    }
    for (unsigned i = 0; i < 3; i++)
        answer("+PONG", "");
    ck_assert(is_used(daemon, '1'));
    finish(daemon);
}
END_TEST

START_TEST(a_reload_keeps_the_states)
{
    struct daemon *daemon = start("", "");

    close_server(2);
    expect_line(daemon, "peer is unhealthy", 2);
    for (unsigned i = 0; i < 3; i++) {
        configure(daemon, i % 2 == 0 ? "fails=3" : "", "");
        reload(daemon);
        ck_assert(!is_used(daemon, '3'));
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "peer is unhealthy"), 1);
    open_server(daemon, 2);
    expect_line(daemon, "peer is healthy", 2);
    WAIT_FOR(is_used(daemon, '3'));
    finish(daemon);
}
END_TEST

/* Answers checks of the first server, some from workers that have gone. */
static bool answer_any(void)
{
    int fd = try_take(0);

    if (fd == -1)
        return false;
    send(fd, "+PONG", 5, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    wait_end(fd);
    return true;
}

static void answer_until_healthy(struct daemon *daemon, unsigned times)
{
    WAIT_FOR(answer_any() && daemon_count_log(daemon, "peer is healthy") == times);
}

START_TEST(a_mandatory_check_comes_before_the_first_session)
{
    struct daemon *daemon = start("match=ping mandatory fails=1000", PING);

    daemon_expects(daemon, NO_LIVE);
    ck_assert_int_eq(serve(daemon), '-');
    answer_until_healthy(daemon, 1);
    ck_assert_int_eq(serve(daemon), '1');
    reload(daemon);
    ck_assert_int_eq(serve(daemon), '-');
    configure(daemon, "match=ping mandatory persistent fails=1000", PING);
    reload(daemon);
    ck_assert_int_eq(serve(daemon), '-');
    answer_until_healthy(daemon, 2);
    reload(daemon);
    ck_assert_int_eq(serve(daemon), '1');
    finish(daemon);
}
END_TEST

START_TEST(a_check_by_a_regular_expression)
{
    struct daemon *daemon;

    if (!regex_built())
        return;
    daemon = start("match=ping mandatory", "match ping { send \"PING\\r\\n\"; expect ~* pong$; }");
    answer("some words, and po", "ng");
    daemon_wait_log(daemon, "peer is healthy");
    finish(daemon);
}
END_TEST

/* Workers begin to check before the addresses of a start listen. */
START_TEST(a_server_of_the_daemon_itself_is_healthy_from_the_start)
{
    struct daemon *daemon = daemon_start_new(2,
        "worker_processes 2; events { } stream {"
        "upstream s { zone s 64k; server 127.0.0.1:$1; }"
        "server { listen 127.0.0.1:$0; proxy_pass s; health_check interval=100ms mandatory; }"
        "server { listen 127.0.0.1:$1; return 1; } }");

    daemon_wait_log(daemon, "peer is healthy");
    ck_assert_int_eq(serve(daemon), '1');
    ck_assert_uint_eq(daemon_count_log(daemon, "unhealthy"), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, sessions_avoid_a_server_until_it_passes);
    tcase_add_test(tcase, a_server_has_to_say_the_right_words);
    tcase_add_test(tcase, a_server_has_to_answer_in_time);
    tcase_add_test(tcase, an_answer_comes_while_the_worker_stands_still);
    tcase_add_test(tcase, all_workers_make_one_check_in_each_interval);
    tcase_add_test(tcase, another_worker_goes_on_when_the_one_that_checks_dies);
    tcase_add_test(tcase, a_reload_keeps_the_states);
    tcase_add_test(tcase, a_mandatory_check_comes_before_the_first_session);
    tcase_add_test(tcase, a_check_by_a_regular_expression);
    tcase_add_test(tcase, a_server_of_the_daemon_itself_is_healthy_from_the_start);
}

TEST_MAIN("health", add_tests)
