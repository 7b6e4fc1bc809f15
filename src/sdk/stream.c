/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "stream": a protocol's session as known to stream {}. Every call asks for the
 * connection's client first; a worker's own connection has no session, and gets the answer of an
 * unknown session. Never runs a protocol's callback but `value` of a variable. */
#include "sdk/stream.h"

#include "features/pass/pass.h"
#include "sdk/handle.h"
#include "sdk/upstreams.h"
#include "session/record.h"
#include "text/template.h"
#include "text/variable.h"

#include <assert.h>
#include <string.h>

/* Returns the client of the connection's session, after a report NULL. */
static struct fb_conn *stream_client_of(const fb_conn *conn, const char *call)
{
    struct fb_conn *client;

    if (!sdk_handle_check(conn, call))
        return NULL;
    client = session_client_of(conn);
    return client->outgoing ? NULL : client;
}

static fb_bytes value_bytes(const struct value *value)
{
    return (fb_bytes) { (const uint8_t *)value->p, value->n };
}

static int stream_get(fb_conn *conn, const fb_variable *variable, fb_bytes *value)
{
    struct fb_conn *client = stream_client_of(conn, "fb_stream.get");
    const struct value *found;

    *value = (fb_bytes) { .n = 0 };
    if (client == NULL)
        return -1;
    found = variable_value(client, (const struct variable *)variable);
    if (found->state != VALUE_FOUND)
        return -1;
    *value = value_bytes(found);
    return 0;
}

/* Whether the protocol of the session may set the variable. */
static bool may_set_variable(const struct fb_conn *client, const struct variable *variable)
{
    if (variable->flags & VARIABLE_VOLATILE)
        return false;
    return (variable->flags & VARIABLE_CHANGEABLE) != 0 ||
           variables_protocol_has(session_server_of(client), variable);
}

static int stream_set(fb_conn *conn, const fb_variable *handle, fb_bytes value)
{
    const struct variable *variable = (const struct variable *)handle;
    struct fb_conn *client = stream_client_of(conn, "fb_stream.set");
    struct value copy = value_found("", 0);

    if (client == NULL || !may_set_variable(client, variable) || value.n > VALUE_MOST)
        return -1;
    if (value.n > 0 && value_copy(client, &copy, (const char *)value.p, value.n) == -1)
        return -1;
    return variable_set(client, variable, copy);
}

static int stream_evaluate(fb_conn *conn, const fb_template *text, fb_bytes *out)
{
    struct fb_conn *client = stream_client_of(conn, "fb_stream.evaluate");
    struct value value;

    *out = (fb_bytes) { .n = 0 };
    if (client == NULL || template_value(client, (const struct template *)text, &value) == -1)
        return -1;
    *out = value_bytes(&value);
    return 0;
}

static int stream_set_status(fb_conn *conn, uint32_t status)
{
    struct fb_conn *client = stream_client_of(conn, "fb_stream.set_status");

    if (client == NULL || status < FB_STATUS_LEAST || status > FB_STATUS_GREATEST)
        return -1;
    session_set_status(client, status);
    return session_status(client) == status ? 0 : -1;
}

static uint32_t stream_status(const fb_conn *conn)
{
    const struct fb_conn *client = stream_client_of(conn, "fb_stream.status");

    return client != NULL ? session_status(client) : 0;
}

static void stream_count(fb_conn *conn, uint64_t received, uint64_t sent)
{
    struct fb_conn *client = stream_client_of(conn, "fb_stream.count");
    struct session_record *record = client != NULL ? session_record_make(client) : NULL;

    if (record == NULL)
        return;
    record->more_received += received;
    record->more_sent += sent;
}

static int stream_pass(fb_conn *conn, const fb_listener *listener)
{
    struct fb_conn *client = stream_client_of(conn, "fb_stream.pass");

    return client != NULL && client == conn ? pass_client(client, listener) : -1;
}

const fb_stream sdk_stream = {
    .size = sizeof(fb_stream),
    .get = stream_get,
    .set = stream_set,
    .evaluate = stream_evaluate,
    .set_status = stream_set_status,
    .status = stream_status,
    .count = stream_count,
    .pass = stream_pass,
};

const void *fb_interface(fb_worker *worker, const char *name, uint32_t version)
{
    assert(worker->worker != NULL);
    if (name == NULL || version != 1)
        return NULL;
    if (strcmp(name, "upstream") == 0)
        return &sdk_upstreams;
    return strcmp(name, "stream") == 0 ? &sdk_stream : NULL;
}
