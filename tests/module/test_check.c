/* SPDX-License-Identifier: BSD-2-Clause */
/* Refused descriptors, and descriptors of other versions. */
#include "module/module.h"
#include "support/test.h"

#include "base/compiler.h"
#include "protocols/table.h"

#include <stdbool.h>
#include <string.h>

#define DIRECTIVES_MAX 4

/* A correct protocol; the cases spoil a part. */
struct part {
    fb_protocol protocol;
    fb_ops ops;
    fb_directive directives[DIRECTIVES_MAX];
    fb_metric metrics[2];
    fb_variable_definition variables[2];
};

static int opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 0;
}

static void closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    (void)state;
    (void)reason;
}

static int set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)args;
    (void)n;
    return 0;
}

static int value(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    (void)conn;
    (void)state;
    (void)variable;
    (void)out;
    return 1;
}

static const char *const words[] = { "one", "two", NULL };

static void begin_descriptor(struct part *p)
{
    *p = (struct part) {
        .protocol = { FB_PROTOCOL_HEADER,
            .name = "part",
            .directives = p->directives,
            .directive_n = DIRECTIVES_MAX,
            .conf_state = 24,
            .metric_n = 2,
            .metrics = p->metrics,
            .ops = &p->ops,
            .variables = p->variables,
            .variable_n = 2,
            .variable_size = sizeof(fb_variable_definition) },
        .ops = { .size = sizeof(fb_ops), .opened = opened },
        .directives = {
            { .name = "part", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
            { .name = "part_number", .value = FB_VALUE_NUMBER, .least = -1, .greatest = 1 },
            { .name = "part_name", .value = FB_VALUE_NAME, .offset = 8, .names = words },
            { .name = "part_own",
                .value = FB_VALUE_CUSTOM,
                .offset = 17, /* left to the protocol */
                .room = 7,
                .set = set,
                .args_most = UINT32_MAX },
        },
        .metrics = { { "a", FB_COUNTER, 0 }, { "b", FB_GAUGE, 0 } },
        .variables = { { .name = "part_a" }, { .name = "part_b", .value = value } },
    };
}

#define SPOIL(name, statement)                                                                     \
    static void name(struct part *p)                                                               \
    {                                                                                              \
        statement;                                                                                 \
    }
static const fb_worker_ops no_worker_ops, endless_ops = { .size = SIZE_MAX },
                                          first_ops = { .size = offsetof(fb_worker_ops, draining) };

SPOIL(nothing, (void)p)
SPOIL(more_api, p->protocol.api = 9)
SPOIL(other_abi, (p->protocol.abi = 2, p->protocol.name = NULL))
SPOIL(no_abi, p->protocol.abi = 0)
SPOIL(short_protocol, p->protocol.size = offsetof(fb_protocol, worker_stop))
SPOIL(endless_protocol, p->protocol.size = UINT32_MAX)
SPOIL(short_directive, p->protocol.directive_size = offsetof(fb_directive, args_least))
SPOIL(endless_directive, p->protocol.directive_size = 70000)
SPOIL(no_name, p->protocol.name = NULL)
SPOIL(empty_name, p->protocol.name = "")
SPOIL(bad_name, p->protocol.name = "a-b")
SPOIL(long_name, p->protocol.name = "a123456789b123456789c123456789d1")
SPOIL(longest_name,
    (p->protocol.name = "a123456789b123456789c123456789d", p->protocol.variable_n = 0))
SPOIL(no_ops, p->protocol.ops = NULL)
SPOIL(short_ops, p->ops.size = 0)
SPOIL(no_callbacks, p->ops.opened = NULL)
SPOIL(last_callback, (p->ops.opened = NULL, p->ops.closed = closed))
SPOIL(great_state, p->protocol.conn_state = UINT32_MAX)
SPOIL(no_directives, p->protocol.directives = NULL)
SPOIL(many_directives, p->protocol.directive_n = 1001)
SPOIL(nameless_directive, p->directives[2].name = NULL)
SPOIL(bad_directive, p->directives[2].name = "part name")
SPOIL(same_directive, p->directives[2].name = "part_number")
SPOIL(unknown_value, p->directives[1].value = FB_VALUE_TLS + 1)
SPOIL(unknown_flag, p->directives[1].flags = 16)
SPOIL(lone_flag, p->directives[1].flags = FB_DIRECTIVE_REPLACED)
SPOIL(replaced_path, (p->directives[1].value = FB_VALUE_STRING,
                         p->directives[1].flags = FB_DIRECTIVE_READS | FB_DIRECTIVE_REPLACED))
SPOIL(number_path, p->directives[1].flags = FB_DIRECTIVE_READS)
SPOIL(
    path, (p->directives[1].value = FB_VALUE_STRING, p->directives[1].flags = FB_DIRECTIVE_WRITES))
SPOIL(every_need, p->protocol.needs = FB_NEEDS_TLS * 2 - 1)
SPOIL(unknown_need, p->protocol.needs = FB_NEEDS_TLS * 2)
SPOIL(old_api, (p->protocol.api = 1, p->protocol.size = offsetof(fb_protocol, needs),
                   p->protocol.needs = UINT64_MAX))
SPOIL(worker_ops, p->protocol.worker_ops = &first_ops)
SPOIL(short_worker_ops, p->protocol.worker_ops = &no_worker_ops)
SPOIL(endless_worker_ops, p->protocol.worker_ops = &endless_ops)
SPOIL(no_handler, p->directives[0].flags = 0)
SPOIL(two_handlers, p->directives[2].flags = FB_DIRECTIVE_HANDLER)
SPOIL(crossed_range, (p->directives[1].least = 5, p->directives[1].greatest = 4))
SPOIL(half_a_range, (p->directives[1].least = 1, p->directives[1].greatest = 0))
SPOIL(no_names, p->directives[2].names = NULL)
SPOIL(empty_names, p->directives[2].names = words + 2)
SPOIL(no_set, p->directives[3].set = NULL)
SPOIL(crossed_arguments, (p->directives[3].args_least = 3, p->directives[3].args_most = 2))
SPOIL(outside, p->directives[2].offset = 24)
SPOIL(far_outside, p->directives[2].offset = UINT32_MAX - 3)
SPOIL(own_outside, p->directives[3].room = 8)
SPOIL(odd, p->directives[2].offset = 4)
SPOIL(no_metrics, p->protocol.metrics = NULL)
SPOIL(many_metrics, p->protocol.metric_n = 65537)
SPOIL(nameless_metric, p->metrics[1].name = NULL)
SPOIL(bad_metric, p->metrics[1].name = "b.c")
SPOIL(same_metric, p->metrics[1].name = "a")
SPOIL(unknown_metric, p->metrics[1].kind = 2)
SPOIL(no_variables, p->protocol.variables = NULL)
SPOIL(many_variables, p->protocol.variable_n = 1001)
SPOIL(short_variable, p->protocol.variable_size = offsetof(fb_variable_definition, value))
SPOIL(endless_variable, p->protocol.variable_size = 65537)
SPOIL(nameless_variable, p->variables[1].name = NULL)
SPOIL(others_variable, p->variables[1].name = "party_b")
SPOIL(bare_variable, p->variables[1].name = "part_")
SPOIL(bad_variable, p->variables[1].name = "part_b.c")
SPOIL(same_variable, p->variables[1].name = "part_a")
SPOIL(volatile_variable, p->variables[1].flags = FB_VARIABLE_VOLATILE)
SPOIL(unknown_variable, p->variables[1].flags = 2)
SPOIL(settable_variable, p->variables[0].flags = FB_VARIABLE_VOLATILE)

static const struct {
    void (*spoil)(struct part *p);
    const char *wrong; /* how it begins; NULL: nothing is */
} cases[] = {
    { nothing, NULL },
    { more_api, NULL },
    { other_abi, "was built for ABI 2, this forkbeard has ABI 1: build it again with" },
    { no_abi, "was built for ABI 0, " },
    { short_protocol, "gives fb_protocol an impossible size, 88 bytes: begin with FB_" },
    { endless_protocol, "gives fb_protocol an impossible size, 4294967295 bytes" },
    { short_directive, "gives fb_directive an impossible size, 64 bytes" },
    { endless_directive, "gives fb_directive an impossible size, 70000 bytes" },
    { no_name, "has no protocol name: set \"name\"" },
    { empty_name, "has the protocol name \"\": use 1 to 31 letters, digits and \"_\"" },
    { bad_name, "has the protocol name \"a-b\": use " },
    { long_name, "has the protocol name \"a123456789b123456789c123456789d1\": use " },
    { longest_name, NULL },
    { no_ops, "has no callbacks: \"ops\" is NULL" },
    { short_ops, "gives fb_ops an impossible size, 0 bytes: begin with .size = sizeof" },
    { no_callbacks, "has no callbacks: set at least one callback" },
    { last_callback, NULL },
    { no_directives, "has an impossible number of directives, 4: use FB_PROTOCOL_DIRECTIVES()" },
    { many_directives, "has an impossible number of directives, 1001" },
    { nameless_directive, "has a directive without a name, number 2" },
    { bad_directive, "has a directive \"part name\": use 1 to 31 letters" },
    { same_directive, "has the directive \"part_number\" twice" },
    { unknown_value, "has a directive \"part_number\" of a kind that is not known (value 11, flags "
                     "0): is it built for a newer forkbeard?" },
    { number_path, "has a directive \"part_number\" with a path that is not its value: FB_DIR" },
    { path, NULL },
    { every_need, NULL },
    { great_state, "wants 4294967295 bytes of conn_state for a connection, and 16777216 are the "
                   "most: take large buffers from fb_alloc()" },
    { unknown_need, "has unknown needs (needs 0x1000): is it built for a newer forkbeard?" },
    { old_api, NULL },
    { worker_ops, NULL },
    { short_worker_ops, "gives fb_worker_ops an impossible size, 0 bytes: begin with" },
    { endless_worker_ops, "gives fb_worker_ops an impossible size, 18446744073709551615 bytes" },
    { unknown_flag, "has a directive \"part_number\" of a kind that is not known (value 2, flags "
                    "0x10)" },
    { lone_flag, "has a directive \"part_number\" with FB_DIRECTIVE_REPLACED, and neither FB_DIR" },
    { replaced_path, NULL },
    { no_handler, "has no handler directive: FB_DIRECTIVE_HANDLER is for the directive" },
    { two_handlers, "has more than one handler directive, \"part\" and \"part_name\": " },
    { crossed_range, "has a directive \"part_number\" without a possible value: the least, 5, is "
                     "above the greatest, 4" },
    { half_a_range, "has a directive \"part_number\" without a possible value" },
    { no_names, "has a directive \"part_name\" of names without any: set \"names\"" },
    { empty_names, "has a directive \"part_name\" of names without any" },
    { no_set, "has a directive \"part_own\" of FB_VALUE_CUSTOM without \"set\"" },
    { crossed_arguments, "has a directive \"part_own\" with at least 3 and at most 2 arguments" },
    { outside, "has the value of \"part_name\" outside of conf_state: 8 bytes at 24 of 24" },
    { far_outside, "has the value of \"part_name\" outside of conf_state" },
    { own_outside, "has the value of \"part_own\" outside of conf_state: 8 bytes at 17 of 24" },
    { odd, "has the value of \"part_name\" at an odd place: offset 4" },
    { no_metrics, "has an impossible number of metrics, 2: use FB_PROTOCOL_METRICS()" },
    { many_metrics, "has an impossible number of metrics, 65537" },
    { nameless_metric, "has a metric without a proper name, number 1" },
    { bad_metric, "has a metric without a proper name, number 1" },
    { same_metric, "has the metric \"a\" twice" },
    { unknown_metric, "has a metric \"b\" of a kind that is not known (2)" },
    { no_variables, "has an impossible table, 2 variables of 24 bytes: use FB_PROTOCOL_VAR" },
    { many_variables, "has an impossible table, 1001 variables of 24 bytes" },
    { short_variable, "has an impossible table, 2 variables of 16 bytes" },
    { endless_variable, "has an impossible table, 2 variables of 65537 bytes" },
    { nameless_variable, "has a variable without a name, number 1" },
    { others_variable,
        "has a variable \"party_b\": the name is \"part_\", and 1 to 31 letters, dig" },
    { bare_variable, "has a variable \"part_\": the name is \"part_\", and " },
    { bad_variable, "has a variable \"part_b.c\": the name is \"part_\", and " },
    { same_variable, "has the variable \"part_a\" twice" },
    { volatile_variable, NULL },
    { unknown_variable, "has a variable \"part_b\" with unknown flags (0x2)" },
    { settable_variable,
        "has a variable \"part_a\" without \"value\": FB_VARIABLE_VOLATILE needs a \"value\"" },
};

START_TEST(a_descriptor_is_checked)
{
    char text[MODULE_TEXT];
    const char *wrong;
    struct part part;

    begin_descriptor(&part);
    cases[_i].spoil(&part);
    wrong = module_check(&part.protocol, text);
    if (cases[_i].wrong == NULL) {
        ck_assert_msg(wrong == NULL, "%s", wrong);
        return;
    }
    ck_assert_ptr_eq(wrong, text);
    ck_assert_msg(
        strncmp(text, cases[_i].wrong, strlen(cases[_i].wrong)) == 0, "it says: %s", text);
    ck_assert_ptr_null(strchr(text, '\n'));
}
END_TEST

START_TEST(what_is_built_in_passes)
{
    char text[MODULE_TEXT];
    unsigned n = 0;

    for (; protocols_builtin[n] != NULL; n++) {
        const char *wrong = module_check(protocols_builtin[n], text);

        ck_assert_msg(wrong == NULL, "\"%s\" %s", protocols_builtin[n]->name, wrong);
    }
    ck_assert_uint_ge(n, 5);
}
END_TEST

/* Fields that a later version may append. */
struct later_protocol {
    fb_protocol base;
    void *more[4];
};
struct later_directive {
    fb_directive base;
    void *more;
};
struct later_variable {
    fb_variable_definition base;
    void *more;
};
struct later_ops {
    fb_ops base;
    void *more[2];
};
struct later_worker_ops {
    fb_worker_ops base;
    void *more[2];
};

static void timer_of_worker(fb_worker *worker, void *state, uint32_t id)
{
    (void)worker;
    (void)state;
    (void)id;
}

START_TEST(a_later_versions_structs_are_cut)
{
    struct later_directive directives[] = {
        { .base = { .name = "later", .flags = FB_DIRECTIVE_HANDLER }, .more = &directives },
        { .base = { .name = "later_two", .value = FB_VALUE_FLAG, .offset = 8 } },
    };
    struct later_variable variables[] = {
        { .base = { .name = "later_a" }, .more = &variables },
        { .base = { .name = "later_b", .value = value } },
    };
    struct later_ops ops = { .base = { .size = sizeof(ops), .opened = opened } };
    struct later_worker_ops worker_ops = { .base = { .size = sizeof(worker_ops),
                                               .timer = timer_of_worker } };
    struct later_protocol later = {
        .base = { FB_PROTOCOL_HEADER, .name = "later", .directives = &directives[0].base,
            .directive_n = 2, .conf_state = 16, .ops = &ops.base, .worker_ops = &worker_ops.base,
            .variables = &variables[0].base, .variable_n = 2,
            .variable_size = sizeof(variables[0]) },
    };
    struct arena *arena = arena_create();
    const fb_protocol *copy;
    char text[MODULE_TEXT];

    later.base.size = sizeof(later);
    later.base.directive_size = sizeof(directives[0]);
    ck_assert_ptr_null(module_check(&later.base, text));
    copy = module_copy(arena, &later.base);
    ck_assert_ptr_nonnull(copy);
    ck_assert_uint_eq(copy->size, sizeof(fb_protocol));
    ck_assert_uint_eq(copy->directive_size, sizeof(fb_directive));
    ck_assert_uint_eq(copy->ops->size, sizeof(fb_ops));
    ck_assert_str_eq(copy->directives[1].name, "later_two");
    ck_assert_uint_eq(copy->directives[1].offset, 8);
    ck_assert_ptr_eq(copy->ops->opened, opened);
    ck_assert_ptr_ne(copy->ops, &ops.base);
    ck_assert_uint_eq(copy->worker_ops->size, sizeof(fb_worker_ops));
    ck_assert_ptr_eq(copy->worker_ops->timer, timer_of_worker);
    ck_assert_ptr_ne(copy->worker_ops, &worker_ops.base);
    ck_assert_ptr_ne(copy->directives, &directives[0].base);
    ck_assert_uint_eq(copy->variable_size, sizeof(fb_variable_definition));
    ck_assert_str_eq(copy->variables[1].name, "later_b");
    ck_assert_ptr_eq(copy->variables[1].value, value);
    arena_destroy(&arena);
}
END_TEST

/* A protocol of the first version: memory behind the given sizes must not be read, as watched by
 * the sanitizer. */
START_TEST(no_more_is_read_than_there_is)
{
    struct arena *arena = arena_create();
    fb_directive *directives = malloc(sizeof(*directives));
    fb_protocol whole = { FB_PROTOCOL_HEADER, .name = "tight", .directive_n = 1 };
    fb_protocol *protocol = malloc(offsetof(fb_protocol, needs));
    const fb_ops whole_ops = { .size = offsetof(fb_ops, unwritable), .opened = opened };
    fb_ops *ops = malloc(whole_ops.size);
    char text[MODULE_TEXT];
    const fb_protocol *copy;

    ck_assert(directives != NULL && protocol != NULL && ops != NULL);
    *directives = (fb_directive) { .name = "tight", .flags = FB_DIRECTIVE_HANDLER };
    memcpy(ops, &whole_ops, whole_ops.size);
    whole.api = 1;
    whole.size = offsetof(fb_protocol, needs);
    whole.directives = directives;
    whole.ops = ops;
    memcpy(protocol, &whole, offsetof(fb_protocol, needs));
    ck_assert_ptr_null(module_check(protocol, text));
    copy = module_copy(arena, protocol);
    ck_assert_ptr_nonnull(copy);
    free(directives);
    free(protocol);
    free(ops);
    ck_assert_str_eq(copy->directives[0].name, "tight");
    ck_assert_ptr_eq(copy->ops->opened, opened);
    ck_assert_uint_eq(copy->needs, 0);
    ck_assert_ptr_null(copy->writes);
    ck_assert(copy->conf_accepted == NULL && copy->conf_gone == NULL);
    ck_assert_uint_eq(copy->variable_n, 0);
    ck_assert_uint_eq(copy->output_limit, UINT64_MAX); /* no limit, as before there was one */
    ck_assert_ptr_null(copy->ops->unwritable);
    ck_assert_ptr_null(copy->worker_ops);
    arena_destroy(&arena);
}
END_TEST

/* A short table of worker callbacks, ending with its first: the rest is not read. */
START_TEST(a_short_table_of_the_worker_is_filled_up)
{
    struct arena *arena = arena_create();
    const fb_worker_ops whole = { .size = offsetof(fb_worker_ops, draining),
        .timer = timer_of_worker };
    fb_worker_ops *short_ops = malloc(offsetof(fb_worker_ops, draining));
    struct part part;
    char text[MODULE_TEXT];
    const fb_protocol *copy;

    ck_assert_ptr_nonnull(short_ops);
    memcpy(short_ops, &whole, offsetof(fb_worker_ops, draining));
    begin_descriptor(&part);
    part.protocol.worker_ops = short_ops;
    ck_assert_ptr_null(module_check(&part.protocol, text));
    copy = module_copy(arena, &part.protocol);
    ck_assert_ptr_nonnull(copy);
    free(short_ops);
    ck_assert_ptr_eq(copy->worker_ops->timer, timer_of_worker);
    ck_assert_ptr_null(copy->worker_ops->draining);
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_descriptor_is_checked, 0, countof(cases));
    tcase_add_test(tcase, what_is_built_in_passes);
    tcase_add_test(tcase, a_later_versions_structs_are_cut);
    tcase_add_test(tcase, no_more_is_read_than_there_is);
    tcase_add_test(tcase, a_short_table_of_the_worker_is_filled_up);
}

TEST_MAIN("check", add_tests)
