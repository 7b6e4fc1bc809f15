/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives `log_format` and `access_log`: settings, refusals, and inheritance. */
#include "features/access_log/access_log.h"
#include "features/access_log/gzip.h"
#include "features/features.h"
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

static const struct access_log_conf *conf_of(const struct loading *loading)
{
    return loading->cycle->stream.features[FEATURE_ACCESS_LOG];
}

static const struct access_cache_setting *cache_of(struct loading *loading, unsigned i)
{
    const struct access_log_values *values =
        server_feature(loading_server(loading, i), FEATURE_ACCESS_LOG);

    return values->cache;
}

#define BEGIN "events { } stream { "
#define PREREAD "ssl_preread on; "
#define SERVER "server { listen 127.0.0.1:1; } "
#define END "}"

static const struct {
    const char *text, *message;
} refused[] = {
    { "log_format x escape=xml a;", "expected a log format escaping" },
    { "log_format x escape=jso a;", "did you mean \"escape=json\"?" },
    { "log_format x a; log_format x b;", "duplicate \"log_format\" name \"x\"" },
    { "log_format x '$nothing';", "unknown \"nothing\" variable" },
    { "log_format x 'a${pid';", "the closing bracket in \"pid\" variable is missing" },
    { "log_format x '$-';", "invalid variable name in \"$-\"" },
    { "access_log a;", "log format is not specified" },
    { "log_format mine a; access_log a main;", "unknown log format \"main\"" },
    { "log_format main a; access_log a mian;", "did you mean \"main\"?" },
    { "access_log a jsn;", "did you mean \"json\"?" },
    { "access_log off x;", "nothing stands behind \"off\"" },
    { "log_format x a; access_log '' x;", "expected a path, \"stderr\" or \"syslog:\"" },
    { "log_format x a; access_log memory:1k x;", "only files, \"stderr\" and \"syslog:\"" },
    { "log_format x a; access_log syslog:tag=a x;", "there is no \"server\"" },
    { "log_format x a; access_log a x buffer=0;", "expected a size between 1 and 1g" },
    { "log_format x a; access_log a x buffer=1k flush=0;", "expected a time between 1ms and 1y" },
    { "log_format x a; access_log a x flush=1s;", "no buffer is defined for access_log \"a\"" },
    { "log_format x a; access_log a x when=1;", "expected buffer=SIZE, gzip[=LEVEL], flush=TIME" },
    { "log_format x a; access_log a x if=$nothing;", "unknown \"nothing\" variable" },
    { "log_format x a; access_log syslog:server=127.0.0.1 x buffer=1k;",
        "logs to syslog cannot be buffered" },
    { "log_format x a; access_log stderr x buffer=1k;",
        "logs to standard error cannot be buffered" },
    { "log_format x a; access_log l/$pid x buffer=1k;",
        "buffered logs cannot have variables in name" },
    { "log_format x a; access_log l/$nothing x;", "unknown \"nothing\" variable" },
    { "log_format x a; access_log l/$pid/../b x;",
        "\".\" and \"..\" cannot stand behind a variable" },
    { "log_format x a; access_log /$pid x;",
        "a path with variables begins with a directory of its own" },
    { "open_log_file_cache max=0;", "expected a number of at least 1" },
    { "open_log_file_cache inactive=1s;", "\"open_log_file_cache\" must have \"max\" parameter" },
    { "open_log_file_cache max=1 inactive=x;", "expected a time of at most 1y" },
    { "open_log_file_cache off max=1;", "expected \"off\", or max=NUMBER" },
    { "open_log_file_cache size=1;", "expected \"off\", or max=NUMBER" },
    { "log_format x a; access_log a x buffer=1k; access_log a x buffer=2k;",
        "access_log \"a\" already defined with conflicting parameters" },
};

START_TEST(wrong_values)
{
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    snprintf(text, sizeof(text), BEGIN "%s " SERVER END, refused[_i].text);
    load(&loading, text);
    ck_assert_msg(loading.cycle == NULL, "%s", refused[_i].text);
    ck_assert_msg(strstr(loading.report, refused[_i].message) != NULL, "%s", loading.report);
    loading_end(&loading);
}
END_TEST

