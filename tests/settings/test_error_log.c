/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of `error_log` and `error_log_rate_limit`; refused values are in test_values.c. */
#include "net/address.h"
#include "settings/loading.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MANY 2147483647

static const struct log_target *load_target(struct loading *loading, const char *values)
{
    char text[256];

    snprintf(text, sizeof(text), "error_log %s; events { }", values);
    load(loading, text);
    ck_assert_msg(loading->cycle != NULL, "%s", loading->report);
    ck_assert_str_eq(loading->report, "");
    ck_assert_uint_eq(loading->cycle->core.log_n, 1);
    return &loading->cycle->core.logs[0];
}

static const struct {
    const char *values, *name, *tag;
    unsigned facility;
    bool host;
    enum log_level level;
    enum log_format format;
} servers[] = {
    { "syslog:server=192.0.2.1", "192.0.2.1:514", "forkbeard", 23, true, LEVEL_ERROR,
        LOG_FORMAT_TEXT },
    { "syslog:server=192.0.2.1:1514 info", "192.0.2.1:1514", "forkbeard", 23, true, LEVEL_INFO,
        LOG_FORMAT_TEXT },
    { "syslog:server=[2001:db8::1],facility=kern", "[2001:db8::1]:514", "forkbeard", 0, true,
        LEVEL_ERROR, LOG_FORMAT_TEXT },
    { "syslog:server=localhost,tag=a_1", "127.0.0.1:514", "a_1", 23, true, LEVEL_ERROR,
        LOG_FORMAT_TEXT },
    { "syslog:nohostname,server=unix:/dev/log,facility=cron,severity=info warn json",
        "unix:/dev/log", "forkbeard", 15, false, LEVEL_WARN, LOG_FORMAT_JSON },
    { "syslog:server=tcp://192.0.2.1", "tcp://192.0.2.1:514", "forkbeard", 23, true, LEVEL_ERROR,
        LOG_FORMAT_TEXT },
    { "syslog:tag=a,server=tcp://[2001:db8::1]:6514 warn json", "tcp://[2001:db8::1]:6514", "a", 23,
        true, LEVEL_WARN, LOG_FORMAT_JSON },
    { "syslog:server=unix:/dev/log,facility=local0 json", "unix:/dev/log", "forkbeard", 16, true,
        LEVEL_ERROR, LOG_FORMAT_JSON },
};

/* A collector by TCP is new enough for RFC 5424. */
START_TEST(formats_of_syslog)
{
    static const struct {
        const char *server;
        enum syslog_format format;
        bool by_tcp;
    } formats[] = {
        { "192.0.2.1", SYSLOG_RFC3164, false },
        { "192.0.2.1,format=rfc5424", SYSLOG_RFC5424, false },
        { "unix:///dev/log", SYSLOG_RFC3164, false },
        { "tcp://192.0.2.1", SYSLOG_RFC5424, true },
        { "tcp://192.0.2.1,format=rfc3164", SYSLOG_RFC3164, true },
    };
    const struct syslog_server *syslog;
    struct loading loading;
    char text[64];

    loading_begin(&loading);
    snprintf(text, sizeof(text), "syslog:server=%s", formats[_i].server);
    syslog = load_target(&loading, text)->syslog;
    ck_assert_int_eq(syslog->format, formats[_i].format);
    ck_assert_int_eq(syslog->by_tcp, formats[_i].by_tcp);
    loading_end(&loading);
}
END_TEST

START_TEST(syslog_servers)
{
    const struct log_target *target;
    char host[256], behind[300];
    struct loading loading;

    ck_assert_int_eq(gethostname(host, sizeof(host)), 0);
    snprintf(behind, sizeof(behind), "%s ", host);
    loading_begin(&loading);
    target = load_target(&loading, servers[_i].values);
    ck_assert_int_eq(target->fd, -1);
    ck_assert_ptr_null(target->path);
    ck_assert_int_eq(target->level, servers[_i].level);
    ck_assert_int_eq(target->format, servers[_i].format);
    if (strstr(servers[_i].values, "localhost") == NULL) /* the name may be ::1 */
        ck_assert_str_eq(target->syslog->name, servers[_i].name);
    ck_assert_str_eq(target->syslog->tag, servers[_i].tag);
    ck_assert_uint_eq(target->syslog->facility, servers[_i].facility);
    ck_assert_str_eq(target->syslog->host, servers[_i].host ? behind : "");
    ck_assert_uint_gt(target->syslog->address_n, 0);
    loading_end(&loading);
}
END_TEST

