/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between connections of two workers. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONFIGURATION_OF(module)                                                                   \
    "load_module " MODULES_PATH "/" module ".so;\n"                                                \
    "worker_processes 2;\n%s\n"                                                                    \
    "events { accept_mutex off; %s }\n"                                                            \
    "stream { server { listen 127.0.0.1:$0; mailer; } }\n"

#define CONFIGURATION CONFIGURATION_OF("mailer")

/* A client, and what it talks to. */
struct mailer {
    int fd;
    pid_t worker;
    char ref[32];
};

static struct daemon *start_daemon(const char *directives, const char *events)
{
    return daemon_start_new(1, CONFIGURATION, directives, events);
}

/* A daemon under the loop test's mechanism. */
static struct daemon *start_daemon_under(int mechanism)
{
    char use[64];

    snprintf(use, sizeof(use), "use %s;", mechanisms_name(mechanism));
    return start_daemon("", use);
}

static void expect_line(int fd, const char *text)
{
    ck_assert_str_eq(client_read_line(fd), text);
}

static void open_mailer(struct daemon *daemon, struct mailer *mailer)
{
    mailer->fd = client_open(daemon->ports[0]);
    client_send(mailer->fd, "ref\n");
    snprintf(mailer->ref, sizeof(mailer->ref), "%s", client_read_line(mailer->fd));
    mailer->worker = proc_server_of(daemon->pid, mailer->fd);
    ck_assert_int_gt(mailer->worker, 0);
}

/* Opens a connection to the worker (`same`), or elsewhere. */
static void open_at(struct daemon *daemon, struct mailer *mailer, pid_t worker, bool same)
{
    for (int64_t until = deadline_ms();;) {
        open_mailer(daemon, mailer);
        if ((mailer->worker == worker) == same)
            return;
        close(mailer->fd);
        ck_assert_int_lt(now_ms(), until);
    }
}

static void open_two(struct daemon *daemon, struct mailer *a, struct mailer *b)
{
    open_mailer(daemon, a);
    open_at(daemon, b, a->worker, false);
}

static void send_text(const struct mailer *from, const char *ref, const char *text)
{
    char line[200];

    snprintf(line, sizeof(line), "send %s %s\n", ref, text);
    client_send(from->fd, line);
}

/* Asks for a flood, then for the messages received itself. */
static void send_flood(const struct mailer *from, const struct mailer *to, unsigned n)
{
    char line[200];

    snprintf(line, sizeof(line), "flood %s %u\ncount\n", to->ref, n);
    client_send(from->fd, line);
}

static void finish_daemon(struct daemon *daemon)
{
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}

START_TEST(handled_declined_and_unknown)
{
    struct daemon *daemon = start_daemon_under(_i);
    struct mailer a, b;

    open_two(daemon, &a, &b);
    for (int i = 0; i < 3; i++) {
        send_text(&a, b.ref, "hello");
        expect_line(b.fd, "got hello");
        expect_line(a.fd, "handled");
        send_text(&b, a.ref, "no, thanks");
        expect_line(a.fd, "got no, thanks");
        expect_line(b.fd, "declined");
    }
    send_text(&a, "0", "x");
    expect_line(a.fd, "unknown");
    send_text(&a, "123456789abcdef0", "x");
    expect_line(a.fd, "unknown");
    close(b.fd);
    do
        send_text(&a, b.ref, "x");
    while (strcmp(client_read_line(a.fd), "handled") == 0); /* unread by its worker */
    send_text(&a, b.ref, "x");
    expect_line(a.fd, "unknown");
    close(a.fd);
    finish_daemon(daemon);
}
END_TEST

/* A message to a worker dying before the next read. */
START_TEST(a_dead_worker)
{
    struct daemon *daemon = start_daemon_under(_i);
    struct mailer a, b, c;

    open_two(daemon, &a, &b);
    send_text(&a, b.ref, "hello");
    expect_line(a.fd, "handled");
    proc_freeze(b.worker);
    send_text(&a, b.ref, "lost");
    send_text(&a, b.ref, "lost too");
    send_text(&a, a.ref, "here"); /* when this was heard, those were sent */
    expect_line(a.fd, "got here");
    expect_line(a.fd, "handled");
    daemon_expects(daemon, "exited on signal 9");
    kill(b.worker, SIGKILL);
    expect_line(a.fd, "unknown");
    expect_line(a.fd, "unknown");
    send_text(&a, b.ref, "x");
    expect_line(a.fd, "unknown");

    /* nor does the reference name its successor */
    open_at(daemon, &c, a.worker, false);
    send_text(&a, b.ref, "x");
    expect_line(a.fd, "unknown");
    send_text(&a, c.ref, "hello");
    expect_line(c.fd, "got hello");
    expect_line(a.fd, "handled");
    close(a.fd);
    close(b.fd);
    close(c.fd);
    finish_daemon(daemon);
}
END_TEST

/* The worker answers before it dies, and the sender learns of both at once. */
START_TEST(a_worker_that_dies_after_its_answer)
{
    struct daemon *daemon = start_daemon_under(_i);
    struct mailer a, b;
    unsigned started;

    open_two(daemon, &a, &b);
    send_text(&a, b.ref, "hello"); /* they know each other */
    expect_line(a.fd, "handled");
    expect_line(b.fd, "got hello");
    daemon_expects(daemon, "exited on signal 9");
    started = daemon_count_log(daemon, "start worker process");
    proc_freeze(b.worker);
    send_text(&a, b.ref, "die");
    send_text(&a, a.ref, "sent");
    expect_line(a.fd, "got sent");
    expect_line(a.fd, "handled");
    proc_freeze(a.worker);
    kill(b.worker, SIGCONT);
    expect_line(b.fd, "got die");
    WAIT_FOR(daemon_count_log(daemon, "start worker process") > started);
    kill(a.worker, SIGCONT);
    expect_line(a.fd, "handled");
    close(a.fd);
    close(b.fd);
    finish_daemon(daemon);
}
END_TEST

