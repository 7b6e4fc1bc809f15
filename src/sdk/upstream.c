/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on connections to servers: making one, keeping it for the next user, and piping
 * it together with a client's. Each such connection has an owner and ends with it, unless
 * fb_keep() has given it to the keepalive pool. */
#include "net/target.h"
#include "sdk/handle.h"

#include <assert.h>

fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state)
{
    fb_conn *conn = NULL;

    if (SDK_VALID(owner))
        conn = upstream_connect(owner, target, ops, state);
    assert(conn == NULL ||
           (conn->outgoing && session_conn_of(conn)->parent == session_conn_of(owner)));
    return conn;
}

const fb_target *fb_make_target(fb_conn *conn, const char *text)
{
    struct fb_target *target = fb_alloc(conn, sizeof(*target));

    if (target == NULL || address_parse(text, 0, &target->address) != NULL ||
        (target->address.any.sa_family != AF_UNIX && address_port(&target->address) == 0))
        return NULL;
    address_format(&target->address, true, target->text);
    return target;
}

int fb_is_reused(const fb_conn *conn)
{
    if (!SDK_VALID(conn) || !conn->outgoing)
        return 0;
    assert(session_conn_of(conn) != NULL);
    return session_conn_of(conn)->reused;
}

void fb_keep(fb_conn *conn, uint64_t ms)
{
    if (SDK_VALID(conn))
        keepalive_keep(conn, ms);
}

/* Ends both when one of them ends already. */
static bool end_both(fb_conn *a, fb_conn *b)
{
    if (conn_has_failed(a) || conn_has_failed(b)) {
        conn_fail(a, FB_ABORTED);
        conn_fail(b, FB_ABORTED);
        return true;
    }
    if (conn_is_active(a) && conn_is_active(b))
        return false;
    session_close(a);
    session_close(b);
    return true;
}

void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options)
{
    bool has_timeout = options != NULL && options->size >= sizeof(*options);

    if (!SDK_VALID(a) || !SDK_VALID(b) || a == b || a->pipe != NULL || b->pipe != NULL)
        return;
    if (end_both(a, b))
        return;
    assert(a->net == b->net);
    if (conn_pipe(a, b, has_timeout ? options->timeout : 0) == 0)
        return;
    conn_fail(a, FB_NO_MEMORY);
    conn_fail(b, FB_NO_MEMORY);
}
