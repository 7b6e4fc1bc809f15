/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of the kit. */
#include "kit/probe.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

extern const fb_protocol fb_protocol_presence;

static fb_test *start_probe(void)
{
    fb_test *test = fb_test_start(&fb_protocol_probe, "probe;");

    ck_assert_ptr_nonnull(test);
    return test;
}

static void end_probe(fb_test *test)
{
    ck_assert_int_eq(fb_test_end(&test), 0);
    ck_assert_ptr_null(test);
}

static bool hears(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);
    bool same = heard.n == strlen(text) && memcmp(heard.p, text, heard.n) == 0;

    if (!same)
        fprintf(stderr, "heard \"%.*s\"\n", (int)heard.n, (const char *)heard.p);
    fb_test_forget(peer);
    return same;
}

static bool answers(fb_test_peer *peer, const char *line, const char *text)
{
    fb_test_says(peer, line);
    return hears(peer, text);
}

START_TEST(peers_come_and_go)
{
    fb_test *test = start_probe();
    fb_test_peer *one = fb_test_connect(test), *two = fb_test_connect(test);
    fb_test_peer *three = fb_test_connect(test), *four = fb_test_connect(test);

    ck_assert(!fb_test_is_closed(one) && !fb_test_has_ended(one) && !fb_test_was_reset(one));
    fb_test_says(one, "close\n");
    ck_assert(fb_test_is_closed(one) && fb_test_has_ended(one) && !fb_test_was_reset(one));
    fb_test_says(two, "abort\n");
    ck_assert(fb_test_is_closed(two) && fb_test_was_reset(two));
    fb_test_says(three, "shutdown\n");
    ck_assert(fb_test_has_ended(three) && !fb_test_is_closed(three));
    fb_test_shut(three);
    ck_assert(fb_test_is_closed(three) && !fb_test_was_reset(three));
    fb_test_reset(four);
    ck_assert(fb_test_is_closed(four) && !fb_test_was_reset(four));
    fb_test_says(one, "nobody hears this\n");
    fb_test_shut(one);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test),
        "probe: [info] *1 client disconnected, bytes from/to client:6/0, session time: 0.000, "
        "reason: finished, client: 192.0.2.1, server: 192.0.2.80:80\n"));
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "probe: [debug] *4 closed for 3, "));
    end_probe(test);
}
END_TEST

/* Closed, although unread input keeps the socket for a while. */
START_TEST(lingering_is_closed)
{
    fb_test *test = start_probe();
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_says(peer, "close\n");
    fb_test_says(peer, "more");
    ck_assert(fb_test_is_closed(peer));
    ck_assert(fb_test_has_ended(peer));
    end_probe(test);
}
END_TEST

START_TEST(peers_take_what_they_like)
{
    fb_test *test = start_probe();
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_take(peer, 3);
    ck_assert(answers(peer, "memory 1\n", "her"));
    ck_assert(answers(peer, "memory 1\n", ""));
    fb_test_take(peer, 2);
    ck_assert(hears(peer, "e\n"));
    fb_test_take(peer, SIZE_MAX);
    ck_assert(hears(peer, "here\n"));
    fb_test_take(peer, 0);
    fb_test_says(peer, "memory 1\nclose\n");
    ck_assert(!fb_test_has_ended(peer));
    fb_test_take(peer, 100);
    ck_assert(hears(peer, "here\n"));
    ck_assert(fb_test_is_closed(peer));
    end_probe(test);
}
END_TEST

START_TEST(time_passes_when_told)
{
    fb_test *test = start_probe();
    fb_test_peer *one = fb_test_connect(test), *two = fb_test_connect(test);

    ck_assert(answers(one, "time\n", "1795253400000\n"));
    ck_assert(answers(one, "timer 1000\n", ""));
    ck_assert(answers(two, "timer 1500\n", ""));
    fb_test_pass(test, 999);
    ck_assert(hears(one, ""));
    fb_test_pass(test, 1);
    ck_assert(hears(one, "tick\n"));
    ck_assert(hears(two, ""));
    ck_assert(answers(one, "timer 3600000\n", ""));
    fb_test_pass(test, 500);
    ck_assert(hears(two, "tick\n"));
    ck_assert(answers(two, "time\n", "1795253401500\n"));
    fb_test_pass(test, 60 * 60 * 1000); /* idle_timeout comes first */
    ck_assert(fb_test_is_closed(one) && fb_test_is_closed(two));
    end_probe(test);
}
END_TEST

