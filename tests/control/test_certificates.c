/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "certificates" on the control socket: a keeper's report, believed in nothing. */
#include "control/host.h"

static struct tls_file files[] = { { .path = "/a.pem" }, { .path = "/a.key" } };
static const char request[] = "{\"command\":\"certificates\"}\n";

static void set_up_files(struct host *host)
{
    set_up(host);
    host->cycle.tls = (struct tls_profiles) { .files = files, .file_n = 2, .pair_n = 1 };
}

static void give_report(struct host *host, const char *text)
{
    control_report(&host->control, text, text != NULL ? strlen(text) : 0);
    control_check(&host->control);
}

START_TEST(all_waiting_clients_get_the_report)
{
    struct host host;
    int fds[2];

    set_up_files(&host);
    for (int i = 0; i < 2; i++) {
        fds[i] = connect_client(&host);
        send_text(&host, fds[i], request);
        ck_assert_str_eq(received(fds[i]), "");
    }
    ck_assert_uint_eq(host.reports_asked, 2);
    give_report(&host,
        "{\"certificates\":[{\"certificate\":0,\"key\":1,\"names\":\"a, b\",\"not_after\":5},"
        "{\"certificate\":0,\"key\":0,\"swapped\":6,\"refused\":7,\"error\":\"bad\"}],"
        "\"left_out\":3}");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(received(fds[i]),
            "{\"ok\":true,\"certificates\":[{\"certificate\":\"/a.pem\",\"key\":\"/a.key\","
            "\"names\":\"a, b\",\"not_after\":5,\"swapped\":null,\"refused\":null,"
            "\"error\":null},{\"certificate\":\"/a.pem\",\"key\":\"/a.pem\",\"names\":null,"
            "\"not_after\":null,\"swapped\":6,\"refused\":7,\"error\":\"bad\"}],"
            "\"left_out\":3}\n");
        close(fds[i]);
    }
    tear_down(&host);
}
END_TEST

START_TEST(nothing_of_a_report_is_believed)
{
    static const struct {
        const char *report, *reply;
    } cases[] = {
        { NULL,
            "{\"ok\":false,\"error\":\"the keeper process has given no report, try again\"}\n" },
        { "", "{\"ok\":false,\"error\":\"the keeper process has given no report, try again\"}\n" },
        { "[1",
            "{\"ok\":false,\"error\":\"the keeper process has given no report, try again\"}\n" },
        { "7", "{\"ok\":true,\"certificates\":[],\"left_out\":0}\n" },
        { "{\"certificates\":{\"ok\":false},\"left_out\":\"all\"}",
            "{\"ok\":true,\"certificates\":[],\"left_out\":0}\n" },
        { "{\"certificates\":[[],{\"certificate\":2,\"key\":-1,\"names\":[1],\"not_after\":-5,"
          "\"swapped\":\"now\",\"other\":1}]}",
            "{\"ok\":true,\"certificates\":[{\"certificate\":null,\"key\":null,\"names\":null,"
            "\"not_after\":null,\"swapped\":null,\"refused\":null,\"error\":null},"
            "{\"certificate\":null,\"key\":null,\"names\":null,"
            "\"not_after\":null,\"swapped\":null,\"refused\":null,\"error\":null}],"
            "\"left_out\":0}\n" },
    };
    struct host host;
    int fd;

    set_up_files(&host);
    fd = connect_client(&host);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        send_text(&host, fd, request);
        give_report(&host, cases[i].report);
        ck_assert_str_eq(received(fd), cases[i].reply);
    }
    close(fd);
    tear_down(&host);
}
END_TEST

START_TEST(a_client_may_leave_or_be_refused)
{
    struct host host;
    int fd;

    set_up_files(&host);
    fd = connect_client(&host);
    send_text(&host, fd, request);
    close(fd);
    control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, 0);
    give_report(&host, "{}");
    fd = connect_client(&host);
    host.refusal = "no keeper";
    send_text(&host, fd, request);
    ck_assert_str_eq(received(fd), "{\"ok\":false,\"error\":\"no keeper\"}\n");
    host.cycle.tls.pair_n = 0; /* nobody is asked */
    send_text(&host, fd, request);
    ck_assert_str_eq(received(fd), "{\"ok\":true,\"certificates\":[],\"left_out\":0}\n");
    ck_assert_uint_eq(host.reports_asked, 2);
    close(fd);
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, all_waiting_clients_get_the_report);
    tcase_add_test(tcase, nothing_of_a_report_is_believed);
    tcase_add_test(tcase, a_client_may_leave_or_be_refused);
}

TEST_MAIN("certificates", add_tests)
