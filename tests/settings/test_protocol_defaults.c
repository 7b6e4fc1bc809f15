/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes of a module visible in its configuration: defaults refused by its own directives,
 * reported with module and directive, because no file has the words, and a map impossible for any
 * daemon. */
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

struct values {
    const char *text;
    int64_t number;
    const void *pointer;
};

/* 200 terabytes, although the memory itself would be taken as it is used. */
static const fb_map_options map_options = {
    .size = sizeof(map_options),
    .name = "keys",
    .version = 1,
    .capacity = 200000000,
    .key_max = 250,
    .value_max = 1 << 20,
    .memory = 1 << 28,
};

static int set_own(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)value;
    (void)n;
    if (strcmp(args[0], "map") == 0)
        return fb_conf_map(conf, &map_options) != NULL ? 0 : -1;
    if (strcmp(args[0], "13") == 0)
        return fb_conf_errorf(conf, "own_value", "13 is unlucky");
    return strcmp(args[0], "14") == 0 ? -1 : 0;
}

static const char *const modes[] = { "fast", "lazy", NULL };

#define AT(member) .name = "own_value", .offset = offsetof(struct values, member)
#define OWN_KIND                                                                                   \
    .value = FB_VALUE_CUSTOM, .room = sizeof(int64_t), .set = set_own, .args_least = 1,            \
    .args_most = 2

static const struct {
    fb_directive directive;
    const char *wrong;
} cases[] = {
    { { AT(number), .value = FB_VALUE_NUMBER, .least = 1, .greatest = 10, .initial = "20" },
        "invalid value \"20\" in \"own_value\" directive: the value must be between 1 and 10" },
    { { AT(number), .value = FB_VALUE_NUMBER, .least = 1, .greatest = 10, .initial = "" },
        "invalid value \"\" in \"own_value\" directive: expected a number" },
    { { AT(number), .value = FB_VALUE_SIZE, .greatest = 4096, .initial = "1m" },
        "invalid value \"1m\" in \"own_value\" directive: the value must be between 0 and 4096" },
    { { AT(number), .value = FB_VALUE_MSEC, .initial = "soon" },
        "invalid value \"soon\" in \"own_value\" directive: expected a time such as 500ms, 30s or "
        "1h 30m" },
    { { AT(number), .value = FB_VALUE_FLAG, .initial = "yes" },
        "invalid value \"yes\" in \"own_value\" directive: expected \"on\" or \"off\"" },
    { { AT(number), .value = FB_VALUE_NAME, .names = modes, .initial = "slow" },
        "invalid value \"slow\" in \"own_value\" directive: expected \"fast\" or \"lazy\"" },
    { { AT(pointer), .value = FB_VALUE_TARGET, .initial = "127.0.0.1" },
        "invalid value \"127.0.0.1\" in \"own_value\" directive: expected a port" },
    { { AT(pointer), .value = FB_VALUE_TEMPLATE, .initial = "${" },
        "invalid variable name in \"${\": expected letters, digits or \"_\" after \"$\"" },
    { { AT(number), OWN_KIND, .initial = "1 2 3" },
        "invalid number of arguments in \"own_value\" directive: expected 1 to 2, found 3 in its "
        "default:1:15" },
    { { AT(number), OWN_KIND, .initial = "13" }, "13 is unlucky" },
    { { AT(number), OWN_KIND, .initial = "14" },
        "invalid \"own_value\" directive: protocol \"own\" refuses it without a message in its "
        "default:1:1" },
};

static fb_directive directives[2] = {
    { .name = "own", .value = FB_VALUE_STRING, .flags = FB_DIRECTIVE_HANDLER },
};
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol own = {
    FB_PROTOCOL_HEADER,
    .name = "own",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct values),
    .ops = &ops,
};
static const fb_protocol *const protocols[] = { &own, NULL };

START_TEST(a_wrong_default_is_told_with_its_module_and_directive)
{
    static const char begin[] = "module \"own\" has a wrong default of \"own_value\": ";
    const fb_directive *directive = &cases[_i].directive;
    struct loading loading;
    char expected[512];

    directives[1] = *directive;
    loading_begin(&loading);
    loading.options.protocols = protocols;
    load(&loading, "events { } stream { server { listen 1; own a; } server { listen 2; own b; } }");
    ck_assert_ptr_null(loading.cycle);
    snprintf(expected, sizeof(expected), "%s%s", begin, cases[_i].wrong);
    ck_assert_msg(strncmp(loading.report, expected, strlen(expected)) == 0, "%s", loading.report);
    loading_end(&loading);
}
END_TEST

/* Written values are not the module's mistake, nor does the default count then. */
START_TEST(a_written_value_has_its_own_place)
{
    struct loading loading;

    directives[1] = cases[0].directive;
    loading_begin(&loading);
    loading.options.protocols = protocols;
    refuse_text(&loading,
        "events { } stream { own_value 5; server { listen 1; own a; own_value 30; } }",
        "invalid value \"30\" in \"own_value\" directive: the value must be between 1 and 10 in "
        "/main:1:70\n");
    accept_text(&loading, "events { } stream { own_value 5; server { listen 1; own a; } }", "");
    loading_end(&loading);
}
END_TEST

START_TEST(a_map_that_no_daemon_could_make_is_refused)
{
    struct loading loading;

    directives[1] = (fb_directive) { AT(number), OWN_KIND };
    loading_begin(&loading);
    loading.options.protocols = protocols;
    refuse_text(&loading, "events { } stream { server { listen 1; own a; own_value map; } }",
        "map \"own.keys\" cannot be declared: with all zones a process has too few addresses: the "
        "map needs fewer or shorter entries in /main:1:47\n");
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, a_wrong_default_is_told_with_its_module_and_directive, 0, (int)countof(cases));
    tcase_add_test(tcase, a_written_value_has_its_own_place);
    tcase_add_test(tcase, a_map_that_no_daemon_could_make_is_refused);
}

TEST_MAIN("defaults of protocols", add_tests)
