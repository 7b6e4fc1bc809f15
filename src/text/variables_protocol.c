/* SPDX-License-Identifier: BSD-2-Clause */
/* The value of a protocol's variable, which the protocol works out. It may be asked for within a
 * callback of that protocol, whose heartbeat then goes on. Never calls a protocol that does not
 * have the client. */
#include "text/variables_protocol.h"

#include "session/conn.h"

bool variables_protocol_has(const struct server *server, const struct variable *variable)
{
    return variable->get == variables_protocol_get && variable->arg == server->protocol;
}

/* Calls the protocol; whether the variable is found. */
static bool call_value(struct fb_conn *conn, uint32_t i, fb_bytes *out)
{
    const struct server *server = session_server_of(conn);
    const fb_variable_definition *definition = &server->protocol->variables[i];
    bool within = heartbeat_running_protocol(conn->net->heartbeat) != HEARTBEAT_NO_PROTOCOL;
    int result;

    assert(!conn->outgoing && definition->value != NULL);
    if (!within)
        session_callback_begin(conn, CALLBACK_VALUE);
    result = definition->value(conn, stream_state_at(conn, server), i, out);
    if (!within)
        session_callback_end(conn);
    else if (unlikely(conn->net == NULL)) /* a child of fork() */
        os_wiped_end();
    return result == 0;
}

int variables_protocol_get(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct server *server = session_server_of(conn);
    uint32_t i = (uint32_t)variable->number;
    fb_bytes out = { .p = NULL };

    assert(variable->get == variables_protocol_get && variable->arg != NULL);
    *value = value_missing();
    if (!variables_protocol_has(server, variable))
        return 0;
    assert(i < server->protocol->variable_n);
    if (conn->session_phase <= SESSION_PREREAD || server->protocol->variables[i].value == NULL)
        value->state = VALUE_UNKNOWN;
    else if (call_value(conn, i, &out) && out.n <= VALUE_MOST)
        *value = value_found(out.n > 0 ? (const char *)out.p : "", out.n);
    return 0;
}
