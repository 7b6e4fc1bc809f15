/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a client's session as an object of JSON. Never changes a session, and asks the kernel
 * nothing: all members are the worker's own. */
#include "worker/session_row.h"

#include "backends/tries.h"
#include "net/conn_log.h"
#include "session/conn.h"

static const char *const states[SESSION_PHASES] = {
    [SESSION_NONE] = "begins",
    [SESSION_NEW] = "begins",
    [SESSION_HEADER] = "PROXY header",
    [SESSION_TLS] = "TLS handshake",
    [SESSION_PREREAD] = "preread",
    [SESSION_AWAITED] = "first byte",
    [SESSION_ACTIVE] = "active",
    [SESSION_SECURING] = "TLS handshake",
    [SESSION_ENDED] = "ends",
};

/* Returns the connection to a server that was made last; NULL: none. */
static const struct fb_conn *server_of_session(const struct fb_conn *client)
{
    const struct session_outgoing *child =
        client->session != NULL ? LIST_FIRST(&client->session->children) : NULL;

    return child != NULL ? child->session.conn : NULL;
}

/* Names what an active session waits for. */
static const char *awaited_of(const struct fb_conn *client, const struct fb_conn *server)
{
    const struct session_tries *tries = session_tries_of(client);

    if (tries != NULL && choice_waits(&tries->choice))
        return "a server of the upstream";
    if (server != NULL && server->phase == CONN_CONNECTING)
        return "the server to accept";
    if (server != NULL && server->session_phase == SESSION_SECURING)
        return "the server's TLS handshake";
    if (client->unsent > 0)
        return "the client to read";
    if (server != NULL && server->unsent > 0)
        return "the server to read";
    if (server != NULL && client->received > 0 && client->sent == 0)
        return "the server's first byte";
    return server != NULL ? "client or server" : "the client";
}

static void write_row_times(const struct fb_conn *client, struct json *json)
{
    uint64_t age = client->net->loop.clock.mono_ms - client->opened_ms;
    uint64_t bytes = client->received + client->sent;

    json_number(json, "age_ms", (int64_t)age);
    json_number(json, "idle_ms", (int64_t)(bytes > 0 ? conn_idle_ms(client) : age));
    json_number(json, "received", (int64_t)client->received);
    json_number(json, "sent", (int64_t)client->sent);
    json_number(json, "rate", (int64_t)(age > 0 ? (double)bytes * 1000 / (double)age : 0));
}

static void write_row_state(
    const struct fb_conn *client, const struct fb_conn *server, struct json *json)
{
    bool is_serving =
        client->session_phase == SESSION_ACTIVE || client->session_phase == SESSION_AWAITED;
    /* fb_pipe() keeps SESSION_AWAITED after the first byte */
    unsigned phase = is_serving && client->received > 0 ? SESSION_ACTIVE : client->session_phase;

    json_string(json, "state", conn_is_active(client) ? states[phase] : "ends");
    json_string(json, "waits_for",
        !conn_is_active(client) ? "the client to read"
        : is_serving            ? awaited_of(client, server)
                                : "the client");
}

void session_row_write(const struct fb_conn *client, struct json *json)
{
    const struct fb_conn *server = server_of_session(client);
    char ip[ADDRESS_TEXT], whole[ADDRESS_TEXT];
    struct log_line line = { .level = LEVEL_INFO };
    struct address peer;

    assert(!client->outgoing && conn_is_owned(client));
    conn_log_line(client, &line, ip);
    conn_peer_address(client, &peer);
    json_number(json, "session", (int64_t)client->number);
    json_string(json, "client", address_format(&peer, true, whole));
    json_string(json, "listen", line.server);
    json_string(json, "protocol", line.protocol);
    json_string(json, "upstream",
        line.upstream != NULL ? line.upstream
        : server != NULL      ? session_target_of(server->session)->text
                              : NULL);
    write_row_times(client, json);
    write_row_state(client, server, json);
}
