/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `echo` for nginx's stream module: a session's bytes are read and sent back in the
 * way of nginx's own modules, with an idle timeout. It exists to compare like with like. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>

#define PIECE 16384
#define TIMEOUT_MS 600000

extern ngx_module_t nginx_echo_module;

static void end(ngx_stream_session_t *s)
{
    ngx_stream_finalize_session(s, NGX_STREAM_OK);
}

/* Keeps bytes without room at the peer in a buffer of the session, made at the first use. */
static ngx_int_t keep(ngx_stream_session_t *s, const u_char *bytes, size_t n)
{
    ngx_buf_t *b = ngx_stream_get_module_ctx(s, nginx_echo_module);

    if (b == NULL)
        b = ngx_create_temp_buf(s->connection->pool, PIECE);
    if (b == NULL)
        return NGX_ERROR;
    ngx_stream_set_ctx(s, b, nginx_echo_module);
    b->pos = b->start;
    b->last = ngx_cpymem(b->start, bytes, n);
    return ngx_handle_write_event(s->connection->write, 0);
}

/* Sends the kept bytes; NGX_AGAIN while some remain. */
static ngx_int_t send_kept(ngx_connection_t *c, ngx_buf_t *b)
{
    ssize_t n;

    while (b != NULL && b->pos < b->last) {
        n = c->send(c, b->pos, (size_t)(b->last - b->pos));
        if (n == NGX_ERROR || n == NGX_AGAIN)
            return n;
        b->pos += n;
    }
    return NGX_OK;
}

/* Reads a piece, and sends it back. */
static ngx_int_t exchange(ngx_connection_t *c)
{
    static u_char bytes[PIECE];
    ssize_t n = c->recv(c, bytes, sizeof(bytes)), sent;

    if (n <= 0)
        return n == NGX_AGAIN ? NGX_AGAIN : NGX_ERROR;
    sent = c->send(c, bytes, (size_t)n);
    if (sent == NGX_ERROR)
        return NGX_ERROR;
    if (sent == NGX_AGAIN)
        sent = 0;
    if (sent == n)
        return NGX_OK;
    return keep(c->data, bytes + sent, (size_t)(n - sent)) == NGX_OK ? NGX_AGAIN : NGX_ERROR;
}

static void echo(ngx_event_t *event)
{
    ngx_connection_t *c = event->data;
    ngx_int_t rc = NGX_OK;

    if (event->timedout) {
        end(c->data);
        return;
    }
    rc =
        send_kept(c, ngx_stream_get_module_ctx((ngx_stream_session_t *)c->data, nginx_echo_module));
    while (rc == NGX_OK && c->read->ready)
        rc = exchange(c);
    if (rc == NGX_ERROR || ngx_handle_read_event(c->read, 0) != NGX_OK) {
        end(c->data);
        return;
    }
    ngx_add_timer(c->read, TIMEOUT_MS);
}

static void handle(ngx_stream_session_t *s)
{
    s->connection->read->handler = echo;
    s->connection->write->handler = echo;
    echo(s->connection->read);
}

static char *set(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    ngx_stream_core_srv_conf_t *server;

    server = ngx_stream_conf_get_module_srv_conf(cf, ngx_stream_core_module);
    server->handler = handle;
    return NGX_CONF_OK;
}

static ngx_command_t commands[] = {
    { ngx_string("echo"), NGX_STREAM_SRV_CONF | NGX_CONF_NOARGS, set, 0, 0, NULL },
    ngx_null_command,
};

static ngx_stream_module_t context;

ngx_module_t nginx_echo_module = {
    NGX_MODULE_V1,
    &context,
    commands,
    NGX_STREAM_MODULE,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NGX_MODULE_V1_PADDING,
};
