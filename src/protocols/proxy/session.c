/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: servers are tried in turn until a connect succeeds; then bytes move both ways until an
 * end.
 *
 * Early bytes of a client wait in the kernel meanwhile, like the end of the client's half. While
 * the session waits for a server, or listens to the client before asking for a server, a client
 * with an ended half and without a byte has gone, unless proxy_half_close is on.
 * Invariant: each try is ended before the next one begins, at the latest in `closed` of the
 * connection. */
#include "protocols/proxy/proxy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* How long after a session without a byte a client is listened to first, and for how long. */
#define SILENCE_MS 100
#define LISTEN_MS 10

enum { TIMER_LISTENS };

/* Room for a state of this size lies beside each connection, also beside servers'. */
static_assert(sizeof(struct proxy) <= 8, "a proxied session has become dearer");

static void begin_try(fb_conn *client, struct proxy *proxy, const struct proxy_worker *own,
    const struct proxy_conf *conf);

static void fail_session(fb_conn *client, uint32_t status)
{
    const struct proxy_worker *own = fb_worker_state(client);

    own->stream->set_status(client, status);
    fb_close(client);
}

/* Ends a session without a connect to the server, for a reason of ours. */
static void give_up_session(fb_conn *client)
{
    const struct proxy_worker *own = fb_worker_state(client);

    own->upstreams->end(client, NULL, FB_TRY_UNUSED);
    fail_session(client, 500);
}

/* Whether the next server is tried after an unreachable server. */
static bool may_try_again(const fb_conn *client, const struct proxy *proxy)
{
    const struct proxy_conf *conf = fb_conf_of(client);

    return conf->next_upstream && proxy->may_go_on &&
           (conf->next_upstream_tries == 0 ||
               proxy->failed < (uint64_t)conf->next_upstream_tries) &&
           (conf->next_upstream_timeout == 0 ||
               (uint32_t)fb_mono_ms(fb_worker_of(client)) - proxy->began_ms <
                   (uint64_t)conf->next_upstream_timeout);
}

/* ---- The connection to a server ---- */

static void write_header(fb_conn *client, fb_conn *server, enum proxy_header header)
{
    uint8_t room[PROXY_HEADER_MOST];

    fb_write(server, room, proxy_header_make(client, header, room));
}

static int server_opened(fb_conn *server, void *state)
{
    fb_conn *client = state;
    struct proxy *proxy = fb_state_of(client);
    const struct proxy_conf *conf = fb_conf_of(client);
    const struct proxy_worker *own = fb_worker_state(server);
    fb_pipe_options options = {
        .size = sizeof(options),
        .timeout = (uint64_t)conf->timeout,
        .rate_from_a = conf->upload.fixed,
        .rate_from_b = conf->download.fixed,
        .flags = (conf->half_close ? 0 : FB_PIPE_ENDS_TOGETHER) |
                 (conf->reset ? 0 : FB_PIPE_B_BREAK_ENDS),
        .buffer = (size_t)conf->buffer_size,
    };

    assert(!proxy->connected);
    if ((conf->upload.text != NULL &&
            proxy_rate_evaluate(client, &conf->upload, &options.rate_from_a) != 0) ||
        (conf->download.text != NULL &&
            proxy_rate_evaluate(client, &conf->download, &options.rate_from_b) != 0)) {
        fail_session(client, 500);
        return 0;
    }
    proxy->connected = true;
    own->upstreams->connected(client);
    if (conf->header != PROXY_HEADER_NONE && conf->tls == NULL)
        write_header(client, server, conf->header);
    if (conf->starttls.dialect != NULL)
        proxy_dialogue_begin(client, server, &options);
    else
        fb_pipe(client, server, &options);
    return 0;
}

/* Ends a try, and begins the next or ends the session with the status. */
static void end_failed_try(
    fb_conn *server, fb_conn *client, struct proxy *proxy, fb_try_end how, uint32_t status)
{
    const struct proxy_worker *own = fb_worker_state(server);

    own->upstreams->end(client, server, how);
    proxy->failed += how != FB_TRY_UNUSED;
    if (how == FB_TRY_UNUSED || may_try_again(client, proxy))
        begin_try(client, proxy, own, fb_conf_of(client));
    else
        fail_session(client, status);
}

/* Whether the connect() failed for want of descriptors, memory, or the right to use proxy_bind: no
 * other server is reached then either. */
static bool is_own_error(const struct proxy_conf *conf, int error)
{
    return proxy_is_shortage(error) ||
           (conf->bind.n > 0 && (error == EACCES || error == EPERM || error == EINVAL));
}

/* Whether the connect has failed for want of a local address or port for this server. */
static bool is_local_error(const struct proxy_conf *conf, int error)
{
    return proxy_lacks_port(error) || (conf->bind.n > 0 && error == EAFNOSUPPORT);
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    fb_conn *client = state;
    struct proxy *proxy = fb_state_of(client);
    struct proxy_worker *own = fb_worker_state(server);

    if (proxy->connected) {
        if (fb_received(server) == 0 && fb_received(client) == 0)
            own->silent_ms = fb_mono_ms(own->worker);
        own->upstreams->end(client, server, FB_TRY_SERVED);
        return;
    }
    switch (reason) {
    case FB_ABORTED: /* with its client */
    case FB_DRAINED:
        own->upstreams->end(client, server, FB_TRY_UNUSED);
        break;
    case FB_NO_MEMORY:
        give_up_session(client);
        break;
    default:
        if (is_own_error(fb_conf_of(client), fb_error_of(server)))
            give_up_session(client);
        else if (proxy_lacks_handshake(reason, fb_error_of(server)))
            end_failed_try(server, client, proxy, FB_TRY_SKIPPED, 500);
        else if (!is_local_error(fb_conf_of(client), fb_error_of(server)))
            end_failed_try(server, client, proxy, FB_TRY_FAILED, 502);
        else /* the server is not to blame: another address of proxy_bind, or server, may do */
            end_failed_try(server, client, proxy,
                proxy_bind_next(client) ? FB_TRY_UNUSED : FB_TRY_SKIPPED, 500);
    }
}

