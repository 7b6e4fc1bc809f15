/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol file in the real daemon: in each way of reading, in the sandbox, while files are
 * replaced, clients go away and the configuration is reloaded. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "event/file_aio.h"
#include "sandbox/confine.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 3000001
#define CLIENTS 20
#define REPLACEMENTS 60

/* A port for each way, and a port for the rest. */
enum { SENDFILE, THREADS, DIRECT, KERNEL, WAYS, OTHER = WAYS, PORTS };

static const char *const sandboxes[] = { "on", "strict" };

/* The mode of the whole run, if given. */
static const char *sandbox_of(int i)
{
    const char *mode = getenv("FORKBEARD_TEST_SANDBOX");

    return mode != NULL ? mode : sandboxes[i];
}

/* Writes n bytes of the letter to a world-readable file, and gives the file its name. */
static void put_file(struct daemon *daemon, const char *name, char letter, size_t n)
{
    static char block[65536];
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "www/new"));
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ck_assert_int_ne(fd, -1);
    memset(block, letter, sizeof(block));
    while (n > 0) {
        ssize_t part = write(fd, block, n < sizeof(block) ? n : sizeof(block));

        ck_assert_int_gt(part, 0);
        n -= (size_t)part;
    }
    close(fd);
    ck_assert_int_eq(rename(path, daemon_path(daemon, name)), 0);
}

static void configure(struct daemon *daemon, int i, const char *served)
{
    daemon_configure(daemon,
        "sandbox %s;\nthread_pool default threads=4;\n"
        "events { worker_aio_requests 2; }\n"
        "stream {\n"
        "server { listen 127.0.0.1:$0; file www/%s; }\n"
        "server { listen 127.0.0.1:$1; file www/%s; aio threads; }\n"
        "server { listen 127.0.0.1:$2; file www/%s; directio 64k; }\n"
        "server { listen 127.0.0.1:$3; file www/%s; directio 64k; aio %s; }\n"
        "server { listen 127.0.0.1:$4; echo; }\n}\n",
        sandbox_of(i), served, served, served, served, file_aio_built() ? "on" : "threads");
}

static struct daemon *start(int i, const char *served)
{
    struct daemon *daemon = daemon_create(PORTS);

    ck_assert_int_eq(mkdir(daemon_path(daemon, "www"), 0755), 0);
    configure(daemon, i, served);
    put_file(daemon, "www/content", 'a', SIZE);
    daemon_start(daemon);
    return daemon;
}

static void finish(struct daemon *daemon)
{
    static const char *const names[] = { "content", "empty", "secret", "new" };

    daemon_stop(daemon, SIGQUIT);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[32];

        snprintf(name, sizeof(name), "www/%s", names[i]);
        unlink(daemon_path(daemon, name));
    }
    ck_assert_int_eq(rmdir(daemon_path(daemon, "www")), 0);
    daemon_finish(daemon);
}

/* Receives to the end and closes: the expected number of bytes of one letter, which is returned; 0:
 * of several, or the connection was reset. */
static char receive_all(int client, size_t *n)
{
    static char block[65536];
    char letter = 1;
    ssize_t part;

    *n = 0;
    while ((part = recv(client, block, sizeof(block), 0)) > 0) {
        for (ssize_t i = 0; i < part; i++) {
            if (letter == 1)
                letter = block[i];
            if (letter != block[i])
                letter = 0;
        }
        *n += (size_t)part;
    }
    close(client);
    return part == 0 ? letter : 0;
}

static void expect_all(int client, char letter)
{
    size_t n;

    ck_assert_int_eq(receive_all(client, &n), letter);
    ck_assert_uint_eq(n, SIZE);
}

/* Descriptors of the worker, including the descriptors made by the first use of a way. */
static unsigned count_descriptors(const struct daemon *daemon, pid_t worker)
{
    for (int way = 0; way < WAYS; way++)
        expect_all(client_open(daemon->ports[way]), 'a');
    return proc_descriptors(worker);
}

static pid_t worker_of(const struct daemon *daemon)
{
    pid_t worker;

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    return worker;
}

START_TEST(serves_many_at_once)
{
    struct daemon *daemon = start(_i, "content");
    pid_t worker = worker_of(daemon);
    unsigned before = count_descriptors(daemon, worker);
    int clients[CLIENTS], echo = client_open(daemon->ports[OTHER]);

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_open(daemon->ports[i % WAYS]);
    client_echo(echo, "meanwhile");
    for (int i = 0; i < CLIENTS; i++)
        expect_all(clients[i], 'a');
    client_echo(echo, "afterwards");
    close(echo);
    WAIT_FOR(proc_descriptors(worker) == before);
    finish(daemon);
}
END_TEST

START_TEST(an_empty_file_is_no_failure)
{
    struct daemon *daemon = start(_i, "empty");

    put_file(daemon, "www/empty", 'a', 0);
    for (int way = 0; way < WAYS; way++)
        client_expect_end(client_open(daemon->ports[way]));
    finish(daemon);
}
END_TEST

