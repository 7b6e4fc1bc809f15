/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole configuration: blocks and inheritance, files and -g, and the mistakes reported by one
 * reading. */
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct server *first_server(const struct loading *loading)
{
    return STAILQ_FIRST(&loading->cycle->stream.servers);
}

static const struct server *second_server(const struct loading *loading)
{
    return STAILQ_NEXT(first_server(loading), link);
}

START_TEST(a_server_inherits_whatever_the_order)
{
    static const char *const texts[] = {
        "events { } stream { idle_timeout 7s; tcp_nodelay off;"
        " server { listen 1; } server { listen 2; idle_timeout 8s; } }",
        "events { } stream { server { listen 1; } server { idle_timeout 8s; listen 2; }"
        " tcp_nodelay off; idle_timeout 7s; }",
        "stream { server { listen 1; } idle_timeout 7s; server { listen 2; idle_timeout 8s; }"
        " tcp_nodelay off; } events { }",
    };
    struct loading loading;

    loading_begin(&loading);
    for (size_t i = 0; i < countof(texts); i++) {
        accept_text(&loading, texts[i], "");
        ck_assert_int_eq(first_server(&loading)->settings.idle_timeout, 7000);
        ck_assert_int_eq(second_server(&loading)->settings.idle_timeout, 8000);
        ck_assert_int_eq(first_server(&loading)->settings.tcp_nodelay, 0);
        ck_assert_int_eq(second_server(&loading)->settings.tcp_nodelay, 0);
        ck_assert_int_eq(first_server(&loading)->settings.first_byte_timeout, 60000);
        ck_assert_ptr_null(second_server(&loading)->protocol);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(all_mistakes_are_told_in_one_run)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading,
        "worker_proceses 2;\n"
        "daemon maybe;\n"
        "events {\n"
        "    use selec;\n"
        "    listen 80;\n"
        "}\n"
        "stream {\n"
        "    idle_timeout;\n"
        "    server { listen 80 backlog=x; echo; echo; }\n"
        "    server { echo; discard; listen 81; }\n"
        "    server { tcp_nodelay on; }\n"
        "}\n",
        "unknown directive \"worker_proceses\", did you mean \"worker_processes\"? in /main:1:1\n"
        "invalid value \"maybe\" in \"daemon\" directive: expected \"on\" or \"off\" "
        "in /main:2:8\n"
        "invalid value \"selec\" in \"use\" directive: expected an event mechanism of the build "
        "(see -V), did you mean \"select\"? in /main:4:9\n"
        "\"listen\" directive is not allowed here, and belongs in \"server\" in /main:5:5\n"
        "invalid number of arguments in \"idle_timeout\" directive: expected 1, found 0 "
        "in /main:8:5\n"
        "invalid value \"backlog=x\" in \"listen\" directive: expected a number, at least -1 "
        "in /main:9:24\n"
        "\"echo\" directive is duplicate: first set in /main:9 in /main:9:41\n"
        "\"discard\" directive conflicts with \"echo\" in line 10: a server has one protocol "
        "in /main:10:20\n"
        "no \"listen\" is defined for this server in /main:11:5\n");
    loading_end(&loading);
}
END_TEST

START_TEST(an_unknown_block_is_skipped_whole)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, "events { } strem { bogus; server { more bogus { listen; } } } pid;",
        "unknown directive \"strem\", did you mean \"stream\"? in /main:1:12\n"
        "invalid number of arguments in \"pid\" directive: expected 1, found 0 in /main:1:63\n");
    /* "no events section" would merely follow */
    refuse_text(&loading, "evnets { use epol; }",
        "unknown directive \"evnets\", did you mean \"events\"? in /main:1:1\n");
    loading_end(&loading);
}
END_TEST

