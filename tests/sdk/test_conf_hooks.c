/* SPDX-License-Identifier: BSD-2-Clause */
/* conf_accepted and conf_gone in the test kit, with a single process as its worker: around all work
 * of the worker, and never in a descriptor older than the two. */
#include "sdk/scripted_conn.h"

#include <string.h>

struct conf {
    int64_t number;
};

static char order[16]; /* a letter for each callback */

static void note(char what)
{
    ck_assert_uint_lt(strlen(order), sizeof(order) - 1);
    order[strlen(order)] = what;
}

static void note_accepted(fb_master *master, const void *own)
{
    const struct conf *conf = own;

    ck_assert_int_eq(conf->number, 7);
    fb_master_logf(master, FB_LOG_NOTICE, "number %d", (int)conf->number);
    note('a');
}

static void note_gone(fb_master *master, const void *own)
{
    const struct conf *conf = own;

    ck_assert_int_eq(conf->number, 7);
    fb_master_logf(master, FB_LOG_DEBUG, "no more");
    note('g');
}

static int note_opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    note('o');
    return 0;
}

static void note_stopped(fb_worker *worker, void *state)
{
    (void)worker;
    (void)state;
    note('s');
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = note_opened };

static const fb_directive directives[] = {
    { .name = "hooked",
        .value = FB_VALUE_NUMBER,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct conf, number) },
};

#define HOOKED                                                                                     \
    .abi = FB_ABI, .api = FB_API, .directive_size = sizeof(fb_directive), .name = "hooked",        \
    FB_PROTOCOL_DIRECTIVES(directives), .conf_state = sizeof(struct conf), .ops = &ops,            \
    .worker_stop = note_stopped, .conf_accepted = note_accepted, .conf_gone = note_gone

static const fb_protocol hooked = { HOOKED, .size = sizeof(fb_protocol) };
static const fb_protocol hooked_old = { HOOKED, .size = offsetof(fb_protocol, conf_accepted) };

static fb_test *start_hooked(const fb_protocol *protocol)
{
    const fb_test_options options = { .size = sizeof(options), .server = "hooked 7;" };
    fb_test *test = fb_test_start_with(protocol, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

START_TEST(they_enclose_the_worker)
{
    fb_test *test = start_hooked(&hooked);

    ck_assert_str_eq(order, "a");
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "number 7"));
    fb_test_connect(test);
    fb_test_run(test);
    scripted_finish(&test);
    ck_assert_str_eq(order, "aosg");
}
END_TEST

START_TEST(an_older_descriptor_has_none)
{
    fb_test *test = start_hooked(&hooked_old);

    fb_test_connect(test);
    fb_test_run(test);
    scripted_finish(&test);
    ck_assert_str_eq(order, "os");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, they_enclose_the_worker);
    tcase_add_test(tcase, an_older_descriptor_has_none);
}

TEST_MAIN("sdk_conf_hooks", add_tests)
