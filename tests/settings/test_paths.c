/* SPDX-License-Identifier: BSD-2-Clause */
/* Relative paths, of every directive with a path: from the prefix, or from the directory of the
 * main file without a prefix. Files of the configuration always start from the main file's
 * directory, and nothing from the current directory. */
#include "net/address.h"
#include "net/address_parse.h"
#include "settings/loading.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct values {
    const char *reads, *writes, *plain;
    const fb_target *target, *made;
};

static int make_target(fb_conf *conf, void *own, const void *parent)
{
    struct values *values = own;

    (void)parent;
    values->made = fb_conf_target(conf, NULL, "unix:run/made.sock");
    return values->made == NULL ? -1 : 0;
}

#define AT(member) .offset = offsetof(struct values, member)

static const fb_directive directives[] = {
    { .name = "paths", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "paths_reads",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_READS,
        .initial = "",
        AT(reads) },
    { .name = "paths_writes",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_WRITES,
        .initial = "spool",
        AT(writes) },
    { .name = "paths_plain", .value = FB_VALUE_STRING, AT(plain) },
    { .name = "paths_target", .value = FB_VALUE_TARGET, AT(target) },
};

static const fb_protocol paths = {
    .abi = FB_ABI,
    .api = FB_API,
    .size = sizeof(fb_protocol),
    .name = "paths",
    .directives = directives,
    .directive_n = countof(directives),
    .conf_state = sizeof(struct values),
    .conf_done = make_target,
};

static const fb_protocol *const protocols[] = { &paths, NULL };

#define CONFIGURATION                                                                              \
    "pid logs/a.pid; control unix:run/a.sock; error_log logs/a.log; working_directory work;"       \
    "error_log syslog:server=unix:run/log; include parts/*.part; events {} stream { server {"      \
    " listen unix:run/listen.sock; listen UNIX:run/upper.sock; listen unix:/run/absolute.sock;"    \
    " paths; paths_plain plain; paths_target unix:run/target.sock; } }"

/* The text after the prefix; in expectations the prefix's name replaces it. */
static const char *below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    ck_assert_msg(strncmp(path, prefix, n) == 0 && path[n] == '/', "it is %s", path);
    return path + n + 1;
}

static void check_address(const struct address *address, const char *prefix, const char *name)
{
    char text[ADDRESS_TEXT];

    address_format(address, true, text);
    ck_assert_int_eq(strncmp(text, "unix:", 5), 0);
    ck_assert_str_eq(below(text + 5, prefix), name);
}

static void check_cycle(const struct cycle *cycle, const char *prefix)
{
    const struct core_settings *core = &cycle->core;
    const struct server *server = STAILQ_FIRST(&cycle->stream.servers);
    const struct values *values = server->protocol_conf;
    const struct listener *listener = STAILQ_FIRST(&cycle->stream.listeners.list);

    ck_assert_str_eq(below(core->pid, prefix), "logs/a.pid");
    ck_assert_str_eq(below(core->control.path, prefix), "run/a.sock");
    ck_assert_str_eq(below(core->working_directory, prefix), "work");
    ck_assert_uint_eq(core->log_n, 2);
    ck_assert_str_eq(below(core->logs[0].path, prefix), "logs/a.log");
    ck_assert_str_eq(below(core->logs[1].syslog->name + 5, prefix), "run/log");
    ck_assert_int_eq(core->worker_processes, 3);

    check_address(&listener->address, prefix, "run/listen.sock");
    check_address(&STAILQ_NEXT(listener, link)->address, prefix, "run/upper.sock");
    listener = STAILQ_NEXT(STAILQ_NEXT(listener, link), link);
    check_address(&listener->address, "/run", "absolute.sock");

    ck_assert_str_eq(values->reads, "");
    ck_assert_str_eq(below(values->writes, prefix), "spool");
    ck_assert_str_eq(values->plain, "plain");
    check_address(&values->target->address, prefix, "run/target.sock");
    check_address(&values->made->address, prefix, "run/made.sock");
}

START_TEST(relative_paths)
{
    const char *prefix = _i == 0 ? NULL : "/the/prefix";
    struct loading loading;
    char parts[64];

    loading_begin(&loading);
    loading.options.protocols = protocols;
    loading.options.prefix = prefix;
    snprintf(parts, sizeof(parts), "%s/parts", loading.directory);
    ck_assert_int_eq(mkdir(parts, 0755), 0);
    add_file(&loading, "parts/a.part", "worker_processes 3;");
    accept_text(&loading, CONFIGURATION, "");
    check_cycle(loading.cycle, prefix == NULL ? loading.directory : prefix);
    loading_end(&loading);
}
END_TEST

/* Two listening sockets of the daemon. */
START_TEST(control_sockets_have_two_paths)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, "control unix:/a; control_read unix:/a; events {}",
        "\"control_read\" has the path \"/a\", already the path of \"control\" in /main:1 in "
        "/main:1:31\n");
    accept_text(&loading, "control unix:/a; control_read unix:/b; events {}", "");
    accept_text(&loading, "control off; control_read unix:/b; events {}", "");
    ck_assert_ptr_null(loading.cycle->core.control.path);
    ck_assert_str_eq(loading.cycle->core.control_read.path, "/b");
    loading_end(&loading);
}
END_TEST

/* The whole path counts, and is shown. */
START_TEST(too_long_a_path)
{
    static const char prefix[] = "/a/prefix/of/sixty/bytes/is/no/room/for/a/name/of/fifty/more";
    struct loading loading;

    loading_begin(&loading);
    loading.options.prefix = prefix;
    refuse_text(&loading,
        "events {} stream { server { echo;"
        " listen unix:a/name/of/fifty/more/bytes/that/is/too/long/after/it; } }",
        "invalid value \"unix:a/name/of/fifty/more/bytes/that/is/too/long/after/it\" in \"listen\""
        " directive: too long path of the unix domain socket, at most 107 bytes: "
        "\"unix:/a/prefix/of/"
        "sixty/bytes/is/no/room/for/a/name/of/fifty/more/a/name/of/fifty/more/bytes/that/is/too/"
        "long/after/it\" in /main:1:42\n");
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, relative_paths, 0, 2);
    tcase_add_test(tcase, control_sockets_have_two_paths);
    tcase_add_test(tcase, too_long_a_path);
}

TEST_MAIN("paths", add_tests)