START_TEST(floods_in_both_directions)
{
    struct daemon *daemon = start_daemon_under(_i);
    struct mailer a, b;

    open_two(daemon, &a, &b);
    send_flood(&a, &b, 5000);
    send_flood(&b, &a, 5000);
    client_read_line(a.fd);
    client_read_line(b.fd);
    expect_line(a.fd, "5000 handled, 0 declined, 0 unknown, 0 busy");
    expect_line(b.fd, "5000 handled, 0 declined, 0 unknown, 0 busy");
    client_send(a.fd, "count\n");
    expect_line(a.fd, "5000 0");
    client_send(b.fd, "count\n");
    expect_line(b.fd, "5000 0");
    close(a.fd);
    close(b.fd);
    finish_daemon(daemon);
}
END_TEST

/* A worker that does not read gets a limited number of messages: a module of API 3 hears
 * "declined". */
START_TEST(a_flood_at_one_that_does_not_read)
{
    enum { SENDERS = 6 };
    struct daemon *daemon =
        daemon_start_new(1, _i == 0 ? CONFIGURATION : CONFIGURATION_OF("mailer_old"), "", "");
    struct mailer b, senders[SENDERS];
    unsigned handled = 0, busy = 0, h, d, u, refused;

    open_two(daemon, &senders[0], &b);
    for (int i = 1; i < SENDERS; i++)
        open_at(daemon, &senders[i], senders[0].worker, true);
    send_text(&senders[0], b.ref, "#1");
    expect_line(senders[0].fd, "handled");
    proc_freeze(b.worker);
    for (int i = 0; i < SENDERS; i++) {
        send_flood(&senders[i], &b, 1024);
        expect_line(senders[i].fd, "0 0"); /* every message has been sent */
    }
    kill(b.worker, SIGCONT);
    for (int i = 0; i < SENDERS; i++) {
        const char *line = client_read_line(senders[i].fd);

        ck_assert_msg(
            sscanf(line, "%u handled, %u declined, %u unknown, %u busy", &h, &d, &u, &refused) == 4,
            "%s", line);
        ck_assert_uint_eq(_i == 0 ? d : refused, 0);
        refused += d;
        ck_assert_uint_eq(h + refused, 1024);
        ck_assert_uint_eq(u, 0);
        handled += h;
        busy += refused;
    }
    ck_assert_uint_ge(handled, 4096);
    ck_assert_uint_ge(busy, 1024);
    send_text(&senders[0], b.ref, "again");
    expect_line(b.fd, "got again");
    expect_line(senders[0].fd, "handled");
    for (int i = 0; i < SENDERS; i++)
        close(senders[i].fd);
    close(b.fd);
    finish_daemon(daemon);
}
END_TEST

/* The old worker's connection goes on, and is written to by the new one's. */
START_TEST(across_a_reload)
{
    struct daemon *daemon = start_daemon("", "");
    struct mailer old, new;

    open_mailer(daemon, &old);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    open_at(daemon, &new, old.worker, false);
    send_text(&new, old.ref, "from the new");
    expect_line(old.fd, "got from the new");
    expect_line(new.fd, "handled");
    send_text(&old, new.ref, "from the old");
    expect_line(new.fd, "got from the old");
    expect_line(old.fd, "handled");
    close(old.fd);
    WAIT_FOR(proc_state(old.worker) == 0);
    send_text(&new, old.ref, "x");
    expect_line(new.fd, "unknown");
    close(new.fd);
    finish_daemon(daemon);
}
END_TEST

START_TEST(an_inbox_that_another_worker_spoils)
{
    static const char *const attacks[] = { "spoil\n", "vandalize\n" };
    struct daemon *daemon = start_daemon("", "");
    struct mailer a, b;
    const char *line;

    open_two(daemon, &a, &b);
    send_text(&a, b.ref, "#1");
    expect_line(a.fd, "handled");
    send_text(&b, a.ref, "#1");
    expect_line(b.fd, "handled");
    for (int i = 0; i < 10; i++) {
        client_send(a.fd, attacks[_i]);
        expect_line(a.fd, "done");
        for (int64_t until = deadline_ms();; pause_briefly()) {
            send_text(&a, b.ref, "#1");
            line = client_read_line(a.fd);
            if (strcmp(line, "handled") == 0)
                break;
            ck_assert_str_eq(line, "unknown");
            ck_assert_int_lt(now_ms(), until);
        }
    }
    ck_assert_int_ne(proc_state(b.worker), 0);
    close(a.fd);
    close(b.fd);
    finish_daemon(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, handled_declined_and_unknown, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_dead_worker, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_worker_that_dies_after_its_answer, 0, mechanisms_count());
    tcase_add_loop_test(tcase, floods_in_both_directions, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_flood_at_one_that_does_not_read, 0, 2);
    tcase_add_test(tcase, across_a_reload);
    tcase_add_loop_test(tcase, an_inbox_that_another_worker_spoils, 0, 2);
}

TEST_MAIN("messages", add_tests)
