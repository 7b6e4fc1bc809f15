/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in protocols as seen by clients, under every event mechanism. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MANY 100
#define LARGE (4 * 1024 * 1024)
#define REPLY 300000 /* more than the small buffers of both sides take */

/* A daemon with these servers, under the loop test's mechanism. */
static struct daemon *start_daemon(int i, const char *servers)
{
    return daemon_start_new(3, "events { use %s; worker_connections 256; }\nstream {\n%s\n}\n",
        mechanisms_name(i), servers);
}

#define ECHO_SERVER "server { listen 127.0.0.1:$0; echo; }"
#define STATUS_SERVER "server { listen 127.0.0.1:$1; stub_status; }"

START_TEST(echo)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "a");
    client_echo(client, "some more, and\nmore\n");
    shutdown(client, SHUT_WR);
    client_expect_end(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Bytes in flight when the client ends a half come back all the same. */
START_TEST(echo_half_close)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER);
    int client = client_open(daemon->ports[0]);

    client_send(client, "the last words");
    shutdown(client, SHUT_WR);
    client_expect(client, "the last words");
    client_expect_end(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

struct transfer {
    char *sent, *received;
    size_t sent_n, received_n;
};

/* Moves bytes in both directions at once, as far as they go. */
static void move_bytes(int client, struct transfer *t)
{
    struct pollfd poll_fd = { .fd = client, .events = POLLIN };
    ssize_t n;

    if (t->sent_n < LARGE)
        poll_fd.events |= POLLOUT;
    ck_assert_int_gt(poll(&poll_fd, 1, (int)patience_ms()), 0);
    if (poll_fd.revents & POLLOUT) {
        n = send(client, t->sent + t->sent_n, LARGE - t->sent_n, MSG_DONTWAIT | MSG_NOSIGNAL);
        ck_assert(n > 0 || errno == EAGAIN);
        t->sent_n += n > 0 ? (size_t)n : 0;
        if (t->sent_n == LARGE)
            shutdown(client, SHUT_WR);
    }
    if (poll_fd.revents & POLLIN) {
        n = recv(client, t->received + t->received_n, LARGE - t->received_n, MSG_DONTWAIT);
        ck_assert_int_gt(n, 0);
        t->received_n += (size_t)n;
    }
}

START_TEST(echo_large)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER);
    int client = client_open(daemon->ports[0]);
    struct transfer t = { .sent = malloc(LARGE), .received = malloc(LARGE) };
    unsigned random = 1;

    for (size_t i = 0; i < LARGE; i++)
        t.sent[i] = (char)((random = random * 1103515245 + 12345) >> 16);
    while (t.received_n < LARGE)
        move_bytes(client, &t);
    ck_assert_int_eq(memcmp(t.sent, t.received, LARGE), 0);
    client_expect_end(client);
    close(client);
    free(t.sent);
    free(t.received);
    daemon_finish(daemon);
}
END_TEST

