/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked mode knows the end of a resolution with its connection. */
#include "kit/printed.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

static fb_resolution *resolution;

static void never(fb_worker *worker, const fb_names *names, void *arg)
{
    (void)worker, (void)names, (void)arg;
    ck_abort_msg("`resolved` of a connection that has ended");
}

/* "r" asks, "x" cancels what another has asked. */
static size_t asker_data(fb_conn *conn, void *state, fb_bytes in)
{
    const fb_resolve_options options = { .size = sizeof(options), .owner = conn };

    (void)state;
    if (in.p[0] == 'x') {
        fb_resolve_cancel(resolution);
        return in.n;
    }
    resolution = fb_resolve(fb_worker_of(conn), "a.test", FB_NAME_A, &options, never, NULL);
    ck_assert_ptr_nonnull(resolution);
    return in.n;
}

static const fb_ops asker_ops = { .size = sizeof(fb_ops), .data = asker_data };

static const fb_directive asker_directives[] = {
    { .name = "asker", .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(asker) = {
    FB_PROTOCOL_HEADER,
    .name = "asker",
    FB_PROTOCOL_DIRECTIVES(asker_directives),
    .ops = &asker_ops,
    .needs = FB_NEEDS_RESOLVER,
};

START_TEST(resolutions_end_with_their_owner)
{
    struct printed printed;
    char text[PRINTED_MAX];
    fb_test *test = fb_test_start(&fb_protocol_asker, "asker; resolver 10.0.0.1;");
    fb_test_peer *peer = fb_test_connect(test), *other = fb_test_connect(test);

    fb_test_names(test, FB_TEST_SILENT);
    fb_test_says(peer, "r");
    fb_test_reset(peer);
    fb_test_run(test);
    printed_begin(&printed);
    fb_test_says(other, "x");
    fb_test_run(test);
    printed_end(&printed, text);
    ck_assert_msg(strstr(text, "protocol \"asker\" called fb_resolve_cancel() with a resolution "
                               "that has ended\n") != NULL,
        "%s", text);
    fb_test_end(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, resolutions_end_with_their_owner);
}

TEST_MAIN("checked names", add_tests)
