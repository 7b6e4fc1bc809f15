/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "events": replies, followers, and the number of events missed by a slow follower. */
#include "control/events.h"

#include "control/host.h"

#define FOLLOW "{\"command\":\"events\",\"follow\":true}\n"
#define FOLLOWERS_MAX 8

/* A host with a ring. */
static void set_up_events(struct host *host)
{
    set_up(host);
    host->log.event_log = event_log_create(&host->clock);
    ck_assert_ptr_nonnull(host->log.event_log);
}

static void tear_down_events(struct host *host)
{
    tear_down(host);
    event_log_destroy(&host->log.event_log);
}

static void note_events(struct host *host, int n)
{
    for (int i = 0; i < n; i++)
        event_log_note(host->log.event_log, "kind", "text \"%d\"", i);
    control_tell_events(&host->control);
    control_check(&host->control);
}

/* Receives all lines, and counts events and lost events. */
static void receive_all(struct host *host, int fd, int64_t *n, int64_t *lost)
{
    static char text[1 << 20];
    ssize_t received;

    for (size_t used = 0;;) {
        char *end;

        while ((end = memchr(text, '\n', used)) != NULL) {
            struct json_value line = json_parse(text, (size_t)(end - text)), at = { NULL, 0 };

            ck_assert(json_is_true(json_member(line, "ok")));
            *lost += json_integer(json_member(line, "lost"), -1);
            while ((at = json_next(json_member(line, "events"), at)).text != NULL) {
                (*n)++;
                ck_assert_int_eq(json_integer(json_member(at, "number"), 0), *n + *lost);
            }
            used -= (size_t)(end + 1 - text);
            memmove(text, end + 1, used);
        }
        received = recv(fd, text + used, sizeof(text) - used, MSG_DONTWAIT);
        if (received <= 0)
            break;
        used += (size_t)received;
        control_serve(&host->control);
    }
}

START_TEST(events_are_listed)
{
    struct host host;
    int fd;

    set_up_events(&host);
    host.clock.wall_ms = 86400 * 1000 + 7;
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"events\"}\n");
    ck_assert_str_eq(received(fd), "{\"ok\":true,\"lost\":0,\"events\":[]}\n");
    note_events(&host, 2);
    ck_assert_str_eq(received(fd), "");
    send_text(&host, fd, "{\"command\":\"events\"}\n");
    ck_assert_str_eq(received(fd),
        "{\"ok\":true,\"lost\":0,\"events\":["
        "{\"number\":1,\"time\":\"1970-01-02T00:00:00.007Z\",\"kind\":\"kind\","
        "\"text\":\"text \\\"0\\\"\"},"
        "{\"number\":2,\"time\":\"1970-01-02T00:00:00.007Z\",\"kind\":\"kind\","
        "\"text\":\"text \\\"1\\\"\"}]}\n");
    send_text(&host, fd, "{\"command\":\"events\",\"since\":1}\n");
    ck_assert_ptr_nonnull(
        strstr(received(fd), "{\"ok\":true,\"lost\":0,\"events\":[{\"number\":2"));
    send_text(&host, fd, "{\"command\":\"events\",\"since\":99}\n");
    ck_assert_str_eq(received(fd), "{\"ok\":true,\"lost\":0,\"events\":[]}\n");
    send_text(&host, fd, "{\"command\":\"events\",\"since\":-9}\n");
    ck_assert_ptr_nonnull(strstr(received(fd), "\"events\":[{\"number\":1"));
    close(fd);
    tear_down_events(&host);
}
END_TEST

START_TEST(a_follower_is_sent_what_happens)
{
    struct host host;
    int fd;

    set_up_events(&host);
    note_events(&host, 1);
    fd = connect_client(&host);
    send_text(&host, fd, FOLLOW);
    ck_assert_ptr_nonnull(strstr(received(fd), "\"lost\":0,\"events\":[{\"number\":1,"));
    ck_assert_uint_eq(timers_check(&host.timers), 0); /* an idle follower costs no wake-up */
    host.clock.mono_ms += 3600 * 1000;
    timers_run(&host.timers);
    note_events(&host, 2);
    ck_assert_ptr_nonnull(strstr(received(fd), "\"lost\":0,\"events\":[{\"number\":2,"));
    note_events(&host, 1);
    ck_assert_ptr_nonnull(strstr(received(fd), "\"lost\":0,\"events\":[{\"number\":4,"));
    ck_assert_str_eq(received(fd), "");
    close(fd);
    control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, 0);
    tear_down_events(&host);
}
END_TEST

/* A slow follower is not cut off, and holds one reply; the ring loses further events. */
START_TEST(a_slow_follower_is_told_what_it_has_missed)
{
    int64_t n = 0, lost = 0;
    struct host host;
    int fd;

    set_up_events(&host);
    fd = connect_client(&host);
    send_text(&host, fd, FOLLOW);
    for (int i = 0; i < 100; i++)
        note_events(&host, 500);
    ck_assert_uint_eq(host.control.client_n, 1);
    ck_assert_uint_eq(timers_check(&host.timers), 0);
    receive_all(&host, fd, &n, &lost);
    ck_assert_int_gt(n, 1000);
    ck_assert_int_gt(lost, 1000);
    ck_assert_int_eq(n + lost, 50000);
    note_events(&host, 1); /* the follower goes on */
    receive_all(&host, fd, &n, &lost);
    ck_assert_int_eq(n + lost, 50001);
    close(fd);
    tear_down_events(&host);
}
END_TEST

/* Followers leave room for the clients of commands, and are not replaced by new clients. */
START_TEST(followers_are_few)
{
    struct host host;
    int fds[FOLLOWERS_MAX], more, others[40];

    set_up_events(&host);
    for (int i = 0; i < FOLLOWERS_MAX; i++) {
        fds[i] = connect_client(&host);
        send_text(&host, fds[i], FOLLOW);
        ck_assert_str_eq(received(fds[i]), "{\"ok\":true,\"lost\":0,\"events\":[]}\n");
    }
    more = connect_client(&host);
    send_text(&host, more, FOLLOW);
    ck_assert_str_eq(received(more),
        "{\"ok\":false,\"error\":\"too many clients follow the events, try again\"}\n");
    send_text(&host, more, "{\"command\":\"reload\"}\n");
    ck_assert_int_eq(host.taken, COMMAND_RELOAD);
    ck_assert_str_eq(received(more), "");
    for (int i = 0; i < 40; i++) {
        others[i] = connect_client(&host);
        send_text(&host, others[i], "");
    }
    note_events(&host, 1);
    for (int i = 0; i < FOLLOWERS_MAX; i++) {
        ck_assert_ptr_nonnull(strstr(received(fds[i]), "\"events\":[{\"number\":"));
        close(fds[i]);
    }
    for (int i = 0; i < 40; i++)
        close(others[i]);
    close(more);
    tear_down_events(&host);
}
END_TEST

START_TEST(without_memory_there_are_no_events)
{
    struct host host;
    int fd;

    set_up(&host);
    fd = connect_client(&host);
    send_text(&host, fd, FOLLOW);
    ck_assert_str_eq(
        received(fd), "{\"ok\":false,\"error\":\"the daemon had no memory for events\"}\n");
    control_tell_events(&host.control);
    close(fd);
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, events_are_listed);
    tcase_add_test(tcase, a_follower_is_sent_what_happens);
    tcase_add_test(tcase, a_slow_follower_is_told_what_it_has_missed);
    tcase_add_test(tcase, followers_are_few);
    tcase_add_test(tcase, without_memory_there_are_no_events);
}

TEST_MAIN("control events", add_tests)
