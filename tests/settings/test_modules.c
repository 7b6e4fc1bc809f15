/* SPDX-License-Identifier: BSD-2-Clause */
/* `load_module`, and the messages of a configuration without it. Faults of module files themselves:
 * tests/module/. */
#include "settings/loading.h"
#include "support/test.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool pages_stay_protected;

/* Stands in for the C library's, for all of the program. */
int mprotect(void *p, size_t n, int how)
{
    if (pages_stay_protected && (how & PROT_WRITE) != 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mprotect, p, n, how);
}

static const fb_protocol *protocol_of(const struct loading *loading)
{
    return STAILQ_FIRST(&loading->cycle->stream.servers)->protocol;
}

START_TEST(a_module_s_protocol_serves)
{
    struct loading loading;
    char text[512];

    loading_begin(&loading);
    add_module(&loading, "greet_one.so");
    add_module(&loading, "plain_a.so");
    accept_text(&loading,
        "load_module greet_one.so; load_module plain_a.so;"
        " events { } stream { greet_mark -; server { listen 1; greet; } }",
        "");
    ck_assert_str_eq(protocol_of(&loading)->name, "greet");
    ck_assert_ptr_eq(
        loading.cycle->protocols[STAILQ_FIRST(&loading.cycle->stream.servers)->protocol_index],
        protocol_of(&loading));
    snprintf(text, sizeof(text),
        "load_module " MODULES_PATH
        "/plain_a.so; events { } stream { server { listen 1; plain_a; } }");
    accept_text(&loading, text, "");
    ck_assert_str_eq(protocol_of(&loading)->name, "plain_a");
    loading_end(&loading);
}
END_TEST

START_TEST(it_may_stand_anywhere_in_the_main_context)
{
    static const char stream[] = "stream { server { listen 1; plain_a; } }";
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    add_module(&loading, "plain_a.so");
    add_file(&loading, "modules", "load_module plain_a.so;");
    snprintf(text, sizeof(text), "events { } %s load_module plain_a.so;", stream);
    accept_text(&loading, text, "");
    snprintf(text, sizeof(text), "events { } %s include modules;", stream);
    accept_text(&loading, text, "");
    loading.options.globals = "load_module plain_a.so;";
    snprintf(text, sizeof(text), "events { } %s", stream);
    accept_text(&loading, text, "");
    loading.options.globals = NULL;
    refuse_text(&loading, "events { load_module plain_a.so; } stream { load_module x; }",
        "\"load_module\" directive is not allowed here, and belongs in the main context in "
        "/main:1:10\n"
        "\"load_module\" directive is not allowed here, and belongs in the main context in "
        "/main:1:45\n");
    loading_end(&loading);
}
END_TEST

/* Directives of a refused module are not reported as unknown; real mistakes are. */
START_TEST(nothing_that_follows_from_a_lacking_module_is_told)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading,
        "load_module none.so; events { } stream { upper_limit 5; server { listen 1; upper;"
        " idle_timeout x; mqtt_pass y; } server { upper; } server { } }",
        "module \"/none.so\" cannot be opened (2: No such file or directory) in /main:1:13\n"
        "invalid value \"x\" in \"idle_timeout\" directive: expected a time such as 500ms, 30s or "
        "1h 30m in /main:1:96\n"
        "no \"listen\" is defined for this server in /main:1:132\n");
    refuse_text(&loading, "load_module none.so; evnets { } upper;",
        "module \"/none.so\" cannot be opened (2: No such file or directory) in /main:1:13\n"
        "unknown directive \"evnets\", did you mean \"events\"? in /main:1:22\n"
        "unknown directive \"upper\" in /main:1:33\n");
    loading_end(&loading);
}
END_TEST

/* The files may be missing. All others are modules of the daemon. */
START_TEST(a_module_of_nginx_is_left_alone)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        "load_module modules/ngx_stream_module.so;\n"
        "load_module /usr/lib/nginx/modules/ngx_http_geoip_module.so;\n"
        "events { } stream { server { listen 1; echo; } }",
        "notice: \"modules/ngx_stream_module.so\" is a module of nginx, and is not loaded: its "
        "features are built in, or not supported in /main:1:13\n"
        "notice: \"/usr/lib/nginx/modules/ngx_http_geoip_module.so\" is a module of nginx, and is "
        "not loaded: its features are built in, or not supported in /main:2:13\n");
    refuse_text(&loading,
        "load_module ngx_module.so; load_module ngx_stream.so; load_module my_ngx_a_module.so;"
        " load_module ngx_a_module.so.1; events { }",
        "module \"/ngx_module.so\" cannot be opened (2: No such file or directory) in /main:1:13\n"
        "module \"/ngx_stream.so\" cannot be opened (2: No such file or directory) in /main:1:40\n"
        "module \"/my_ngx_a_module.so\" cannot be opened (2: No such file or directory) in "
        "/main:1:67\n"
        "module \"/ngx_a_module.so.1\" cannot be opened (2: No such file or directory) in "
        "/main:1:99\n");
    loading_end(&loading);
}
END_TEST

START_TEST(names_clash_with_nobody)
{
    struct loading loading;

    loading_begin(&loading);
    add_module(&loading, "second_echo.so");
    add_module(&loading, "second_listen.so");
    add_module(&loading, "greet_one.so");
    add_module(&loading, "greet_two.so");
    refuse_text(&loading,
        "load_module second_echo.so;\nload_module second_listen.so;\nload_module greet_one.so;\n"
        "load_module greet_two.so;\nload_module greet_one.so;\nevents { }",
        "module \"/second_echo.so\" has a protocol \"echo\", and so has forkbeard itself: load "
        "only one of "
        "them in /main:1:13\n"
        "module \"/second_listen.so\" has a directive \"listen\", and so has forkbeard itself: "
        "load "
        "only one of them in /main:2:13\n"
        "module \"/greet_two.so\" has a protocol \"greet\", and so has module \"/greet_one.so\": "
        "load "
        "only one of them in /main:4:13\n"
        "module \"/greet_one.so\" is loaded already in /main:5:13\n");
    loading_end(&loading);
}
END_TEST

