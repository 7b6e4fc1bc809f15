/* SPDX-License-Identifier: BSD-2-Clause */
/* `env_substitution`: the words of a configuration in which variables are replaced, and when. */
#include "features/map/map.h"
#include "settings/loading.h"
#include "support/test.h"
#include "text/template.h"

#include <string.h>

#define MAIN "env_substitution on; "
#define REST " events { } stream { }"

static const char *const environment[] = { "PORT=7007", "WORKERS=3", "FILE=other", "DIR=sub",
    "BAD=2; daemon on", "WORD=hello world", "SIZE=64", "LINE=a;\nb", "MODULE=plain_a",
    "EMPTY=", "GLOB=oth*", "ON=on", "SECRET=hunter2", "PRICE=$remote_addr", "COST=5$", NULL };

static void begin_loading(struct loading *loading)
{
    loading_begin(loading);
    loading->options.environment = environment;
}

START_TEST(every_argument_may_have_variables)
{
    const struct server *server;
    struct loading loading;
    struct value text;

    begin_loading(&loading);
    add_module(&loading, "plain_a.so");
    add_file(&loading, "other", "worker_processes ${WORKERS};\n");
    accept_text(&loading,
        MAIN "load_module ${MODULE}.so; include ${FILE}; pid run/${DIR}.pid;"
             " worker_shutdown_timeout ${WAIT:-5s}; events { worker_connections ${SIZE}; }"
             " stream { idle_timeout \"${NONE:-1m 30s}\"; server { listen 127.0.0.1:${PORT};"
             " return \"${WORD}\\n\"; } }",
        "");
    server = STAILQ_FIRST(&loading.cycle->stream.servers);
    ck_assert_int_eq(loading.cycle->core.worker_processes, 3);
    ck_assert_str_eq(strrchr(loading.cycle->core.pid, '/'), "/sub.pid");
    ck_assert_int_eq(loading.cycle->core.worker_shutdown_timeout, 5000);
    ck_assert_int_eq(loading.cycle->events.worker_connections, 64);
    ck_assert_int_eq(server->settings.idle_timeout, 90000);
    ck_assert_str_eq(STAILQ_FIRST(&loading.cycle->stream.listeners.list)->text, "127.0.0.1:7007");
    ck_assert(template_is_constant(*(const struct template *const *)server->protocol_conf, &text));
    ck_assert_str_eq(text.p, "hello world\n");
    ck_assert_str_eq(SLIST_FIRST(&loading.cycle->modules)->protocol->name, "plain_a");

    accept_text(&loading, MAIN "include ${GLOB};" REST, "");
    ck_assert_int_eq(loading.cycle->core.worker_processes, 3);
    loading_end(&loading);
}
END_TEST

START_TEST(without_the_directive_the_text_stays)
{
    static const char *const before[] = { "", "env_substitution off; " };
    struct loading loading;
    char text[256];

    begin_loading(&loading);
    for (size_t i = 0; i < countof(before); i++) {
        snprintf(text, sizeof(text), "%sevents { } env A=${WORD}${NONE}; stream { }", before[i]);
        accept_text(&loading, text, "");
        ck_assert_str_eq(loading.cycle->core.env[0], "A=${WORD}${NONE}");
    }
    loading_end(&loading);
}
END_TEST

START_TEST(it_holds_for_all_of_the_configuration)
{
    struct loading loading;

    begin_loading(&loading);
    add_file(&loading, "other", MAIN "\n");
    refuse_text(&loading, "daemon off; " MAIN REST,
        "\"env_substitution\" must stand before all other directives, and \"daemon\" stands before "
        "it in /main:1:13\n");
    refuse_text(&loading, "include other;" REST,
        "\"env_substitution\" must stand in the main file, not in an included file in "
        "/other:1:1\n");
    /* the command line is a separate text, read first */
    loading.options.globals = "env_substitution on; worker_processes ${WORKERS};";
    accept_text(&loading, "max_generations ${WORKERS};" REST, "");
    ck_assert_int_eq(loading.cycle->core.worker_processes, 3);
    ck_assert_int_eq(loading.cycle->core.max_generations, 3);
    loading.options.globals = "daemon off;";
    accept_text(&loading, MAIN "max_generations ${WORKERS};" REST, "");
    ck_assert_int_eq(loading.cycle->core.max_generations, 3);
    loading_end(&loading);
}
END_TEST

START_TEST(a_value_is_never_syntax)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading, MAIN "worker_processes ${BAD};" REST,
        "invalid value \"2; daemon on\" in \"worker_processes\" directive: expected a number "
        "between 1 and 511, or \"auto\" (from \"${BAD}\") in /main:1:39\n");
    refuse_text(&loading, MAIN "worker_processes ${EMPTY};" REST,
        "invalid value \"\" in \"worker_processes\" directive: expected a number between 1 and "
        "511, or \"auto\" (from \"${EMPTY}\") in /main:1:39\n");
    accept_text(&loading, MAIN "env A=${LINE};" REST, "");
    ck_assert_str_eq(loading.cycle->core.env[0], "A=a;\nb");
    /* a name is no argument */
    refuse_text(&loading, MAIN "${FILE} on;" REST, "unknown directive \"${FILE}\" in /main:1:22\n");
    loading_end(&loading);
}
END_TEST