START_TEST(what_only_nginx_has_is_called_so)
{
    static const struct {
        const char *name, *lacking;
    } rows[] = {
        { "http", ": all servers belong in \"stream\"" },
        { "mail", ": all servers belong in \"stream\"" },
        { "keyval", "" },
        { "fastcgi_pass", "" },
        { "state", ": servers come from the configuration" },
        { "gzip", "" },
        { "location", "" },
        { "http2", "" },
        { "uwsgi_pass", "" },
        { "smtp_auth", "" },
        { "limit_req", ": \"limit_conn_rate\" limits the rate of connections" },
        { "js_import", "" },
        { "mgmt", "" },
        { "zone_sync", "" },
        { "starttls", ": STARTTLS is \"proxy_starttls\" of \"stream\"" },
        { "ssl", ": \"ssl\" is a parameter of \"listen\"" },
        { "ssl_buffer_size", "" },
        { "ssl_certificate_compression", ": this version does not compress certificates" },
        { "ssl_early_data", ": this version takes no early data" },
        { "ssl_ech_file", ": this version has no Encrypted Client Hello" },
        { "ssl_name", "" },
        { "ssl_ocsp_responder",
            ": no OCSP responder is asked, \"ssl_crl\" has revoked certificates" },
        { "ssl_stapling_responder", ": no OCSP responder is asked, see \"ssl_stapling_file\"" },
        { "ssl_verify", "" },
        { "zone_sync_ssl", "" },
    };
    struct loading loading;
    char text[256], expected[256];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(rows); i++) {
        snprintf(expected, sizeof(expected),
            "\"%s\" directive of nginx is not supported%s in /main:1:1\n", rows[i].name,
            rows[i].lacking);
        snprintf(text, sizeof(text), "%s a;", rows[i].name);
        refuse_text(&loading, text, expected);
        snprintf(text, sizeof(text), "%s { server { location / { } } } events { }", rows[i].name);
        refuse_text(&loading, text, expected);
    }
    refuse_text(&loading, "events { } stream { server { listen 1; uwsgi_pass a:1; } }",
        "\"uwsgi_pass\" directive of nginx is not supported in /main:1:40\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_block_of_nginx_is_skipped_whole)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading,
        "http { gzip on; bogus; server { listen 80; location / { root html; } } } events { } pid;",
        "\"http\" directive of nginx is not supported: all servers belong in \"stream\" in "
        "/main:1:1\n"
        "invalid number of arguments in \"pid\" directive: expected 1, found 0 in /main:1:85\n");
    loading_end(&loading);
}
END_TEST

START_TEST(what_has_no_effect_here_is_accepted_with_a_notice)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        "lock_file logs/nginx.lock;\n"
        "pcre_jit on;\n"
        "ssl_engine pkcs11;\n"
        "events { rtsig_signo 40; acceptex_read on; }\n"
        "stream { server_names_hash_max_size 1024; server_names_hash_bucket_size 64;\n"
        "server { listen 1; status_zone a; } }\n",
        "notice: \"lock_file\" directive of nginx has no effect here, ignored in /main:1:1\n"
        "notice: \"pcre_jit\" directive of nginx has no effect here, ignored in /main:2:1\n"
        "notice: \"ssl_engine\" directive of nginx has no effect here, ignored in /main:3:1\n"
        "notice: \"rtsig_signo\" directive of nginx has no effect here, ignored in /main:4:10\n"
        "notice: \"acceptex_read\" directive of nginx has no effect here, ignored in /main:4:26\n"
        "notice: \"server_names_hash_max_size\" directive of nginx has no effect here, ignored in "
        "/main:5:10\n"
        "notice: \"server_names_hash_bucket_size\" directive of nginx has no effect here, ignored "
        "in /main:5:43\n"
        "notice: \"status_zone\" directive of nginx has no effect here, ignored in /main:6:20\n");
    refuse_text(&loading, "events { pcre_jit on; } lock_file { }",
        "\"pcre_jit\" directive is not allowed here, and belongs in the main context in "
        "/main:1:10\n"
        "directive \"lock_file\" is not terminated by \";\", and takes no block in /main:1:25\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_misspelt_name_of_nginx_is_suggested)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, "events { } stream { ssl_ech_fiel a; }",
        "unknown directive \"ssl_ech_fiel\", \"ssl_ech_file\" directive of nginx is not supported "
        "either: this version has no Encrypted Client Hello in /main:1:21\n");
    refuse_text(&loading, "lokc_file a; events { } stream { uwsgi_passs a; gzip_types b; }",
        "unknown directive \"lokc_file\", did you mean \"lock_file\"? in /main:1:1\n"
        "unknown directive \"uwsgi_passs\", \"uwsgi_pass\" directive of nginx is not supported "
        "either in /main:1:34\n"
        "\"gzip_types\" directive of nginx is not supported in /main:1:49\n");
    loading_end(&loading);
}
END_TEST