static const struct {
    const char *values;
    enum log_level level;
    enum log_format format;
} formats[] = {
    { "stderr", LEVEL_ERROR, LOG_FORMAT_TEXT },
    { "stderr json", LEVEL_ERROR, LOG_FORMAT_JSON },
    { "stderr debug", LEVEL_DEBUG, LOG_FORMAT_TEXT },
    { "stderr debug json", LEVEL_DEBUG, LOG_FORMAT_JSON },
    { "json json", LEVEL_ERROR, LOG_FORMAT_JSON },
    { "json", LEVEL_ERROR, LOG_FORMAT_TEXT },
};

START_TEST(formats_and_levels)
{
    const struct log_target *target;
    struct loading loading;

    loading_begin(&loading);
    target = load_target(&loading, formats[_i].values);
    ck_assert_int_eq(target->level, formats[_i].level);
    ck_assert_int_eq(target->format, formats[_i].format);
    ck_assert_ptr_null(target->syslog);
    if (formats[_i].values[0] == 'j')
        ck_assert_str_eq(strrchr(target->path, '/'), "/json");
    else
        ck_assert_int_eq(target->fd, STDERR_FILENO);
    loading_end(&loading);
}
END_TEST

static const struct {
    const char *text;
    int64_t burst, interval;
} limits[] = {
    { "", 1000, 1000 },
    { "error_log_rate_limit off;", 0, 1000 },
    { "error_log_rate_limit burst=5;", 5, 1000 },
    { "error_log_rate_limit interval=5s;", 1000, 5000 },
    { "error_log_rate_limit interval=1ms burst=2147483647;", MANY, 1 },
    { "error_log_rate_limit burst=1 interval=1d;", 1, 86400000 },
};

START_TEST(limits_of_rates)
{
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    snprintf(text, sizeof(text), "%s events { }", limits[_i].text);
    load(&loading, text);
    ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
    ck_assert_int_eq(loading.cycle->core.log_burst, limits[_i].burst);
    ck_assert_int_eq(loading.cycle->core.log_interval, limits[_i].interval);
    loading_end(&loading);
}
END_TEST

START_TEST(several_logs_each_with_its_level)
{
    static const char *const levels[] = { "emerg", "alert", "crit", "error", "warn", "notice",
        "info", "debug" };
    struct loading loading;
    char text[512] = "error_log stderr; error_log /a/b; ";
    const struct core_settings *core;

    loading_begin(&loading);
    for (size_t i = 0; i < countof(levels); i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "error_log e %s; ", levels[i]);
    strcat(text, "events { }");
    accept_text(&loading, text, "");
    core = &loading.cycle->core;
    ck_assert_uint_eq(core->log_n, 2 + countof(levels));
    ck_assert_ptr_null(core->logs[0].path);
    ck_assert_int_eq(core->logs[0].fd, STDERR_FILENO);
    ck_assert_int_eq(core->logs[0].level, LEVEL_ERROR);
    ck_assert_str_eq(core->logs[1].path, "/a/b");
    for (size_t i = 0; i < countof(levels); i++)
        ck_assert_int_eq(core->logs[2 + i].level, (int)i);

    loading.options.error_log = "stderr"; /* -e */
    accept_text(&loading, "events { }", "");
    ck_assert_uint_eq(loading.cycle->core.log_n, 1);
    ck_assert_ptr_null(loading.cycle->core.logs[0].path);
    ck_assert_int_eq(loading.cycle->core.logs[0].fd, STDERR_FILENO);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, formats_of_syslog, 0, 5);
    tcase_add_loop_test(tcase, syslog_servers, 0, countof(servers));
    tcase_add_loop_test(tcase, formats_and_levels, 0, countof(formats));
    tcase_add_test(tcase, several_logs_each_with_its_level);
    tcase_add_loop_test(tcase, limits_of_rates, 0, countof(limits));
}

TEST_MAIN("error_log", add_tests)