static const struct template *returned_text(const struct loading *loading)
{
    return *(const struct template *const *)STAILQ_FIRST(&loading->cycle->stream.servers)
                ->protocol_conf;
}

START_TEST(a_value_is_never_a_variable)
{
    static const char *const rows[][2] = {
        { "${PRICE}", "$remote_addr" },
        { "\"${COST} ${PRICE}${COST}\"", "5$ $remote_addr5$" },
        { "$${PRICE}", "${PRICE}" },
        { "${NONE:-a}${COST}", "a5$" },
    };
    struct loading loading;
    struct value text;
    char *conf;

    begin_loading(&loading);
    for (size_t i = 0; i < countof(rows); i++) {
        ck_assert_int_ne(asprintf(&conf,
                             MAIN "events { } stream { server { listen 127.0.0.1:7007; "
                                  "return %s; } }",
                             rows[i][0]),
            -1);
        accept_text(&loading, conf, "");
        free(conf);
        ck_assert(template_is_constant(returned_text(&loading), &text));
        ck_assert_str_eq(text.p, rows[i][1]);
    }
    /* no name goes on in a value */
    accept_text(&loading,
        MAIN "events { } stream { server { listen 127.0.0.1:7007;"
             " return $remote_addr${PRICE}; } }",
        "");
    ck_assert_uint_eq(returned_text(&loading)->part_n, 2);
    ck_assert_str_eq(returned_text(&loading)->parts[0].variable->name, "remote_addr");
    ck_assert_str_eq(returned_text(&loading)->parts[1].text.p, "$remote_addr");
    loading_end(&loading);
}
END_TEST

START_TEST(an_entry_has_a_text_of_its_own)
{
    const struct map_text *a, *b;
    const struct map *map;
    struct loading loading;
    struct value text;

    begin_loading(&loading);
    accept_text(&loading,
        MAIN "events { } stream { map $remote_port $m { a ${PRICE}; b $remote_addr; }"
             " server { listen 127.0.0.1:7007; return $m; } }",
        "");
    map = returned_text(&loading)->parts[0].variable->arg;
    a = &map->texts[map_find(map, "a", 1)];
    b = &map->texts[map_find(map, "b", 1)];
    ck_assert(template_is_constant(a->template, &text));
    ck_assert_str_eq(text.p, "$remote_addr");
    ck_assert(!template_is_constant(b->template, &text));
    loading_end(&loading);
}
END_TEST

START_TEST(all_mistakes_are_told)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading,
        MAIN "\nworker_processes ${NONE};\nworker_cpu_affinity ${A} ${B};\nevents ${C} { }\n"
             "stream { server { listen ${NO_PORT}; echo; } }",
        "the environment variable \"NONE\" is not set: set it, or write a default as in "
        "\"${NONE:-default}\" in /main:2:18\n"
        "the environment variable \"A\" is not set: set it, or write a default as in "
        "\"${A:-default}\" in /main:3:21\n"
        "the environment variable \"B\" is not set: set it, or write a default as in "
        "\"${B:-default}\" in /main:3:26\n"
        "invalid number of arguments in \"events\" directive: expected 0, found 1 in /main:4:8\n"
        "the environment variable \"NO_PORT\" is not set: set it, or write a default as in "
        "\"${NO_PORT:-default}\" in /main:5:26\n");
    /* a value is shown where it is the mistake, and nowhere else */
    refuse_text(&loading, MAIN "env A=${SECRET}; max_generations ${ON};" REST,
        "invalid value \"on\" in \"max_generations\" directive: expected a number (from "
        "\"${ON}\") in /main:1:55\n");
    loading_end(&loading);
}
END_TEST

START_TEST(the_way_to_the_master_may_have_variables)
{
    struct loading loading;

    begin_loading(&loading);
    loading.options.only_pid = true;
    accept_text(&loading,
        MAIN "worker_processes ${NONE}; pid ${DIR}/a.pid; control unix:${DIR}/a.sock; events {",
        "");
    ck_assert_str_eq(strrchr(loading.cycle->core.pid, '/') - 4, "/sub/a.pid");
    ck_assert_str_eq(strrchr(loading.cycle->core.control.path, '/') - 4, "/sub/a.sock");
    refuse_text(&loading, MAIN "pid ${NONE};",
        "the environment variable \"NONE\" is not set: set it, or write a default as in "
        "\"${NONE:-default}\" in /main:1:26\n");
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_argument_may_have_variables);
    tcase_add_test(tcase, without_the_directive_the_text_stays);
    tcase_add_test(tcase, it_holds_for_all_of_the_configuration);
    tcase_add_test(tcase, a_value_is_never_syntax);
    tcase_add_test(tcase, a_value_is_never_a_variable);
    tcase_add_test(tcase, an_entry_has_a_text_of_its_own);
    tcase_add_test(tcase, all_mistakes_are_told);
    tcase_add_test(tcase, the_way_to_the_master_may_have_variables);
}

TEST_MAIN("substitution", add_tests)