START_TEST(jobs_are_waited_for)
{
    fb_test *test = start_probe();
    fb_test_peer *one = fb_test_connect(test), *two = fb_test_connect(test);

    ck_assert(answers(one, "job hello\n", "HELLO\n"));
    fb_test_says(one, "job one\n");
    fb_test_says(two, "job two\n");
    ck_assert(hears(two, "TWO\n"));
    ck_assert(hears(one, "ONE\n"));
    fb_test_says(one, "job three\nclose\n");
    ck_assert(fb_test_is_closed(one));
    ck_assert(hears(one, ""));
    fb_test_says(two, "job nobody waits\n"); /* only the end comes */
    end_probe(test);
}
END_TEST

START_TEST(servers_answer_as_told)
{
    fb_test *test = start_probe();
    fb_test_peer *client = fb_test_connect(test), *peer;
    fb_test_server *server = fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);

    ck_assert(answers(client, "connect 10.0.0.1:80\n", "connected\n"));
    peer = fb_test_accept(server);
    ck_assert_ptr_nonnull(peer);
    ck_assert_ptr_null(fb_test_accept(server));
    ck_assert(hears(peer, "hi\n"));
    fb_test_says(peer, "from there");
    ck_assert(hears(client, "from there"));
    fb_test_reset(peer);
    ck_assert(hears(client, "closed 3\n"));

    ck_assert(answers(client, "connect 10.0.0.2:80\n", "closed 8\n")); /* no connection */
    ck_assert_ptr_eq(fb_test_serve(test, "10.0.0.1:80", FB_TEST_REFUSES), server);
    ck_assert(answers(client, "connect 10.0.0.1:80\n", "closed 8\n"));
    fb_test_serve(test, "10.0.0.1:80", FB_TEST_SILENT);
    ck_assert(answers(client, "connect 10.0.0.1:80\n", ""));
    fb_test_pass(test, 59999);
    ck_assert(hears(client, ""));
    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    ck_assert(hears(client, "connected\n"));
    ck_assert(hears(fb_test_accept(server), "hi\n"));
    fb_test_serve(test, "unix:/nowhere", FB_TEST_SILENT);
    ck_assert(answers(client, "connect unix:/nowhere\n", ""));
    fb_test_pass(test, 60000);
    ck_assert(hears(client, "closed 4\n"));
    end_probe(test);
}
END_TEST

START_TEST(memory_is_refused)
{
    fb_test *test = start_probe();
    fb_test_peer *peer = fb_test_connect(test);
    uint64_t before;

    ck_assert(answers(peer, "memory 10\n", "here\n"));
    before = fb_test_allocations(test);
    fb_test_refuse_memory(test, 1, 1);
    ck_assert(answers(peer, "memory 100000\n", "here\n"));
    ck_assert(answers(peer, "memory 100000\n", "none\n"));
    ck_assert(answers(peer, "memory 100000\n", "here\n"));
    ck_assert_uint_eq(fb_test_allocations(test), before + 3);
    fb_test_refuse_memory(test, 0, UINT64_MAX);
    ck_assert(answers(peer, "memory 100000\n", "none\n"));
    fb_test_refuse_memory(test, 0, 0);
    ck_assert(answers(peer, "memory 100000\n", "here\n"));
    end_probe(test);
}
END_TEST

START_TEST(clients_wait_for_a_free_connection)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "probe;", .worker_connections = 2
    };
    fb_test *test = fb_test_start_with(&fb_protocol_probe, &options);
    fb_test_peer *peers[] = { fb_test_connect(test), fb_test_connect(test), fb_test_connect(test) };

    for (int i = 0; i < 3; i++)
        ck_assert(answers(peers[i], "memory 1\n", i < 2 ? "here\n" : ""));
    ck_assert(answers(peers[0], "connect 10.0.0.1:80\n", "no connection\n"));
    fb_test_shut(peers[0]);
    ck_assert(hears(peers[2], "here\n"));
    end_probe(test);
}
END_TEST

START_TEST(the_worker_drains)
{
    fb_test *test = start_probe();
    fb_test_peer *one = fb_test_connect(test), *two = fb_test_connect(test), *late;

    fb_test_run(test);
    fb_test_shut(two);
    fb_test_drain(test, 5000);
    ck_assert(hears(one, "draining 5000\n"));
    late = fb_test_connect(test);
    ck_assert(answers(late, "memory 1\n", ""));
    ck_assert(answers(one, "memory 1\n", "here\n"));
    fb_test_pass(test, 4999);
    ck_assert(!fb_test_is_closed(one));
    fb_test_pass(test, 1);
    ck_assert(fb_test_is_closed(one));
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "*1 closed for 7,"));
    end_probe(test);
}
END_TEST