START_TEST(protocols_are_counted)
{
    static char names[64][16];
    static fb_directive directives[64];
    static fb_protocol protocols[64];
    const fb_protocol *list[65] = { NULL };
    struct loading loading;

    loading_begin(&loading);
    add_module(&loading, "plain_a.so");
    for (int i = 0; i < 64; i++) {
        snprintf(names[i], sizeof(names[i]), "protocol_%d", i);
        directives[i] = (fb_directive) { .name = names[i], .flags = FB_DIRECTIVE_HANDLER };
        protocols[i] = (fb_protocol) { FB_PROTOCOL_HEADER, .name = names[i],
            .directives = &directives[i], .directive_n = 1 };
        list[i] = &protocols[i];
    }
    loading.options.protocols = list;
    refuse_text(&loading, "load_module plain_a.so; events { }",
        "too many protocols with module \"/plain_a.so\": at most 64 can exist in /main:1:13\n");
    list[63] = NULL;
    accept_text(&loading,
        "load_module plain_a.so; events { } stream { server { listen 1; plain_a; } }", "");
    loading_end(&loading);
}
END_TEST

START_TEST(what_a_test_may_not_read_is_a_warning)
{
    static const char text[] =
        "load_module secret.so; events { } stream { server { listen 1; secret; } }";
    struct loading loading;
    char path[128];

    become_nobody();
    loading_begin(&loading);
    add_file(&loading, "secret.so", "");
    snprintf(path, sizeof(path), "%s/secret.so", loading.directory);
    ck_assert_int_eq(chmod(path, 0), 0);
    refuse_text(&loading, text,
        "module \"/secret.so\" cannot be opened (13: Permission denied) in /main:1:13\n");
    loading.options.testing = true;
    accept_text(&loading, text,
        "warning: module \"/secret.so\" cannot be opened (13: Permission denied) in "
        "/main:1:13\n");
    loading_end(&loading);
}
END_TEST

START_TEST(only_the_pid_is_wanted_of_a_broken_configuration)
{
    static const struct {
        const char *text, *pid, *messages;
    } cases[] = {
        { "events { }", "/default/pid", "" },
        { "load_module none.so; evnets { stream { bogus; } } daemon maybe; pid p;", "/p", "" },
        { "pid p; daemon maybe; stream { server {", "/p", "" },
        { "include broken; include none; pid q;", "/p", "" },
        { "pid p; pid q;", "/p", "" },
        { "load_module none.so; bogus;", "/default/pid", "" },
        /* the directive may come after the mistake */
        { "daemon on; stream { ;", NULL,
            "unexpected \";\", expecting a directive or \"}\" in /main:1:21\n" },
        { "include none;", NULL,
            "open() \"/none\" failed (2: No such file or directory) in /main:1:9\n" },
        { "pid;", NULL,
            "invalid number of arguments in \"pid\" directive: expected 1, found 0 in "
            "/main:1:1\n" },
    };
    struct loading loading;

    loading_begin(&loading);
    loading.options.only_pid = true;
    add_file(&loading, "broken", "pid p; events { ;");
    for (size_t i = 0; i < countof(cases); i++) {
        if (cases[i].pid == NULL) {
            refuse_text(&loading, cases[i].text, cases[i].messages);
            continue;
        }
        accept_text(&loading, cases[i].text, cases[i].messages);
        if (strcmp(cases[i].pid, "/default/pid") == 0)
            ck_assert_str_eq(loading.cycle->core.pid, cases[i].pid);
        else
            ck_assert_str_eq(loading.cycle->core.pid + strlen(loading.directory), cases[i].pid);
        ck_assert(SLIST_EMPTY(&loading.cycle->modules));
        ck_assert(STAILQ_EMPTY(&loading.cycle->stream.servers));
    }
    loading_end(&loading);
}
END_TEST

/* A module is checked, or refused: not served unchecked. */
START_TEST(a_module_cannot_be_checked)
{
    static const char text[] = "debug_modules on; load_module plain_a.so;"
                               " events { } stream { server { listen 1; plain_a; } }";
    struct loading loading;

    loading_begin(&loading);
    add_module(&loading, "plain_a.so");
    accept_text(&loading, text, "");
    pages_stay_protected = true;
    refuse_text(&loading, text,
        "module \"/plain_a.so\" cannot be checked, as \"debug_modules\" asks: the module's calls "
        "could not be redirected in /main:1:31\n");
    pages_stay_protected = false;
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_module_s_protocol_serves);
    tcase_add_test(tcase, it_may_stand_anywhere_in_the_main_context);
    tcase_add_test(tcase, nothing_that_follows_from_a_lacking_module_is_told);
    tcase_add_test(tcase, a_module_of_nginx_is_left_alone);
    tcase_add_test(tcase, names_clash_with_nobody);
    tcase_add_test(tcase, protocols_are_counted);
    tcase_add_test(tcase, what_a_test_may_not_read_is_a_warning);
    tcase_add_test(tcase, a_module_cannot_be_checked);
    tcase_add_test(tcase, only_the_pid_is_wanted_of_a_broken_configuration);
}

TEST_MAIN("modules", add_tests)