START_TEST(many_at_once)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER STATUS_SERVER);
    int clients[MANY];
    char text[32];

    for (int i = 0; i < MANY; i++)
        clients[i] = client_open(daemon->ports[0]);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(text, sizeof(text), "%d of client %d", round, i);
            client_send(clients[i], text);
        }
        for (int i = MANY - 1; i >= 0; i--) {
            snprintf(text, sizeof(text), "%d of client %d", round, i);
            client_expect(clients[i], text);
        }
    }
    ck_assert_uint_eq(client_status(daemon->ports[1]).active, MANY + 1);
    for (int i = 0; i < MANY; i++)
        close(clients[i]);
    WAIT_FOR(client_status(daemon->ports[1]).active == 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(discard)
{
    struct daemon *daemon =
        start_daemon(_i, "server { listen 127.0.0.1:$0; discard; }" STATUS_SERVER);
    int client = client_open(daemon->ports[0]);
    char bytes[65536] = "";

    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(send(client, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
    WAIT_FOR(client_status(daemon->ports[1]).active == 2);
    ck_assert(client_is_quiet(client));
    shutdown(client, SHUT_WR);
    client_expect_end(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(returned_text)
{
    struct daemon *daemon = start_daemon(_i, "server { listen 127.0.0.1:$0; return 'it is\\n'; }"
                                             "server { listen 127.0.0.1:$1; return ''; }");

    ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), "it is\n");
    ck_assert_str_eq(client_read_all(client_open(daemon->ports[1])), "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(daytime)
{
    struct daemon *daemon = start_daemon(_i, "server { listen 127.0.0.1:$0; daytime; }");
    const char *text = client_read_all(client_open(daemon->ports[0])), *end;
    struct tm tm = { .tm_sec = 0 };
    time_t now = test_second(), then;

    end = strptime(text, "%A, %B %d, %Y %H:%M:%S-UTC", &tm);
    ck_assert_msg(end != NULL && strcmp(end, "\r\n") == 0, "%s", text);
    then = timegm(&tm);
    ck_assert_int_le(then, now);
    ck_assert_int_ge(then, now - 60);
    daemon_finish(daemon);
}
END_TEST

START_TEST(status)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER STATUS_SERVER);
    int client = client_open(daemon->ports[0]);
    struct client_status s;

    client_echo(client, "one request");
    ck_assert_str_eq(client_read_all(client_open(daemon->ports[1])),
        "Active connections: 2\nserver accepts handled requests\n 2 2 2\n"
        "Reading: 0 Writing: 0 Waiting: 2\n");
    s = client_status(daemon->ports[1]);
    ck_assert_uint_eq(s.accepts, 3);
    ck_assert_uint_eq(s.handled, 3);
    ck_assert_uint_eq(s.requests, 3);
    close(client);
    WAIT_FOR(client_status(daemon->ports[1]).active == 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(no_handler)
{
    struct daemon *daemon = start_daemon(_i, "server { listen 127.0.0.1:$0; }");

    ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), "");
    daemon_finish(daemon);
}
END_TEST

START_TEST(listeners)
{
    struct daemon *daemon = start_daemon(_i, "server { listen 127.0.0.1:$0-$1; echo; }"
                                             "server { listen unix:$D/socket; echo; }"
                                             "server { listen [::1]:$2; echo; }");
    char path[128];
    int clients[4];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "socket"));
    clients[0] = client_open(daemon->ports[0]);
    clients[1] = client_open(daemon->ports[1]);
    clients[2] = client_open_unix(path);
    clients[3] = client_open6(daemon->ports[2]);
    for (int i = 0; i < 4; i++)
        client_echo(clients[i], "here");
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    ck_assert_int_eq(client_error(daemon->ports[2]), ECONNREFUSED);
    daemon_finish(daemon);
}
END_TEST

/* The server belongs to the connected address, also where one socket has both. */
START_TEST(addresses_of_a_wildcard)
{
    struct daemon *daemon = start_daemon(_i, "server { listen $0; return wide; }"
                                             "server { listen 127.0.0.1:$0; return narrow; }"
                                             "server { listen [::]:$1; return six; }");

    ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), "narrow");
    ck_assert_str_eq(client_read_all(client_open6(daemon->ports[1])), "six");
    daemon_finish(daemon);
}
END_TEST

START_TEST(reset_by_the_client)
{
    struct daemon *daemon = start_daemon(_i, ECHO_SERVER STATUS_SERVER);
    int other = client_open(daemon->ports[0]), client;

    for (int i = 0; i < 20; i++) {
        client = client_open(daemon->ports[0]);
        client_send(client, "never read");
        client_reset(client);
    }
    client_echo(other, "still there");
    WAIT_FOR(client_status(daemon->ports[1]).active == 2);
    close(other);
    daemon_finish(daemon);
}
END_TEST

static struct daemon *start_large_reply(int i)
{
    struct daemon *daemon = daemon_create(1);
    char *text = malloc(REPLY + 1);

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', REPLY);
    text[REPLY] = '\0';
    daemon_configure(daemon,
        "events { use %s; } stream { server { listen 127.0.0.1:$0 sndbuf=4k; return %s; } }\n",
        mechanisms_name(i), text);
    free(text);
    daemon_start(daemon);
    return daemon;
}

static int open_with_small_buffer(in_port_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static size_t count_received(int fd)
{
    char bytes[1024];
    size_t all = 0;
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        all += (size_t)n;
    ck_assert_msg(n == 0, "recv() failed: %s", strerror(errno));
    return all;
}

/* A close sends all written output, even to a slow reader, and QUIT waits for it. */
START_TEST(close_flushes)
{
    struct daemon *daemon = start_large_reply(_i);
    int client = open_with_small_buffer(daemon->ports[0]);

    client_expect(client, "xxx");
    daemon_signal(daemon, SIGQUIT);
    daemon_wait_log(daemon, "gracefully shutting down");
    ck_assert_uint_eq(count_received(client), REPLY - 3);
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

/* Bytes never to be read must not turn the close into a reset, which would take the reply. */
START_TEST(close_with_unread_input)
{
    struct daemon *daemon = start_large_reply(_i);
    int client = open_with_small_buffer(daemon->ports[0]);
    char bytes[65536] = "";

    ck_assert_int_gt(send(client, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
    ck_assert_uint_eq(count_received(client), REPLY);
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest *const *const tests[] = { &echo, &echo_half_close, &echo_large,
        &many_at_once, &discard, &returned_text, &daytime, &status, &no_handler, &listeners,
        &addresses_of_a_wildcard, &reset_by_the_client, &close_flushes, &close_with_unread_input };

    resources_fixture(tcase);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, *tests[i], 0, mechanisms_count());
}

TEST_MAIN("protocols", add_tests)
