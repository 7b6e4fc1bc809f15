/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads ahead, where a server has `ssl_preread`. Input stays with the connection until enough is
 * known; then the session goes on where it was held up, and the bytes are offered once more. None
 * of them counts as received, which is nginx's way: its $bytes_received has what comes behind. */
#include "features/preread/preread.h"

#include "features/features.h"
#include "features/server_name/server_name.h"
#include "session/record.h"
#include "session/session.h"
#include "session/timeouts.h"
#include "session/use.h"
#include "settings/set_value.h"
#include "settings/template.h"
#include "tls/hello.h"

#include <string.h>

/* In the memory of the session. */
struct preread_part {
    struct session_part part; /* the first member */
    uint64_t since;           /* monotonic ms: when the phase began */
    struct tls_hello hello;
    bool has_bytes; /* some have come */
    /* text of the message */
    const char *name, *protocols;
    uint32_t name_n, protocols_n;
};

static const struct conn_ops preread_ops;

static const struct preread_values *preread_values_of(const struct fb_conn *conn)
{
    return server_feature(session_server_of(conn), FEATURE_PREREAD);
}

static uint64_t preread_timeout(const struct fb_conn *conn)
{
    return (uint64_t)preread_values_of(conn)->timeout;
}

/* Ends with the server of the preread phase. */
static const struct session_part_kind preread_part_kind = { .left = NULL };

static struct preread_part *preread_of(const struct fb_conn *conn)
{
    return session_part_of(conn, &preread_part_kind);
}

unsigned preread_begin(struct fb_conn *conn, const void *arg)
{
    struct preread_part *preread;

    (void)arg;
    assert(!conn->outgoing && conn->phase == CONN_OPEN && preread_timeout(conn) > 0);
    preread = session_part_make(conn, sizeof(*preread), &preread_part_kind);
    if (preread == NULL)
        return 0;
    preread->since = conn->net->loop.clock.mono_ms;
    session_set_phase(conn, SESSION_PREREAD);
    conn->ops = &preread_ops;
    conn_deadline_set(conn, preread_timeout(conn));
    return 0;
}

/* Gives the connection its earlier operations back. */
static void restore_ops(struct fb_conn *conn)
{
    assert(conn->ops == &preread_ops);
    conn->ops = session_receive_ops(conn);
}

/* ---- What is found ---- */

/* Keeps a part of the message; NULL without memory, and then the connection has failed. */
static char *keep_part(struct fb_conn *conn, fb_bytes in, struct tls_hello_part part,
    void (*copy)(fb_bytes in, struct tls_hello_part part, uint8_t *out))
{
    char *text = session_keep(conn, part.n);

    if (text != NULL)
        copy(in, part, (uint8_t *)text);
    else
        conn_fail(conn, FB_NO_MEMORY);
    return text;
}

/* Keeps the values known from the message. */
static void keep_parts(struct fb_conn *conn, struct preread_part *preread, fb_bytes in)
{
    const struct tls_hello *hello = &preread->hello;

    if (hello->name.n > 0 && preread->name == NULL) {
        preread->name = keep_part(conn, in, hello->name, tls_hello_copy);
        preread->name_n = preread->name != NULL ? hello->name.n : 0;
    }
    if (hello->protocols.n > preread->protocols_n + 1) {
        preread->protocols = keep_part(conn, in, hello->protocols, tls_hello_list);
        preread->protocols_n = preread->protocols != NULL ? hello->protocols.n - 1 : 0;
    }
}

/* ---- The end of the phase ---- */

/* Lets the session go on; false: the session has ended. */
static bool end_phase(struct fb_conn *conn)
{
    assert(conn->session_phase == SESSION_PREREAD && conn->received == 0);
    restore_ops(conn);
    conn_deadline_clear(conn);
    session_proceed(conn);
    return conn_is_active(conn);
}

static size_t preread_data(struct fb_conn *conn, fb_bytes in)
{
    size_t most = (size_t)preread_values_of(conn)->buffer_size;
    struct preread_part *preread = preread_of(conn);
    fb_bytes seen = { in.p, in.n < most ? in.n : most };
    enum tls_hello_status status = tls_hello_parse(&preread->hello, seen);

    assert(in.n > 0 && most > 0);
    conn->received = 0;
    preread->has_bytes = true;
    if (status != TLS_HELLO_NONE)
        keep_parts(conn, preread, seen);
    if (status == TLS_HELLO_MORE) {
        if (in.n < most)
            return conn_is_active(conn) ? 0 : in.n;
        conn_log(conn, LEVEL_ERROR, 0, "preread buffer full");
        session_set_status(conn, STATUS_BAD_REQUEST);
        conn_fail(conn, FB_INPUT_LIMIT);
        return in.n;
    }
    conn_debug(conn, "preread %zu bytes: %s", in.n,
        status == TLS_HELLO_WHOLE ? "a ClientHello" : "no ClientHello");
    if (!session_binding_of(conn)->ssl && server_name_choose(conn, &preread->hello, seen) == -1)
        conn_fail(conn, FB_NO_MEMORY);
    if (!conn_is_active(conn) || !end_phase(conn)) /* input of an ended session is dropped */
        return in.n;
    conn_offer_again(conn);
    return 0;
}