START_TEST(what_has_no_likeness_is_just_unknown)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, "events { xyzzy 1; }", "unknown directive \"xyzzy\" in /main:1:10\n");
    loading_end(&loading);
}
END_TEST

START_TEST(events_is_needed_and_stream_is_not)
{
    struct loading loading;
    char expected[256];

    loading_begin(&loading);
    accept_text(&loading, "events { }", "");
    ck_assert(STAILQ_EMPTY(&loading.cycle->stream.listeners.list));
    snprintf(expected, sizeof(expected), "no \"events\" section in configuration /main\n");
    refuse_text(&loading, "stream { server { listen 1; } }", expected);
    refuse_text(&loading, "", expected);
    loading_end(&loading);
}
END_TEST

START_TEST(a_lexical_error_ends_its_file_and_hides_what_is_missing)
{
    struct loading loading;

    loading_begin(&loading);
    /* neither "events" nor the server's "listen" is said to be missing */
    refuse_text(&loading, "daemon maybe; stream { server { echo; } server { echo; ; listen 1;",
        "unexpected \";\", expecting a directive or \"}\" in /main:1:56\n"
        "invalid value \"maybe\" in \"daemon\" directive: expected \"on\" or \"off\" in "
        "/main:1:8\n");
    loading_end(&loading);
}
END_TEST

START_TEST(the_command_line_s_directives_come_first)
{
    struct loading loading;

    loading_begin(&loading);
    loading.options.globals = "daemon off; worker_processes 2; env A=1;";
    accept_text(&loading, "env B=2; events { }", "");
    ck_assert_int_eq(loading.cycle->core.daemon, 0);
    ck_assert_int_eq(loading.cycle->core.worker_processes, 2);
    ck_assert_str_eq(loading.cycle->core.env[0], "A=1");
    ck_assert_str_eq(loading.cycle->core.env[1], "B=2");

    refuse_text(&loading, "daemon on; events { }",
        "\"daemon\" directive is duplicate: first set in command line:1 in "
        "/main:1:1\n");
    loading.options.globals = "daemon\n maybe; demon on; pid";
    refuse_text(&loading, "pid;",
        "unexpected end of parameter, expecting \";\": directive \"pid\" is not terminated in "
        "command line:2:19\n"
        "invalid value \"maybe\" in \"daemon\" directive: expected \"on\" or \"off\" in "
        "command line:2:2\n"
        "unknown directive \"demon\", did you mean \"daemon\"? in command line:2:9\n"
        "invalid number of arguments in \"pid\" directive: expected 1, found 0 in /main:1:1\n");
    loading_end(&loading);
}
END_TEST