/* Expects a reset, without a byte before. */
static void expect_reset(int client)
{
    char byte;

    ck_assert_int_eq(recv(client, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(client);
}

START_TEST(what_cannot_be_opened_is_told)
{
    struct daemon *daemon = start(_i, "secret");
    int fd;

    daemon_expects(daemon, "www/secret\" failed (");
    for (int way = 0; way < WAYS; way++) {
        expect_reset(client_open(daemon->ports[way]));
        daemon_wait_log(daemon, "www/secret\" failed (2: No such file or directory), client: ");
    }
    fd = open(daemon_path(daemon, "www/secret"), O_CREAT | O_WRONLY, 0);
    close(fd);
    expect_reset(client_open(daemon->ports[SENDFILE]));
    daemon_wait_log(daemon, "www/secret\" failed (13: Permission denied), client: ");
    finish(daemon);
}
END_TEST

START_TEST(others_replace_it_meanwhile)
{
    struct daemon *daemon = start(_i, "content");
    int clients[REPLACEMENTS];

    for (int i = 0; i < REPLACEMENTS; i++) {
        put_file(daemon, "www/content", (char)('a' + i % 26), SIZE);
        clients[i] = client_open(daemon->ports[i % WAYS]);
    }
    for (int i = 0; i < REPLACEMENTS; i++) {
        size_t n;
        char letter = receive_all(clients[i], &n);

        ck_assert_uint_eq(n, SIZE); /* one file's, whole */
        ck_assert(letter >= 'a' && letter <= 'z');
    }
    put_file(daemon, "www/content", 'Z', SIZE);
    for (int way = 0; way < WAYS; way++)
        expect_all(client_open(daemon->ports[way]), 'Z');
    finish(daemon);
}
END_TEST

START_TEST(clients_go_away_in_the_middle)
{
    struct daemon *daemon = start(_i, "content");
    pid_t worker = worker_of(daemon);
    unsigned before = count_descriptors(daemon, worker);
    char part[1000];

    for (int i = 0; i < 5 * CLIENTS; i++) {
        int client = client_open(daemon->ports[i % WAYS]);

        if (i % 3 > 0)
            ck_assert_int_gt(recv(client, part, sizeof(part), 0), 0);
        if (i % 2 == 0)
            client_reset(client);
        else
            close(client);
    }
    WAIT_FOR(proc_descriptors(worker) == before);
    expect_all(client_open(daemon->ports[KERNEL]), 'a');
    finish(daemon);
}
END_TEST

/* A client of the new worker: the old worker accepts waiting clients as it steps back. */
static int open_new(in_port_t port)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(port);
        char byte;

        ck_assert_int_eq(recv(client, &byte, 1, MSG_PEEK), 1);
        if (byte == 'b')
            return client;
        close(client);
        ck_assert_int_lt(now_ms(), until);
    }
}

START_TEST(a_reload_in_the_middle)
{
    struct daemon *daemon = start(_i, "content");
    int clients[WAYS];
    char byte;

    for (int way = 0; way < WAYS; way++) {
        clients[way] = client_open(daemon->ports[way]);
        ck_assert_int_eq(recv(clients[way], &byte, 1, MSG_PEEK), 1);
    }
    put_file(daemon, "www/content", 'b', SIZE);
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    for (int way = 0; way < WAYS; way++)
        expect_all(open_new(daemon->ports[way]), 'b');
    for (int way = 0; way < WAYS; way++)
        expect_all(clients[way], 'a');
    daemon_wait_log(daemon, "exited with code 0");
    finish(daemon);
}
END_TEST

START_TEST(a_fast_end_in_the_middle)
{
    struct daemon *daemon = start(_i, "content");
    int clients[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_open(daemon->ports[i % WAYS]);
    daemon_stop(daemon, SIGTERM);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    daemon_start(daemon);
    finish(daemon);
}
END_TEST

/* The number of sandbox modes of the build and the kernel. */
static int count_sandboxes(void)
{
    int error;

    return sandbox_seccomp_lacks(&error) == NULL && sandbox_landlock_lacks(&error) == NULL ? 2 : 1;
}

static void add_tests(TCase *tcase)
{
    int n = count_sandboxes();

    resources_fixture(tcase);
    tcase_add_loop_test(tcase, serves_many_at_once, 0, n);
    tcase_add_loop_test(tcase, an_empty_file_is_no_failure, 0, 1);
    tcase_add_loop_test(tcase, what_cannot_be_opened_is_told, 0, n);
    tcase_add_loop_test(tcase, others_replace_it_meanwhile, 0, n);
    tcase_add_loop_test(tcase, clients_go_away_in_the_middle, 0, n);
    tcase_add_loop_test(tcase, a_reload_in_the_middle, 0, n);
    tcase_add_loop_test(tcase, a_fast_end_in_the_middle, 0, n);
}

TEST_MAIN("file", add_tests)