/* Ends the session of a client that closes during the phase. */
static void preread_eof(struct fb_conn *conn, fb_bytes rest)
{
    (void)rest;
    assert(conn->session_phase == SESSION_PREREAD);
    conn->received = 0;
    conn_fail(conn, FB_PEER_GONE);
}

/* Ends the session without a log line, as nginx does. */
static void preread_expired(struct fb_conn *conn)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - preread_of(conn)->since;

    assert(conn->session_phase == SESSION_PREREAD);
    if (passed < preread_timeout(conn)) /* the time is longer than a deadline can be */
        conn_deadline_set(conn, preread_timeout(conn) - passed);
    else
        conn_fail(conn, FB_TIMED_OUT);
}

/* ---- What happens as in any session ---- */

static void preread_closed(struct fb_conn *conn, fb_reason reason)
{
    conn->received = 0;
    restore_ops(conn);
    session_closed(conn, reason);
}

static void preread_describe(
    const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT])
{
    session_describe(conn, line, text);
    line->action = "prereading client data";
}

static const struct conn_ops preread_ops = {
    .data = preread_data,
    .eof = preread_eof,
    .writable = session_ignore,
    .expired = preread_expired,
    .closed = preread_closed,
    .failed = session_failed,
    .describe = preread_describe,
};

/* ---- Variables ---- */

/* Missing where no ClientHello was read; empty where the ClientHello lacks the value. */

/* Returns NULL where nothing is known. */
static const struct preread_part *hello_of(const struct fb_conn *conn)
{
    const struct preread_part *preread = preread_of(conn);

    if (preread == NULL || !preread->has_bytes || preread->hello.status == TLS_HELLO_NONE)
        return NULL;
    return preread;
}

static int get_protocol(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);
    const char *text;

    (void)variable;
    if (preread != NULL) {
        text = tls_hello_version(preread->hello.version);
        *value = value_found(text, strlen(text));
    }
    return 0;
}

static int get_server_name(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);

    (void)variable;
    if (preread != NULL)
        *value = value_found(preread->name_n > 0 ? preread->name : "", preread->name_n);
    return 0;
}

static int get_alpn_protocols(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);

    (void)variable;
    if (preread != NULL)
        *value =
            value_found(preread->protocols_n > 0 ? preread->protocols : "", preread->protocols_n);
    return 0;
}

static const struct variable_row variables_preread[] = {
    { "ssl_preread_alpn_protocols", .get = get_alpn_protocols },
    { "ssl_preread_protocol", .get = get_protocol },
    { "ssl_preread_server_name", .get = get_server_name },
    { .name = NULL },
};

/* ---- `ssl_preread` and its bounds ---- */

#define PREFIX "ssl_preread_"

static void preread_finish(struct apply *apply, struct scope *server)
{
    const struct preread_values *values = feature_values(server, FEATURE_PREREAD);

    if (values->ssl_preread)
        feature_add_handler(apply, server->server, PHASE_PREREAD, preread_begin, NULL);
}

static void preread_warn(struct apply *apply, const struct scope *stream)
{
    struct variables *variables = apply->cycle->stream.variables;
    struct variable *variable = NULL;
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link) {
        const struct preread_values *values = feature_values(server, FEATURE_PREREAD);

        if (values->ssl_preread)
            return;
    }
    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable->index != 0 && strncmp(variable->name, PREFIX, strlen(PREFIX)) == 0)
            report_warn(apply->report, variable->used_at,
                "$%s has no value in any session: no server has \"ssl_preread on\"",
                variable->name);
}

static const struct setting rows[] = {
    { "preread_buffer_size", CONTEXT_SERVERS, 1, 1, .set = set_size,
        SETTING_FIELD(struct preread_values, buffer_size), .least_value = 1,
        .greatest_value = INT64_MAX, .initial = "16k" },
    { "preread_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct preread_values, timeout), .least_value = 1,
        .greatest_value = INT64_MAX, .initial = "30s" },
    { "ssl_preread", CONTEXT_SERVERS, 1, 1, .set = set_flag,
        SETTING_FIELD(struct preread_values, ssl_preread), .initial = "off" },
    { .name = NULL },
};

const struct feature preread_feature = {
    .name = "preread",
    .rows = rows,
    .server_size = sizeof(struct preread_values),
    .variables = variables_preread,
    .finish_server = preread_finish,
    .warn = preread_warn,
};
