/* SPDX-License-Identifier: BSD-2-Clause */
/* Time-outs that pass, under every event mechanism. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"

#include <sys/socket.h>
#include <unistd.h>

/* An echoing daemon, under the loop test's mechanism. */
static struct daemon *start_echo(int i, const char *core, const char *stream)
{
    return daemon_start_new(1,
        "%s events { use %s; } stream { %s server { listen 127.0.0.1:$0; echo; } }", core,
        mechanisms_name(i), stream);
}

/* Re-arming a timer may end a session up to 300 ms before its time (timer.h). */
#define PAUSE_MS 300

static bool try_echo(int fd)
{
    char byte;

    return send(fd, "b", 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == 1;
}

START_TEST(idle_timeout)
{
    struct daemon *daemon = start_echo(_i, "", "idle_timeout 600ms;");
    int client = client_open(daemon->ports[0]);
    int64_t from = now_ms(), last = from;

    while (last - from < 900) { /* longer than the timeout, with never a pause as long */
        bool echoed = try_echo(client);

        if (now_ms() - last > PAUSE_MS) { /* the test or the daemon had no processor */
            close(client);
            client = client_open(daemon->ports[0]);
            from = now_ms();
        } else {
            ck_assert(echoed);
        }
        last = now_ms();
        pause_briefly();
    }
    client_expect_end(client);
    ck_assert_int_ge(now_ms() - last, 250);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A client with its first byte in time; again after a lack of processor time. */
static int open_in_time(const struct daemon *daemon)
{
    for (;;) {
        int64_t from = now_ms();
        int client = client_open(daemon->ports[0]);

        if (try_echo(client))
            return client;
        ck_assert_int_ge(now_ms() - from, PAUSE_MS);
        close(client);
    }
}

START_TEST(first_byte_timeout)
{
    struct daemon *daemon = start_echo(_i, "", "first_byte_timeout 400ms;");
    int early = open_in_time(daemon), late;
    int64_t from = now_ms();

    late = client_open(daemon->ports[0]);
    client_expect_end(late);
    ck_assert_int_ge(now_ms() - from, 300);
    client_echo(early, "not concerned");
    close(early);
    close(late);
    daemon_finish(daemon);
}
END_TEST

/* Time counted in ticks serves all timeouts. */
START_TEST(timer_resolution)
{
    struct daemon *daemon = start_echo(_i, "timer_resolution 50ms;", "idle_timeout 400ms;");
    int64_t from = now_ms();
    int client = client_open(daemon->ports[0]);

    client_echo(client, "ticks");
    client_expect_end(client);
    ck_assert_int_ge(now_ms() - from, 300);
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, idle_timeout, 0, mechanisms_count());
    tcase_add_loop_test(tcase, first_byte_timeout, 0, mechanisms_count());
    tcase_add_loop_test(tcase, timer_resolution, 0, mechanisms_count());
}

TEST_MAIN("timeouts", add_tests)
