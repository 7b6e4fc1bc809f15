/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts how often `opened` and `closed` of clients' connections are called: every connection that
 * was opened is closed exactly once. Connections to servers have other callbacks and are not
 * counted. */
#include "kit/kit.h"

static fb_test *test_of(const fb_conn *conn)
{
    return kit_test_of(fb_worker_of(conn));
}

static int watched_opened(fb_conn *conn, void *state)
{
    fb_test *test = test_of(conn);

    test->openings++;
    return test->own_ops.opened != NULL ? test->own_ops.opened(conn, state) : 0;
}

static void watched_closed(fb_conn *conn, void *state, fb_reason reason)
{
    fb_test *test = test_of(conn);

    test->closings++;
    assert(test->closings <= test->openings);
    if (test->own_ops.closed != NULL)
        test->own_ops.closed(conn, state, reason);
}

void kit_watch_callbacks(fb_test *test)
{
    fb_ops *ops = (fb_ops *)test->protocols[0]->ops; /* the test's copy, in memory of its own */

    assert(ops->opened != watched_opened);
    test->own_ops = *ops;
    ops->opened = watched_opened;
    ops->closed = watched_closed;
}
