/* SPDX-License-Identifier: BSD-2-Clause */
/* `worker_connections auto`, on a machine of its own. */
#include "os/limits.h"
#include "settings/loading.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (INT64_C(1) << 20)

/* In the place of os/linux/limits.c. */
static int64_t memory;

int64_t os_ram_allowed(const char *root)
{
    (void)root;
    return memory;
}

unsigned os_cpu_allowed(const char *root)
{
    (void)root;
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static const struct {
    int64_t memory;
    const char *directives, *events, *servers;
    int64_t expected;
} cases[] = {
    /* memory */
    { 512 * MIB, "worker_rlimit_nofile 100000;", "", "", 12288 },
    { 512 * MIB, "worker_rlimit_nofile 100000; worker_processes 4;", "", "", 3072 },
    { 512 * MIB, "worker_rlimit_nofile 100000; worker_processes 4; master_process off;", "", "",
        12288 },
    { 1 * MIB, "worker_processes 8;", "", "", 16 },
    { 64 * 1024 * 1024 * MIB, "worker_rlimit_nofile 2000000000;", "", "", 1048576 },
    /* descriptors */
    { 0, "worker_rlimit_nofile 1064;", "", "", 1000 },
    { 512 * MIB, "worker_rlimit_nofile 1064;", "", "", 1000 },
    { 512 * MIB, "", "", "", 500 - 64 },
    { 512 * MIB, "worker_rlimit_nofile 10;", "", "", 16 },
    { 512 * MIB, "", "", "server { listen 127.0.0.1:1-9; }", 500 - 64 - 9 },
    { 512 * MIB, "worker_processes 4;", "", "server { listen 1 reuseport; listen 2; }",
        500 - 64 - 5 - 4 },
    { 512 * MIB, "worker_rlimit_nofile 100000;", "use select;", "", 1024 - 64 },
    { 512 * MIB, "worker_rlimit_nofile 100000;", "use poll;", "", 12288 },
    /* a client and the connection to the server */
    { 0, "worker_rlimit_nofile 1066;", "", "server { listen 1; proxy_pass 127.0.0.1:2; }", 1000 },
    { 0, "worker_rlimit_nofile 1066;", "", "server { listen 1; echo; }", 1001 },
};

START_TEST(auto_is_what_there_is)
{
    static const char *const names[] = { "worker_connections", "connections" };
    const struct rlimit limits = { 500, 500 };
    struct loading loading;
    char text[512];

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limits), 0);
    memory = cases[_i].memory;
    loading_begin(&loading);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "%s events { %s auto; %s } stream { %s }",
            cases[_i].directives, names[i], cases[_i].events, cases[_i].servers);
        accept_text(&loading, text, "");
        ck_assert_int_eq(loading.cycle->events.worker_connections, cases[_i].expected);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(old_workers_may_have_a_quarter_of_the_memory)
{
    static const struct {
        int64_t memory;
        const char *directive;
        int64_t expected;
    } rows[] = {
        { 2048 * MIB, "", 128 },
        { 2048 * MIB, "max_draining_workers auto;", 128 },
        { 2048 * MIB, "max_draining_workers 7;", 7 },
        { 2048 * MIB, "max_draining_workers 0;", 0 },
        { 128 * MIB, "", 16 },
        { 1024 * 1024 * MIB, "", 512 },
        { 0, "", 512 },
    };
    struct loading loading;
    char text[128];

    loading_begin(&loading);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memory = rows[i].memory;
        snprintf(text, sizeof(text), "%s events { }", rows[i].directive);
        accept_text(&loading, text, "");
        ck_assert_int_eq(loading.cycle->sizing.draining, rows[i].expected);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(a_number_behind_auto_counts)
{
    struct loading loading;

    memory = 512 * MIB;
    loading_begin(&loading);
    accept_text(&loading, "events { worker_connections auto; connections 7; }", "");
    ck_assert_int_eq(loading.cycle->events.worker_connections, 7);
    accept_text(&loading, "events { connections 7; worker_connections auto; }", "");
    ck_assert_int_ne(loading.cycle->events.worker_connections, 7);
    loading_end(&loading);
}
END_TEST

START_TEST(too_many_are_warned_of)
{
    struct loading loading;

    memory = 512 * MIB;
    loading_begin(&loading);
    accept_text(&loading, "worker_processes 4; events { worker_connections 65536; }", "");
    accept_text(&loading, "worker_processes 4; events { worker_connections 65537; }",
        "warning: 65537 \"worker_connections\" of each of 4 \"worker_processes\" need at least 512 "
        "MiB when all are in use, and there are 512 MiB: lower them, or use \"worker_connections "
        "auto\"\n");
    accept_text(&loading, "worker_processes 2; events { worker_connections 16777216; }",
        "warning: 16777216 \"worker_connections\" of each of 2 \"worker_processes\" need at least "
        "65536 MiB when all are in use, and there are 512 MiB: lower them, or use "
        "\"worker_connections auto\"\n");
    memory = 0; /* unknown */
    accept_text(&loading, "events { worker_connections 16777216; }", "");
    loading_end(&loading);
}
END_TEST

START_TEST(a_proxied_client_needs_two)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(
        &loading, "events { worker_connections 1; } stream { server { listen 1; echo; } }", "");
    refuse_text(&loading,
        "events { worker_connections 1; } "
        "stream { server { listen 1; proxy_pass 127.0.0.1:2; } }",
        "a value of 1 for \"worker_connections\" is not enough for a client and the connection to "
        "the server\n");
    loading_end(&loading);
}
END_TEST

