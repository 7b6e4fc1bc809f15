/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_run_in(): pools of threads by name, which a protocol finds when the configuration is read. */
#include "kit/printed.h"
#include "sdk/scripted_conn.h"
#include "support/wait.h"

#include <stdatomic.h>
#include <string.h>

struct conf {
    const char *name;
    const fb_pool *pool;
};

static const struct conf *found; /* the server's, of the last configuration */

static int finish_conf(fb_conf *conf, void *arg, const void *parent)
{
    struct conf *own = arg;

    (void)parent;
    own->pool = own->name != NULL ? fb_conf_pool(conf, "pooled_pool", own->name) : NULL;
    found = own;
    return own->name != NULL && own->pool == NULL ? -1 : 0;
}

static int accept_all(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 0;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = accept_all };

static const fb_directive directives[] = {
    { .name = "pooled", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "pooled_pool", .value = FB_VALUE_STRING, .offset = offsetof(struct conf, name) },
};

static const fb_protocol pooled = {
    FB_PROTOCOL_HEADER,
    .name = "pooled",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    .ops = &ops,
    .conf_done = finish_conf,
};

static fb_test *start_pooled(const char *pools, const char *server)
{
    const fb_test_options options = { .size = sizeof(options), .server = server, .main = pools };

    return fb_test_start_with(&pooled, &options);
}

static atomic_int going;
static atomic_bool gate; /* lock at which slow jobs wait */
static unsigned slow_n, quick_n;

static void work_slowly(void *job)
{
    (void)job;
    atomic_fetch_add(&going, 1);
    WAIT_FOR(atomic_load(&gate));
}

static void work_quickly(void *job)
{
    (void)job;
    atomic_store(&gate, true); /* the slow one waits for it */
}

static void count_done(fb_worker *worker, void *job)
{
    (void)worker;
    ++*(*(unsigned **)job);
}

static int run_in(fb_test *test, const fb_pool *pool, void (*work)(void *job), unsigned *count)
{
    return fb_run_in(fb_test_worker(test), pool, work, count_done, &count, sizeof(count));
}

START_TEST(a_busy_pool_keeps_no_other_waiting)
{
    fb_test *test =
        start_pooled("thread_pool disk threads=1 max_queue=1; thread_pool default threads=1;",
            "pooled; pooled_pool disk;");
    const fb_pool *disk;

    ck_assert_ptr_nonnull(test);
    disk = found->pool;
    ck_assert_ptr_nonnull(disk);
    ck_assert_int_eq(run_in(test, disk, work_slowly, &slow_n), 0);
    WAIT_FOR(atomic_load(&going) > 0);
    ck_assert_int_eq(run_in(test, disk, work_slowly, &slow_n), 0);
    ck_assert_int_eq(run_in(test, disk, work_slowly, &slow_n), -1); /* a full queue */
    ck_assert_int_eq(run_in(test, NULL, work_quickly, &quick_n), 0);
    fb_test_run(test);
    ck_assert_uint_eq(slow_n, 2);
    ck_assert_uint_eq(quick_n, 1);
    scripted_finish(&test);
}
END_TEST

/* With another pool, and where the file has no pool at all. */
START_TEST(the_default_pool_has_its_name)
{
    const char *pools = _i == 0 ? "thread_pool disk threads=2;" : NULL;
    fb_test *test = start_pooled(pools, "pooled; pooled_pool default;");

    ck_assert_ptr_nonnull(test);
    ck_assert_ptr_eq(found->pool, &test->cycle->core.pool);
    ck_assert_int_eq(found->pool->threads, 32);
    ck_assert_int_eq(found->pool->queue, 65536);
    ck_assert_int_eq(found->pool->next != NULL, pools != NULL);
    if (pools != NULL) {
        ck_assert_int_eq(found->pool->next->threads, 2);
        ck_assert_int_eq(found->pool->next->queue, 65536);
    }
    ck_assert_int_eq(run_in(test, found->pool, work_quickly, &quick_n), 0);
    fb_test_run(test);
    ck_assert_uint_eq(quick_n, 1);
    scripted_finish(&test);
}
END_TEST

static void expect_refused(const char *pools, const char *server, const char *says)
{
    static char text[PRINTED_MAX];
    struct printed printed;
    fb_test *test;

    printed_begin(&printed);
    test = start_pooled(pools, server);
    printed_end(&printed, text);
    ck_assert_ptr_null(test);
    ck_assert_msg(strstr(text, says) != NULL, "%s", text);
}

START_TEST(mistakes_are_found_when_the_configuration_is_read)
{
    expect_refused("thread_pool disk threads=2;", "pooled; pooled_pool dusk;",
        "there is no \"thread_pool\" of the name \"dusk\"");
    expect_refused(
        NULL, "pooled; pooled_pool dusk;", "there is no \"thread_pool\" of the name \"dusk\"");
    expect_refused("thread_pool disk threads=2; thread_pool disk threads=3;", "pooled;",
        "there is a pool of this name already");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_busy_pool_keeps_no_other_waiting);
    tcase_add_loop_test(tcase, the_default_pool_has_its_name, 0, 2);
    tcase_add_test(tcase, mistakes_are_found_when_the_configuration_is_read);
}

TEST_MAIN("sdk_pools", add_tests)