const fb_ops proxy_server_ops = {
    .size = sizeof(fb_ops), .opened = server_opened, .closed = server_closed
};

/* ---- Tries ---- */

/* Connects to a server, by an address of ours if any is set; NULL: no connection. */
static fb_conn *connect_bound(fb_conn *client, const fb_target *target, fb_connect_options *options)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    struct sockaddr_storage room;
    int status = 0;

    if (conf->bind.n > 0)
        options->local = proxy_bind_address(client, &room, &status);
    if (status != 0)
        return NULL;
    if (options->local != NULL && conf->bind.transparent)
        options->flags |= FB_CONNECT_TRANSPARENT;
    return fb_connect_with(fb_worker_of(client), target, &proxy_server_ops, client, options);
}

/* Connects to a server with the options of TLS; NULL: no connection. */
static fb_conn *connect_secured(fb_conn *client, const fb_try *run, fb_connect_options *options)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    uint8_t room[PROXY_HEADER_MOST];

    options->tls = conf->tls;
    options->tls_name = (fb_bytes) { (const uint8_t *)run->host, strlen(run->host) };
    if (conf->header != PROXY_HEADER_NONE)
        options->tls_before = (fb_bytes) { room, proxy_header_make(client, conf->header, room) };
    return connect_bound(client, run->target, options);
}

static void connect_to(fb_conn *client, struct proxy *proxy, const struct proxy_worker *own,
    const struct proxy_conf *conf, const fb_try *run)
{
    fb_conn *server;
    fb_connect_options options = {
        .size = sizeof(options),
        .owner = client,
        .timeout = (uint64_t)conf->connect_timeout,
        .flags = FB_CONNECT_LASTING | (conf->socket_keepalive ? FB_CONNECT_TCP_KEEPALIVE : 0),
    };

    proxy->may_go_on = run->left > 0;
    if (conf->tls != NULL)
        server = connect_secured(client, run, &options);
    else if (conf->bind.n > 0)
        server = connect_bound(client, run->target, &options);
    else
        server = fb_connect_with(own->worker, run->target, &proxy_server_ops, client, &options);
    if (server != NULL)
        return;
    fb_conn_logf(client, FB_LOG_ERROR, "no connection is left for the server");
    give_up_session(client);
}

static void chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run)
{
    if (choice == FB_CHOICE_SERVER)
        connect_to(client, state, fb_worker_state(client), fb_conf_of(client), run);
    else
        fail_session(client, choice == FB_CHOICE_NONE ? 502 : 500);
}

static void begin_try(fb_conn *client, struct proxy *proxy, const struct proxy_worker *own,
    const struct proxy_conf *conf)
{
    const fb_try *run;
    fb_choice choice = own->upstreams->choose(client, conf->upstream, chosen, &run);

    if (choice == FB_CHOICE_SERVER)
        connect_to(client, proxy, own, conf, run);
    else if (choice != FB_CHOICE_WAITS)
        fail_session(client, choice == FB_CHOICE_NONE ? 502 : 500);
    else if (!conf->half_close)
        own->upstreams->end_with_client(client);
}

/* ---- Before the first try ---- */

/* Stops a client that was listened to, and begins the first try. */
static void end_listening(fb_conn *client, struct proxy *proxy)
{
    proxy->listens = false;
    fb_stop(client);
    begin_try(client, proxy, fb_worker_state(client), fb_conf_of(client));
}

/* Whether a silent client may have gone, because sessions end without a byte: in a circle of two
 * daemons new sessions begin as fast as sessions end. */
static bool is_wary(const struct proxy_worker *own, const struct proxy_conf *conf)
{
    return !conf->half_close && fb_mono_ms(own->worker) - own->silent_ms < SILENCE_MS;
}

static int client_opened(fb_conn *client, void *state)
{
    const struct proxy_worker *own = fb_worker_state(client);
    const struct proxy_conf *conf = fb_conf_of(client);
    struct proxy *proxy = state;

    if (conf->next_upstream_timeout > 0)
        proxy->began_ms = (uint32_t)fb_mono_ms(own->worker);
    fb_set_timeout(client, 0); /* the times of the proxy hold */
    if (conf->bind.n > 1)
        proxy_bind_begin(client);
    if (own->silent_ms == 0 || !is_wary(own, conf)) {
        fb_stop(client);
        begin_try(client, proxy, own, conf);
        return 0;
    }
    proxy->listens = true;
    fb_timer(client, TIMER_LISTENS, LISTEN_MS);
    return 0;
}

/* Begins with a client that has sent bytes, left for the server. */
static size_t client_data(fb_conn *client, void *state, fb_bytes in)
{
    struct proxy *proxy = state;

    (void)in;
    if (!proxy->listens)
        return 0;
    fb_timer_cancel(client, TIMER_LISTENS);
    end_listening(client, proxy);
    return 0;
}

static void client_timer(fb_conn *client, void *state, uint32_t id)
{
    struct proxy *proxy = state;

    if (id == TIMER_LISTENS && proxy->listens)
        end_listening(client, proxy);
}

const fb_ops proxy_session_ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .data = client_data,
    .timer = client_timer,
};