START_TEST(workers_with_keepers_need_two_slots)
{
    const char *const tls = "worker_processes %s; events {} stream { ssl_certificate a; "
                            "ssl_certificate_key a; server { listen 1 ssl; echo; } }";
    struct loading loading;
    char text[256];

    if (!HAVE_OPENSSL) /* TLS is refused */
        return;
    loading_begin(&loading);
    snprintf(text, sizeof(text), tls, "255");
    accept_text(&loading, text, "");
    snprintf(text, sizeof(text), tls, "256");
    refuse_text(&loading, text,
        "256 \"worker_processes\" are too many for TLS, with a keeper process each: set at most "
        "255\n");
    snprintf(text, sizeof(text), tls, "256; master_process off");
    accept_text(&loading, text, "");
    accept_text(
        &loading, "worker_processes 256; events {} stream { server { listen 1; echo; } }", "");
    loading_end(&loading);
}
END_TEST

START_TEST(the_log_says_what_it_came_to)
{
    struct log_target target = { .level = LEVEL_NOTICE };
    struct loading loading;
    struct log log;
    char line[256];
    ssize_t n;

    memory = 512 * MIB;
    loading_begin(&loading);
    target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(target.fd, -1);
    log_init(&log, &target, 1);
    log.plain = "";
    accept_text(&loading, "events { }", "");
    sizing_log(loading.cycle, &log);
    accept_text(&loading,
        "worker_processes 3; worker_rlimit_nofile 9999; events { worker_connections auto; }", "");
    sizing_log(loading.cycle, &log);
    n = pread(target.fd, line, sizeof(line) - 1, 0);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    ck_assert_str_eq(line,
        ": [notice] worker_connections auto: 4096, for 3 worker processes, 512 MiB of memory and "
        "9999 descriptors of each\n");
    close(target.fd);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, auto_is_what_there_is, 0, countof(cases));
    tcase_add_test(tcase, a_number_behind_auto_counts);
    tcase_add_test(tcase, old_workers_may_have_a_quarter_of_the_memory);
    tcase_add_test(tcase, too_many_are_warned_of);
    tcase_add_test(tcase, a_proxied_client_needs_two);
    tcase_add_test(tcase, workers_with_keepers_need_two_slots);
    tcase_add_test(tcase, the_log_says_what_it_came_to);
}

TEST_MAIN("sizing", add_tests)
