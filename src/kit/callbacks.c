/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts how often `opened` and `closed` of clients' connections are called: every connection that
 * was opened is closed exactly once. Connections to servers have other callbacks and are not
 * counted. */
#include "features/pass/pass.h"
#include "kit/kit.h"

static fb_test *test_of(const fb_conn *conn)
{
    return kit_test_of(fb_worker_of(conn)->worker);
}

/* The callbacks of the connection's protocol, as it has them. */
static const fb_ops *own_ops(const fb_test *test, const fb_conn *conn)
{
    const fb_protocol *protocol = fb_worker_of(conn)->protocol;
    unsigned i = 0;

    while (test->protocols[i] != protocol) {
        assert(test->protocols[i] != NULL);
        i++;
    }
    return &test->own_ops[i];
}

static int watched_opened(fb_conn *conn, void *state)
{
    fb_test *test = test_of(conn);
    const fb_ops *ops = own_ops(test, conn);
    int result = 0;

    test->openings++;
    kit_states_guard(conn);
    if (ops->opened != NULL)
        result = ops->opened(conn, state);
    if (pass_is_due(conn)) /* the other server may have the same protocol */
        kit_states_unguard(conn);
    return result;
}

static void watched_closed(fb_conn *conn, void *state, fb_reason reason)
{
    fb_test *test = test_of(conn);
    const fb_ops *ops = own_ops(test, conn);

    test->closings++;
    assert(test->closings <= test->openings);
    if (ops->closed != NULL)
        ops->closed(conn, state, reason);
    kit_state_check(conn);
}

void kit_watch_callbacks(fb_test *test)
{
    for (unsigned i = 0; test->protocols[i] != NULL; i++) {
        fb_ops *ops = (fb_ops *)test->protocols[i]->ops; /* the test's copy, in its own memory */

        assert(ops->opened != watched_opened);
        test->own_ops[i] = *ops;
        ops->opened = watched_opened;
        ops->closed = watched_closed;
    }
}