START_TEST(levels_of_compression)
{
    struct loading loading;

    loading_begin(&loading);
    load(&loading, BEGIN "log_format x a; access_log a x gzip=0; " SERVER END);
    ck_assert_ptr_null(loading.cycle);
    load(&loading, BEGIN "log_format x a; access_log a x gzip; access_log b x gzip=9 buffer=1m; "
                         "access_log c x buffer=2k gzip; " SERVER END);
    if (access_gzip_built()) {
        const struct access_file *file;

        ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
        file = conf_of(&loading)->files; /* the last one first */
        ck_assert_uint_eq(file->buffer, 2048);
        ck_assert_int_eq(file->gzip, 1);
        ck_assert_uint_eq(file->next->buffer, 1024 * 1024);
        ck_assert_int_eq(file->next->gzip, 9);
        ck_assert_uint_eq(file->next->next->buffer, 65536);
        ck_assert_int_eq(file->next->next->gzip, 1);
    } else {
        ck_assert_ptr_null(loading.cycle);
        ck_assert_ptr_nonnull(strstr(loading.report, "it lacks zlib"));
    }
    loading_end(&loading);
}
END_TEST

static const struct access_log *logs_of(const struct loading *loading, int i)
{
    const struct phase_handler *handler = loading_server(loading, i)->after;

    return handler != NULL ? handler->arg : NULL;
}

/* A server has separate logs, or else the stream's; the format may stand behind the first use. */
START_TEST(inherited_all_or_none)
{
    struct loading loading;
    const struct access_log *logs;

    loading_begin(&loading);
    load(&loading,
        BEGIN "access_log a main; access_log b main buffer=1k flush=5s if=$pid; "
              "server { listen 127.0.0.1:1; } "
              "server { listen 127.0.0.1:2; access_log off; access_log a main; } "
              "server { listen 127.0.0.1:3; access_log a json; } "
              "log_format main '$remote_addr' ' x'; log_format json escape=json '$pid'; " END);
    ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
    logs = logs_of(&loading, 0);
    ck_assert_ptr_nonnull(logs);
    ck_assert_str_eq(strrchr(logs->file->target->path, '/'), "/a");
    ck_assert_str_eq(logs->format->name, "main");
    ck_assert_uint_eq(logs->format->part_n, 2);
    ck_assert_uint_eq(logs->file->buffer, 0);
    ck_assert_ptr_null(logs->condition);
    logs = logs->next;
    ck_assert_str_eq(strrchr(logs->file->target->path, '/'), "/b");
    ck_assert_uint_eq(logs->file->buffer, 1024);
    ck_assert_int_eq(logs->file->flush, 5000);
    ck_assert_ptr_nonnull(logs->condition);
    ck_assert_ptr_null(logs->next);
    ck_assert_ptr_null(logs_of(&loading, 1));
    logs = logs_of(&loading, 2);
    ck_assert_ptr_eq(logs->file, logs_of(&loading, 0)->file);
    ck_assert_int_eq(logs->format->escape, LOG_ESCAPE_JSON);
    ck_assert_ptr_null(logs->next);
    ck_assert_uint_eq(conf_of(&loading)->file_n, 2);
    ck_assert_uint_eq(core_target_n(&loading.cycle->core), 3); /* the error log's is the first */
    ck_assert_ptr_eq(core_target(&loading.cycle->core, 1), logs->file->target);
    loading_end(&loading);
}
END_TEST

