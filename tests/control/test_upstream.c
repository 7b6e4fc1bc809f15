/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "upstream" on the control socket: replies and refusals. */
#include "base/compiler.h"
#include "control/host.h"

START_TEST(upstreams_are_listed_and_changed)
{
    static const char up[] =
        "{\"ok\":true,\"upstreams\":[{\"name\":\"u\",\"balancer\":\"round_robin\",\"zone\":\"z\","
        "\"servers\":[{\"server\":\"127.0.0.1:1\",\"address\":\"127.0.0.1:1\",\"state\":\"%s\","
        "\"set\":\"%s\",\"backup\":false,\"weight\":2,\"max_conns\":0,\"connections\":0,"
        "\"sessions\":3,\"failures\":0,\"resets\":4,\"timeouts\":5,\"refusals\":6,\"slow\":7}],"
        "\"names\":[%s]}],\"left_out\":0}\n";
    static const char names[] =
        "{\"server\":\"a.test:1\",\"addresses\":2,\"age_ms\":3000,\"error\":null},"
        "{\"server\":\"b.test:1\",\"addresses\":0,\"failed_ms\":5,"
        "\"error\":\"b.test: no server has answered in time\"}";
    struct host host;
    char expected[512];
    int fd;

    set_up(&host);
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"upstream\"}\n");
    snprintf(expected, sizeof(expected), up, "up", "auto", "");
    ck_assert_str_eq(received(fd), expected);
    send_text(&host, fd,
        "{\"command\":\"upstream\",\"upstream\":\"u\",\"state\":\"drain\","
        "\"server\":\"127.0.0.1:1\"}\n");
    snprintf(expected, sizeof(expected), up, "draining", "drain", "");
    ck_assert_str_eq(received(fd), expected);
    add_names(&host);
    send_text(&host, fd, "{\"command\":\"upstream\",\"upstream\":\"u\"}\n");
    snprintf(expected, sizeof(expected), up, "draining", "drain", names);
    ck_assert_str_eq(received(fd), expected);
    close(fd);
    tear_down(&host);
}
END_TEST

/* Receives up to the end of the line, while the control sends; returns how often `text` is in it,
 * and the last bytes. */
static unsigned count_in_reply(struct host *host, int fd, const char *text, char end[32])
{
    size_t n = 0, size = 4 << 20;
    char *reply = malloc(size + 1);
    unsigned count = 0;

    ck_assert_ptr_nonnull(reply);
    while (n == 0 || reply[n - 1] != '\n') {
        ssize_t piece = recv(fd, reply + n, size - n, 0);

        ck_assert_int_gt(piece, 0);
        n += (size_t)piece;
        control_serve(&host->control);
    }
    reply[n] = '\0';
    for (const char *at = reply; (at = strstr(at, text)) != NULL; at++)
        count++;
    snprintf(end, 32, "%s", reply + n - 24);
    free(reply);
    return count;
}

START_TEST(a_long_list_is_cut)
{
    struct host host;
    char end[32];
    int fd;

    set_up(&host);
    host.server_n = 5000;
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"upstream\"}\n");
    ck_assert_uint_eq(count_in_reply(&host, fd, "\"server\":", end), 4096);
    ck_assert_ptr_nonnull(strstr(end, "],\"left_out\":905}\n"));
    close(fd);
    tear_down(&host);
}
END_TEST

START_TEST(all_groups_are_listed)
{
    struct host host;
    char end[32];
    int fd;

    set_up(&host);
    add_groups(&host, GROUPS_MOST - 1);
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"upstream\"}\n");
    ck_assert_uint_eq(count_in_reply(&host, fd, "\"name\":", end), GROUPS_MOST);
    ck_assert_uint_eq(host.group_ends, GROUPS_MOST);
    send_text(&host, fd, "{\"command\":\"upstream\",\"upstream\":\"v\"}\n");
    ck_assert_ptr_nonnull(strstr(received(fd), "has \\\"u\\\", \\\"u1\\\", "));
    ck_assert_uint_eq(host.group_ends, 2 * GROUPS_MOST);
    close(fd);
    tear_down(&host);
}
END_TEST

#define CHANGE(upstream, state, server)                                                            \
    "{\"command\":\"upstream\",\"upstream\":\"" upstream "\",\"state\":\"" state "\",\"server\":"  \
    "\"" server "\"}\n"

