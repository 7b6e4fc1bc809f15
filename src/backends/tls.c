/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshake of a connection to a server: see tls.h. */
#include "backends/tls.h"

#include "backends/connect.h"
#include "backends/trunk.h"
#include "net/conn_output.h"
#include "session/secure.h"
#include "shm/siphash.h"
#include "text/template.h"
#include "text/tls_paths.h"
#include "tls/verify_text.h"

#include <string.h>
#include <strings.h>

/* ---- The names of server and certificate ---- */

/* Returns the name without a port, and without the brackets of an address; a unix socket has no
 * name. */
static fb_bytes strip_port(fb_bytes name)
{
    const uint8_t *end = NULL;
    size_t port_at;

    if (name.n >= 5 && strncasecmp((const char *)name.p, "unix:", 5) == 0)
        return (fb_bytes) { name.p, 0 };
    if (name.n > 0 && name.p[0] == '[')
        end = memchr(name.p, ']', name.n);
    if (end != NULL)
        return (fb_bytes) { name.p + 1, (size_t)(end - name.p) - 1 };
    end = name.n > 0 ? memchr(name.p, ':', name.n) : NULL;
    if (end == NULL)
        return name;
    port_at = (size_t)(end - name.p) + 1;
    if (memchr(name.p + port_at, ':', name.n - port_at) != NULL) /* an address of IPv6 */
        return name;
    return (fb_bytes) { name.p, port_at - 1 };
}

/* Returns the client whose variables have values; NULL: there is none. */
static struct fb_conn *evaluated_client(const struct fb_conn *owner)
{
    struct fb_conn *client = owner != NULL ? session_client_of(owner) : NULL;

    return client != NULL && !client->outgoing ? client : NULL;
}

/* Evaluates the directive's text; returns 0, 1: it has no value here, or -1 without memory. */
static int evaluate_name(
    const struct fb_conn *owner, const struct template *text, struct value *value)
{
    struct fb_conn *client;

    if (text == NULL)
        return 1;
    if (template_is_constant(text, value))
        return 0;
    client = evaluated_client(owner);
    return client != NULL ? template_value(client, text, value) : 1;
}

int backend_tls_find_name(const struct fb_conn *owner, const fb_connect_options *options,
    const struct stream *stream, fb_bytes *name)
{
    struct value value;
    int status = evaluate_name(owner, options->tls->name, &value);

    if (status == -1)
        return -1;
    *name = strip_port(
        status == 0 ? (fb_bytes) { (const uint8_t *)value.p, value.n } : options->tls_name);
    if (name->n <= TLS_NAME_MOST)
        return 0;
    if (owner != NULL)
        conn_log(
            owner, LEVEL_ERROR, 0, "the name of a server has more than %d bytes", TLS_NAME_MOST);
    else
        log_put(stream->net.log, LEVEL_ERROR, 0, "the name of a server has more than %d bytes",
            TLS_NAME_MOST);
    return -1;
}

int backend_tls_find_paths(
    const struct fb_conn *owner, const fb_connect_options *options, fb_bytes *paths)
{
    static const uint8_t nameless[2] = { 0, 0 };
    const struct tls_profile *profile = options->tls->profile;
    struct fb_conn *client = evaluated_client(owner);
    struct tls_start start = { .role = TLS_CLIENT };

    assert(profile->named.n <= sizeof(nameless)); /* a pair */
    if (client == NULL)
        start.paths = (fb_bytes) { nameless, profile->named.n };
    else if (tls_paths_set(client, profile, NULL, (fb_bytes) { NULL, 0 }, &start) == -1)
        return -1;
    *paths = start.paths;
    return 0;
}

/* ---- The handshake ---- */

/* Returns a number for the address, the same in all processes, never 0. */
static uint64_t number_of_server(const struct fb_target *target)
{
    static const uint64_t key[2] = { 0, 0 };
    uint64_t number = siphash(key, target->text, strlen(target->text));

    return number != 0 ? number : 1;
}

/* Whether the server's certificate is what the profile wants; else a line says why not. */
static bool accepts_server(struct fb_conn *conn, const struct tls_session *session)
{
    const struct trunk *trunk = session_trunk_of(conn->session);
    fb_bytes name = trunk_name(trunk);
    const char *why;

    if (trunk->tls->profile->verify == TLS_VERIFY_OFF)
        return true;
    if (session->verify == TLS_VERIFY_FAILED) {
        why = tls_verify_text(session->verify_code);
        conn_log(conn, session_level_of(conn), 0, "upstream SSL certificate verify error: (%d:%s)",
            (int)session->verify_code, why != NULL ? why : "unknown");
        return false;
    }
    if (session->verify == TLS_VERIFIED && name.n > 0)
        return true;
    conn_log(conn, session_level_of(conn), 0, "upstream SSL certificate does not match \"%.*s\"",
        (int)name.n, (const char *)name.p);
    return false;
}

static void server_secured(struct fb_conn *conn, const struct tls_reply *reply)
{
    assert(conn->source.layered && conn->session_phase == SESSION_NEW);
    if (accepts_server(conn, &reply->session))
        conn->ops->opened(conn);
    else
        conn_fail(conn, FB_TLS_FAILED);
}

int backend_tls_await(struct fb_conn *conn)
{
    const struct trunk *trunk = session_trunk_of(conn->session);
    const struct session_secure_options options = {
        .start = {
            .role = TLS_CLIENT,
            .profile = trunk->tls->profile->index,
            .offload = trunk->tls->profile->offload,
            .name = trunk_name(trunk),
            .paths = trunk_paths(trunk),
            .server = number_of_server(&trunk->target),
        },
        .timeout = trunk->timeout,
        .before = trunk_before(trunk),
        .done = server_secured,
    };

    return session_secure_await(conn, &options);
}