/* Workers may write in the directory in front of the variables, and in no other. */
START_TEST(paths_with_variables)
{
    struct loading loading;
    const struct access_log *logs;
    const struct needs_path *needed;

    loading_begin(&loading);
    load(&loading, BEGIN "log_format x a; access_log /l/m/n-$pid/o x; open_log_file_cache max=1; "
                         "server { listen 127.0.0.1:2; open_log_file_cache off; } " SERVER END);
    ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
    logs = logs_of(&loading, 0);
    ck_assert_str_eq(logs->file->path->directory, "/l/m");
    ck_assert_ptr_null(cache_of(&loading, 0));
    ck_assert_int_eq(cache_of(&loading, 1)->max, 1);
    needed = STAILQ_FIRST(&loading.cycle->needs.paths);
    ck_assert_ptr_nonnull(needed);
    ck_assert_str_eq(needed->path, "/l/m");
    ck_assert_int_eq(needed->access, NEEDS_TO_APPEND);
    ck_assert_uint_eq(core_target_n(&loading.cycle->core), 1); /* the master opens no such log */
    loading_end(&loading);
}
END_TEST

/* File names made by clients are unlimited; names chosen from a list are not. */
START_TEST(names_by_clients_are_warned_of)
{
    struct loading loading;

    loading_begin(&loading);
    load(&loading, BEGIN "log_format x a; access_log /l/$remote_addr/$name x; "
                         "map $ssl_preread_server_name $name { a.test a; } " PREREAD SERVER END);
    ck_assert_str_eq(loading.report, "");
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "ssl_preread_server_name" : "proxy_protocol_addr";
        char text[256], expected[256];

        snprintf(text, sizeof(text),
            BEGIN "log_format x a;\naccess_log /l/a-$%s x; " PREREAD SERVER END, name);
        snprintf(expected, sizeof(expected),
            "warning: clients choose $%s, and so the number of files: have a \"map\" list the "
            "names "
            "in /main:2:12\n",
            name);
        accept_text(&loading, text, expected);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(servers_of_syslog)
{
    struct loading loading;
    const struct access_log *logs;

    loading_begin(&loading);
    load(&loading,
        BEGIN "log_format x a; access_log syslog:server=192.0.2.1,facility=kern,severity=notice x; "
              "access_log syslog:server=192.0.2.1,tag=t x; access_log stderr x; " SERVER END);
    ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
    logs = logs_of(&loading, 0);
    ck_assert_uint_eq(logs->file->target->syslog->facility, 0);
    ck_assert_int_eq(logs->file->target->syslog->severity, LEVEL_NOTICE);
    logs = logs->next;
    ck_assert_str_eq(logs->file->target->syslog->tag, "t");
    ck_assert_int_eq(logs->file->target->syslog->severity, LEVEL_INFO);
    ck_assert_ptr_null(logs->next->file->target->path);
    loading_end(&loading);
}
END_TEST

/* The name is ready, unless the configuration defines it, before or behind the use. */
START_TEST(a_format_that_is_ready)
{
    static const char *const texts[] = {
        "access_log a json; " SERVER,
        "log_format json x$pid; access_log a json; " SERVER,
        "access_log a json; " SERVER "log_format json x$pid; ",
    };
    struct loading loading;
    const struct line_format *format;
    char text[256];

    loading_begin(&loading);
    snprintf(text, sizeof(text), BEGIN "%s" END, texts[_i]);
    load(&loading, text);
    ck_assert_msg(loading.cycle != NULL, "%s", loading.report);
    format = logs_of(&loading, 0)->format;
    ck_assert_str_eq(format->name, "json");
    ck_assert_int_eq(format->escape, _i == 0 ? LOG_ESCAPE_JSON : LOG_ESCAPE_DEFAULT);
    ck_assert_int_eq(format->values != NULL, _i == 0);
    ck_assert_int_eq(format->part_n == 2, _i > 0);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_format_that_is_ready, 0, 3);
    tcase_add_loop_test(tcase, wrong_values, 0, countof(refused));
    tcase_add_test(tcase, levels_of_compression);
    tcase_add_test(tcase, inherited_all_or_none);
    tcase_add_test(tcase, paths_with_variables);
    tcase_add_test(tcase, names_by_clients_are_warned_of);
    tcase_add_test(tcase, servers_of_syslog);
}

TEST_MAIN("access_log", add_tests)
