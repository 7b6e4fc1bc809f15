/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the PROXY header of a client. Input stays with the connection until the header is whole;
 * what follows the header is given to the protocol as its first. */
#include "features/proxy_protocol/proxy_protocol.h"

#include "features/features.h"
#include "net/conn_connect.h"
#include "net/proxy_protocol.h"
#include "os/process.h"
#include "session/record.h"
#include "session/session.h"

#include <errno.h>
#include <string.h>

static const struct proxy_protocol_values *proxy_values_of(const struct fb_conn *conn)
{
    return server_feature(session_server_of(conn), FEATURE_PROXY_PROTOCOL);
}

static uint64_t header_timeout(const struct fb_conn *conn)
{
    return (uint64_t)proxy_values_of(conn)->timeout;
}

static void proxy_opened(struct fb_conn *conn)
{
    assert(conn->session_phase == SESSION_NEW && !conn->outgoing && header_timeout(conn) > 0);
    CHECK_KIND(session_binding_of(conn), BINDING_KIND);
    if (!session_begin(conn))
        return;
    session_set_phase(conn, SESSION_HEADER);
    conn_deadline_set(conn, header_timeout(conn));
}

/* Whether the connection's own peer is a trusted proxy. */
static bool is_trusted(const struct fb_conn *conn)
{
    const struct trusted_setting *trusted = &proxy_values_of(conn)->trusted;
    struct address peer;

    assert((trusted->n == 0) == (trusted->blocks == NULL));
    conn_peer_address(conn, &peer);
    for (int64_t i = 0; i < trusted->n; i++)
        if (address_block_matches(&trusted->blocks[i], &peer.any))
            return true;
    return false;
}

/* ---- A header that never becomes whole ---- */

/* Ends the session, with a line that shows the header so far; a NUL would end the text. */
static COLD void refuse(struct fb_conn *conn, fb_bytes in)
{
    char text[4 * PROXY_PROTOCOL_LINE + 1], *end = text;

    assert(conn->session_phase == SESSION_HEADER);
    for (size_t i = 0; i < in.n && i < PROXY_PROTOCOL_LINE; i++) {
        if (in.p[i] != '\0')
            *end++ = (char)in.p[i];
        else
            end = stpcpy(end, "\\x00");
    }
    *end = '\0';
    conn_log(conn, LEVEL_ERROR, 0, "broken header: \"%s\" while reading PROXY protocol", text);
    session_set_status(conn, STATUS_BAD_REQUEST);
    conn_fail(conn, FB_BAD_FRAME);
}

/* Whether the length of the header is allowed: an unknown client could have 64 KiB kept. */
static bool check_length(struct fb_conn *conn, size_t n)
{
    if (likely(n <= PROXY_PROTOCOL_UNTRUSTED) || is_trusted(conn))
        return true;
    conn_log(conn, LEVEL_ERROR, 0,
        "a header of %zu bytes while reading PROXY protocol, and %d are the most from an address "
        "that no \"set_real_ip_from\" names",
        n, PROXY_PROTOCOL_UNTRUSTED);
    session_set_status(conn, STATUS_BAD_REQUEST);
    conn_fail(conn, FB_BAD_FRAME);
    return false;
}

static void proxy_eof(struct fb_conn *conn, fb_bytes rest)
{
    refuse(conn, rest);
}

static void proxy_expired(struct fb_conn *conn)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - conn->opened_ms;
    char reason[128];

    assert(conn->session_phase == SESSION_HEADER);
    if (passed < header_timeout(conn)) { /* the time is longer than a deadline can be */
        conn_deadline_set(conn, header_timeout(conn) - passed);
        return;
    }
    conn_log(conn, LEVEL_INFO, 0, "client timed out (%d: %s) while reading PROXY protocol",
        ETIMEDOUT, os_error_text(ETIMEDOUT, reason, sizeof(reason)));
    conn_fail(conn, FB_TIMED_OUT);
}

/* ---- A whole header ---- */

static const struct session_part_kind proxy_part_kind = { .stays = true };

const struct proxy_protocol_part *proxy_protocol_of(const struct fb_conn *conn)
{
    return session_part_of(conn, &proxy_part_kind);
}

/* Keeps the header for variables; false without memory, and then the connection has failed. */
static bool keep_header(struct fb_conn *conn, fb_bytes header)
{
    struct proxy_protocol_part *proxy =
        session_part_make(conn, sizeof(*proxy) + header.n, &proxy_part_kind);

    assert(header.n > 0 && header.n <= PROXY_PROTOCOL_LONGEST);
    if (proxy == NULL)
        return false;
    proxy->own = conn->peer;
    proxy->n = header.n;
    memcpy(proxy->header, header.p, header.n);
    return true;
}

/* Takes over the client's address, but of a unix socket of the proxy's host; false as above. */
static bool take_header(struct fb_conn *conn, fb_bytes in, const struct proxy_protocol *header)
{
    const struct variables *variables = session_server_of(conn)->variables;

    assert(header->length <= in.n);
    if (variables != NULL && variables->uses_proxy &&
        !keep_header(conn, (fb_bytes) { in.p, header->length }))
        return false;
    if (header->has_addresses && header->source.any.sa_family != AF_UNIX && is_trusted(conn))
        conn_peer_set(&conn->peer, &header->source.any);
    return true;
}

static size_t proxy_data(struct fb_conn *conn, fb_bytes in)
{
    struct proxy_protocol header;
    enum proxy_protocol_status status = proxy_protocol_parse(in, &header);

    assert(conn->session_phase == SESSION_HEADER && conn->received <= in.n);
    if (status != PROXY_PROTOCOL_BROKEN && !check_length(conn, header.length))
        return in.n;
    switch (status) {
    case PROXY_PROTOCOL_MORE:
        return 0;
    case PROXY_PROTOCOL_BROKEN:
        refuse(conn, in);
        return in.n;
    default:
        break;
    }
    conn_debug(conn, "PROXY header of %zu bytes", header.length);
    if (!take_header(conn, in, &header))
        return in.n;
    conn->received = 0;
    conn->ops = &session_conn_ops;
    conn_deadline_clear(conn);
    session_proceed(conn);
    if (!conn_is_active(conn)) /* input of a refused client is not looked at */
        return in.n;
    conn_count_received(conn, in.n - header.length);
    if (header.length < in.n)
        conn_offer_again(conn);
    return header.length;
}

static void proxy_closed(struct fb_conn *conn, fb_reason reason)
{
    conn->received = 0; /* a header is no part of the session */
    session_closed(conn, reason);
}

const struct conn_ops proxy_protocol_ops = {
    .opened = proxy_opened,
    .data = proxy_data,
    .eof = proxy_eof,
    .writable = session_ignore,
    .expired = proxy_expired,
    .closed = proxy_closed,
    .failed = session_failed,
    .describe = session_describe,
};