#define NO_ZONE (-1)

static const struct {
    const char *request;
    int why; /* errno of the change, or NO_ZONE */
    unsigned more;
    const char *error;
} refused_changes[] = {
    { "{\"command\":\"upstream\",\"upstream\":\"v\"}\n", 0, 0,
        "unknown upstream \\\"v\\\", the configuration in force has \\\"u\\\"" },
    { CHANGE("v", "drain", "127.0.0.1:1"), 0, 0,
        "unknown upstream \\\"v\\\", the configuration in force has \\\"u\\\"" },
    { CHANGE("u", "drain", "a"), 0, 4,
        "upstream \\\"u\\\" has no server \\\"a\\\", only \\\"127.0.0.1:1\\\", \\\"s0:1\\\", "
        "\\\"s1:1\\\"" },
    { CHANGE("u", "drain", "a"), 0, 100,
        "upstream \\\"u\\\" has no server \\\"a\\\", only \\\"127.0.0.1:1\\\", \\\"s0:1\\\", "
        "\\\"s1:1\\\", \\\"s2:1\\\", \\\"s3:1\\\", \\\"s4:1\\\", \\\"s5:1\\\", \\\"s6:1\\\", ..." },
    { CHANGE("u", "gone", "a"), NO_ZONE, 0,
        "unknown state \\\"gone\\\", expected up, drain, down or auto" },
    { CHANGE("u", "drain", "a"), NO_ZONE, 0,
        "upstream \\\"u\\\" has no zone, and without a zone workers cannot be told of a state: "
        "add \\\"zone u 64k;\\\" to the block and reload" },
    { CHANGE("u", "drain", "127.0.0.1:1"), ENOTSUP, 0,
        "upstream \\\"u\\\" has no zone, and without a zone workers cannot be told of a state: "
        "add \\\"zone u 64k;\\\" to the block and reload" },
    { CHANGE("u", "drain", "127.0.0.1:1"), ENOSPC, 0,
        "the zone of upstream \\\"u\\\" has no room for a further state: make the zone larger and "
        "reload" },
    { "{\"command\":\"upstream\",\"state\":1,\"server\":[]}\n", 0, 0,
        "the request has no \\\"upstream\\\", \\\"server\\\" and \\\"state\\\" of text" },
    { "{\"command\":\"upstream\",\"upstream\":\"u\",\"server\":\"a\"}\n", 0, 0,
        "the request has no \\\"upstream\\\", \\\"server\\\" and \\\"state\\\" of text" },
};

START_TEST(a_refused_change_says_what_there_is)
{
    struct host host;
    char expected[1024];
    int fd;

    set_up(&host);
    if (refused_changes[_i].why == NO_ZONE)
        host.groups[0].zone = NULL;
    else
        host.set_error = refused_changes[_i].why;
    host.server_n = refused_changes[_i].more;
    fd = connect_client(&host);
    send_text(&host, fd, refused_changes[_i].request);
    snprintf(
        expected, sizeof(expected), "{\"ok\":false,\"error\":\"%s\"}\n", refused_changes[_i].error);
    ck_assert_str_eq(received(fd), expected);
    ck_assert_int_eq(host.set_to, UPSTREAM_AUTO);
    close(fd);
    tear_down(&host);
}
END_TEST

/* Without a zone the master knows the configuration alone. */
START_TEST(a_group_without_a_zone_is_listed)
{
    struct host host;
    int fd;

    set_up(&host);
    host.groups[0].zone = NULL;
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"upstream\"}\n");
    ck_assert_ptr_nonnull(strstr(received(fd),
        "\"zone\":null,\"servers\":[{\"server\":\"127.0.0.1:1\",\"address\":\"127.0.0.1:1\","
        "\"state\":null,\"set\":null,\"backup\":false,\"weight\":2,\"max_conns\":0,"
        "\"connections\":0,\"sessions\":0,"));
    close(fd);
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, upstreams_are_listed_and_changed);
    tcase_add_test(tcase, a_long_list_is_cut);
    tcase_add_test(tcase, all_groups_are_listed);
    tcase_add_test(tcase, a_group_without_a_zone_is_listed);
    tcase_add_loop_test(tcase, a_refused_change_says_what_there_is, 0, countof(refused_changes));
}

TEST_MAIN("control upstream", add_tests)
