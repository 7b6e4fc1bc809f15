/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on connections to servers: making a connection, keeping it for the next user,
 * and piping it together with a client's. The connection ends with the owner, unless fb_keep() has
 * given the connection to the keepalive pool. */
#include "backends/connect.h"
#include "backends/keepalive.h"
#include "base/compiler.h"
#include "net/address_parse.h"
#include "net/conn_pipe.h"
#include "sdk/handle.h"
#include "session/conn.h"
#include "session/secure.h"
#include "session/timeouts.h"

#include <assert.h>
#include <string.h>

fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state)
{
    if (!SDK_VALID(owner))
        return NULL;
    return backend_connect(owner, target, ops, state, BACKEND_TIMEOUT_MS, 0);
}

/* Returns the owner of a worker's connections; NULL without memory. */
static struct binding *own_binding(fb_worker *worker)
{
    struct worker *process = worker_of(worker);
    const struct server *server;

    STAILQ_FOREACH (server, &process->cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == worker->index)
            break;
    assert(server != NULL);
    return stream_own_binding(&process->stream, server);
}

/* Fills in a target; false: the address is none to connect to. */
static bool take_target_address(struct fb_target *target, const struct sockaddr *address)
{
    if (!address_from(&target->address, address))
        return false;
    if (address->sa_family == AF_UNIX ? target->address.un.sun_path[0] == '\0'
                                      : address_port(&target->address) == 0)
        return false;
    address_format(&target->address, true, target->text);
    return true;
}

/* Connects by options of this header. */
static NOINLINE fb_conn *connect_by_options(fb_worker *worker, const fb_target *target,
    const fb_ops *ops, void *state, const fb_connect_options *options)
{
    struct worker *process = worker_of(worker);
    struct binding *own = NULL;
    struct fb_target made;

    assert(target != NULL || options->address != NULL);
    if (options->owner != NULL && !SDK_VALID(options->owner))
        return NULL;
    if (process->phase >= WORKER_ENDING || options->key_n > FB_KEY_MAX)
        return NULL;
    if (options->owner == NULL) {
        own = own_binding(worker);
        if (own == NULL)
            return NULL;
    }
    if (target != NULL)
        return backend_connect_with(&process->stream, own, target,
            (options->flags & FB_CONNECT_LASTING) != 0, ops, state, options);
    if (!take_target_address(&made, options->address))
        return NULL;
    return backend_connect_with(&process->stream, own, &made, false, ops, state, options);
}

/* Connects by the shorter options of an older header, or by defaults for NULL. */
static COLD fb_conn *connect_by_older_options(fb_worker *worker, const fb_target *target,
    const fb_ops *ops, void *state, const fb_connect_options *options)
{
    fb_connect_options copy = { 0 };

    if (options != NULL)
        memcpy(&copy, options, options->size);
    return connect_by_options(worker, target, ops, state, &copy);
}

fb_conn *fb_connect_with(fb_worker *worker, const fb_target *target, const fb_ops *ops, void *state,
    const fb_connect_options *options)
{
    uint32_t level;

    if (unlikely(options == NULL || options->size < sizeof(*options)))
        return connect_by_older_options(worker, target, ops, state, options);
    if (target == NULL || options->owner == NULL || !(options->flags & FB_CONNECT_LASTING) ||
        backend_connect_wants_trunk(options))
        return connect_by_options(worker, target, ops, state, options);
    if (!SDK_VALID(options->owner))
        return NULL;
    level = options->log_level < FB_LOG_DEBUG ? options->log_level : FB_LOG_DEBUG;
    return backend_connect(options->owner, target, ops, state,
        options->timeout > 0 ? options->timeout : BACKEND_TIMEOUT_MS, (uint8_t)level);
}

int fb_error_of(const fb_conn *conn)
{
    if (!SDK_VALID(conn) || !conn->outgoing)
        return 0;
    return conn->session->error;
}

int fb_attach(fb_conn *conn, void *p, void (*release)(void *p))
{
    return SDK_VALID(conn) && conn->outgoing ? session_attach(conn, p, release) : -1;
}

void *fb_attached(const fb_conn *conn)
{
    return SDK_VALID(conn) && conn->outgoing ? session_attached(conn) : NULL;
}

const fb_target *fb_target_from(fb_conn *conn, const struct sockaddr *address)
{
    struct fb_target *target = fb_alloc(conn, sizeof(*target));

    return target != NULL && take_target_address(target, address) ? target : NULL;
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
    assert(conn->session != NULL);
    return conn->session->reused;
}

void fb_keep(fb_conn *conn, uint64_t ms)
{
    if (SDK_VALID(conn))
        keepalive_keep(conn, ms);
}

/* Ends both connections, as either has begun to end. */
static COLD void end_both(fb_conn *a, fb_conn *b)
{
    if (conn_has_failed(a) || conn_has_failed(b)) {
        conn_fail(a, FB_ABORTED);
        conn_fail(b, FB_ABORTED);
    } else {
        session_close(a);
        session_close(b);
    }
}

/* Fills in options of this header's version. */
static inline void take_pipe_options(struct conn_pipe_options *own, const fb_pipe_options *options)
{
    *own = (struct conn_pipe_options) {
        .timeout = options->timeout,
        .rates = { options->rate_from_a, options->rate_from_b },
        .most = options->buffer,
        .ends_together = (options->flags & FB_PIPE_ENDS_TOGETHER) != 0,
        .b_break_ends = (options->flags & FB_PIPE_B_BREAK_ENDS) != 0,
        .first_byte = options->first_byte,
    };
}

/* Fills in the shorter options of an older header, or defaults for NULL. */
static COLD void take_older_pipe_options(
    struct conn_pipe_options *own, const fb_pipe_options *options)
{
    fb_pipe_options copy = { 0 };

    if (options != NULL)
        memcpy(&copy, options, options->size);
    take_pipe_options(own, &copy);
}

void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options)
{
    struct conn_pipe_options own;

    if (!SDK_VALID(a) || !SDK_VALID(b) || a == b || a->pipe != NULL || b->pipe != NULL)
        return;
    if (unlikely(!conn_is_active(a) || !conn_is_active(b) || session_is_securing(a) ||
                 session_is_securing(b))) {
        end_both(a, b);
        return;
    }
    assert(a->net == b->net);
    if (options != NULL && options->size >= sizeof(*options))
        take_pipe_options(&own, options);
    else
        take_older_pipe_options(&own, options);
    if (conn_pipe(a, b, &own) == 0)
        return;
    conn_fail(a, FB_NO_MEMORY);
    conn_fail(b, FB_NO_MEMORY);
}