/* The outcome of two random numbers and a lot of trouble. */
static char *play_trouble(uint64_t seed, uint32_t trouble, char text[64])
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "probe;", .seed = seed, .trouble = trouble
    };
    fb_test *test = fb_test_start_with(&fb_protocol_probe, &options);
    fb_test_peer *peer = fb_test_connect(test);
    fb_bytes heard;

    fb_test_says(peer, "random\nran");
    fb_test_says(peer, "dom\n");
    heard = fb_test_heard(peer);
    snprintf(text, 64, "%.*s", (int)heard.n, (const char *)heard.p);
    end_probe(test);
    return text;
}

START_TEST(a_seed_decides)
{
    char one[64], two[64];

    ck_assert_uint_eq(strlen(play_trouble(1, 0, one)), 10);
    ck_assert_str_eq(one, play_trouble(1, 0, two));
    ck_assert_str_eq(one, play_trouble(1, 1, two));
    ck_assert_str_ne(one, play_trouble(2, 0, two));
}
END_TEST

START_TEST(two_tests_at_once)
{
    fb_test *one = start_probe(), *two;
    fb_test_peer *first = fb_test_connect(one), *second;

    fb_test_run(one);
    /* open descriptors of the first probe are not charged to the second, if they end in order */
    two = start_probe();
    second = fb_test_connect(two);
    fb_test_pass(two, 1000);
    ck_assert(answers(first, "time\n", "1795253400000\n"));
    ck_assert(answers(second, "time\n", "1795253401000\n"));
    end_probe(two);
    ck_assert(answers(first, "time\n", "1795253400000\n"));
    end_probe(one);
}
END_TEST

START_TEST(the_worker_is_there)
{
    fb_test *test = start_probe();

    ck_assert_int_eq(fb_wall_ms(fb_test_worker(test)), 1795253400000);
    fb_test_pass(test, 7);
    ck_assert_int_eq(fb_wall_ms(fb_test_worker(test)), 1795253400007);
    end_probe(test);
}
END_TEST

/* A state's memory is used again after the end of 4096 further states. */
START_TEST(slots_are_used_again_late)
{
    fb_test *test = start_probe();

    for (int i = 0; i < 6000; i++) {
        fb_test_peer *peer = fb_test_connect(test);

        if (i % 1000 == 0)
            ck_assert(answers(peer, "memory 1\n", "here\n"));
        fb_test_reset(peer);
    }
    end_probe(test);
}
END_TEST

static int touch_what_has_ended(void)
{
    fb_test *test = start_probe();

    fb_test_reset(fb_test_connect(test));
    fb_test_run(test);
    fb_test_says(fb_test_connect(test), "touch\n");
    return fb_test_end(&test);
}

START_TEST(states_are_watched)
{
    pid_t child = fork();
    int status;

    ck_assert_int_ne(child, -1);
    if (child == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO); /* the sanitizer's report is nobody's business */
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        _exit(touch_what_has_ended());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(!SANITIZED || !WIFEXITED(status) || WEXITSTATUS(status) != 0);
    ck_assert(SANITIZED || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
END_TEST

static int has_gone(fb_test *test, void *arg)
{
    (void)test;
    return fb_test_is_closed(arg);
}

/* A client that presence hears nothing of for 5 s is closed, and so after 5 s. */
START_TEST(time_is_told)
{
    fb_test *test = fb_test_start(&fb_protocol_presence, "presence;");
    fb_test_peer *a;

    ck_assert_ptr_nonnull(test);
    ck_assert_uint_eq(fb_test_now(test), 0);
    fb_test_pass(test, 100);
    ck_assert_uint_eq(fb_test_now(test), 100);
    a = fb_test_connect(test);
    fb_test_says(a, "?");
    ck_assert(!fb_test_pass_until(test, has_gone, a, 4999));
    ck_assert_uint_eq(fb_test_now(test), 5099);
    ck_assert(fb_test_pass_until(test, has_gone, a, 10000));
    ck_assert_uint_eq(fb_test_now(test), 5100);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, peers_come_and_go);
    tcase_add_test(tcase, lingering_is_closed);
    tcase_add_test(tcase, peers_take_what_they_like);
    tcase_add_test(tcase, time_passes_when_told);
    tcase_add_test(tcase, jobs_are_waited_for);
    tcase_add_test(tcase, servers_answer_as_told);
    tcase_add_test(tcase, memory_is_refused);
    tcase_add_test(tcase, clients_wait_for_a_free_connection);
    tcase_add_test(tcase, the_worker_drains);
    tcase_add_test(tcase, a_seed_decides);
    tcase_add_test(tcase, two_tests_at_once);
    tcase_add_test(tcase, the_worker_is_there);
    tcase_add_test(tcase, slots_are_used_again_late);
    tcase_add_test(tcase, states_are_watched);
    tcase_add_test(tcase, time_is_told);
}

TEST_MAIN("kit", add_tests)