START_TEST(includes_are_found_beside_the_configuration)
{
    struct loading loading;
    char path[128];

    loading_begin(&loading);
    snprintf(path, sizeof(path), "%s/sub", loading.directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    add_file(&loading, "events.conf", "events { include sub/inner.conf; }");
    add_file(&loading, "sub/inner.conf", "worker_connections 77;");
    add_file(&loading, "sub/2.server", "server { listen 2; }");
    add_file(&loading, "sub/1.server", "server { listen 1; include sub/timeouts; }");
    add_file(&loading, "sub/timeouts", "idle_timeout 3s;");
    accept_text(
        &loading, "include events.conf; include none/*.conf; stream { include sub/*.server; }", "");
    ck_assert_int_eq(loading.cycle->events.worker_connections, 77);
    ck_assert_str_eq(STAILQ_FIRST(&loading.cycle->stream.listeners.list)->text, "0.0.0.0:1");
    ck_assert_int_eq(first_server(&loading)->settings.idle_timeout, 3000);
    ck_assert_int_eq(second_server(&loading)->settings.idle_timeout, 600000);
    loading_end(&loading);
}
END_TEST

START_TEST(mistakes_of_included_files_name_them)
{
    struct loading loading;

    loading_begin(&loading);
    add_file(&loading, "a", "\n  daemon perhaps;\nlisten 80;");
    refuse_text(&loading, "include a; include b; events { include a; } daemon off;",
        "invalid value \"perhaps\" in \"daemon\" directive: expected \"on\" or \"off\" in /a:2:10\n"
        "\"listen\" directive is not allowed here, and belongs in \"server\" in /a:3:1\n"
        "open() \"/b\" failed (2: No such file or directory) in /main:1:20\n"
        "\"daemon\" directive is not allowed here, and belongs in the main context in /a:2:3\n"
        "\"daemon\" directive is duplicate: first set in /a:2 in /main:1:45\n");
    loading_end(&loading);
}
END_TEST

/* An unreadable file, and an unreadable directory with a glob. */
static void add_secrets(struct loading *loading)
{
    char path[128];

    add_file(loading, "secret", "events { }");
    snprintf(path, sizeof(path), "%s/secret", loading->directory);
    ck_assert_int_eq(chmod(path, 0), 0);
    snprintf(path, sizeof(path), "%s/vault", loading->directory);
    ck_assert_int_eq(mkdir(path, 0300), 0);
}

START_TEST(what_a_test_may_not_read_is_a_warning)
{
    static const char text[] = "include secret; stream { server { echo; include vault/*; } }";
    struct loading loading;

    become_nobody();
    loading_begin(&loading);
    add_secrets(&loading);
    refuse_text(&loading, text,
        "open() \"/secret\" failed (13: Permission denied) in /main:1:9\n"
        "glob() \"/vault/*\" failed (13: Permission denied) in /main:1:49\n");
    loading.options.testing = true;
    accept_text(&loading, text,
        "warning: open() \"/secret\" failed (13: Permission denied) in /main:1:9\n"
        "warning: glob() \"/vault/*\" failed (13: Permission denied) in /main:1:49\n");
    refuse_text(&loading, "include secret; include none; pid;",
        "warning: open() \"/secret\" failed (13: Permission denied) in /main:1:9\n"
        "open() \"/none\" failed (2: No such file or directory) in /main:1:25\n"
        "invalid number of arguments in \"pid\" directive: expected 1, found 0 in /main:1:31\n");
    loading_end(&loading);
}
END_TEST

START_TEST(the_main_file_must_be_readable_for_a_test_too)
{
    struct log_target target;
    struct log log;
    struct loading loading;

    become_nobody();
    loading_begin(&loading);
    loading.options.testing = true;
    add_file(&loading, "main", "events { }");
    ck_assert_int_eq(chmod(loading.conf, 0), 0);
    log_init_plain(&log, &target, "");
    target.fd = -1;
    ck_assert_ptr_null(cycle_load(&loading.options, &log, -1));
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_server_inherits_whatever_the_order);
    tcase_add_test(tcase, all_mistakes_are_told_in_one_run);
    tcase_add_test(tcase, an_unknown_block_is_skipped_whole);
    tcase_add_test(tcase, what_only_nginx_has_is_called_so);
    tcase_add_test(tcase, a_block_of_nginx_is_skipped_whole);
    tcase_add_test(tcase, what_has_no_effect_here_is_accepted_with_a_notice);
    tcase_add_test(tcase, a_misspelt_name_of_nginx_is_suggested);
    tcase_add_test(tcase, what_has_no_likeness_is_just_unknown);
    tcase_add_test(tcase, events_is_needed_and_stream_is_not);
    tcase_add_test(tcase, a_lexical_error_ends_its_file_and_hides_what_is_missing);
    tcase_add_test(tcase, the_command_line_s_directives_come_first);
    tcase_add_test(tcase, includes_are_found_beside_the_configuration);
    tcase_add_test(tcase, mistakes_of_included_files_name_them);
    tcase_add_test(tcase, what_a_test_may_not_read_is_a_warning);
    tcase_add_test(tcase, the_main_file_must_be_readable_for_a_test_too);
}

TEST_MAIN("blocks", add_tests)
