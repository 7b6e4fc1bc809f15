/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "stream" in the checked mode: a table of wrappers, because pointers lead to the
 * calls and no relocation does. After a report a call answers as if nothing was known. */
#include "sdk/stream.h"
#include "text/variable.h"

#include "checked/calls.h"
#include "sdk/handle.h"
#include "sdk/upstreams.h"

#include <string.h>

/* Whether the handle is a variable of the connection's configuration. */
static bool check_variable_handle(const fb_conn *conn, const fb_variable *handle, const char *call)
{
    struct variables *variables = sdk_worker_of(conn)->cycle->stream.variables;
    const struct variable *wanted = (const struct variable *)handle;
    struct variable *variable = NULL;

    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable == wanted && variable->index > 0)
            return true;
    checked_report_call(NULL, call, "with a variable that is none of this configuration");
    return false;
}

static int checked_stream_get(fb_conn *conn, const fb_variable *variable, fb_bytes *value)
{
    static const char call[] = "stream.get";

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, variable, "variable") ||
        !checked_given(call, value, "value") || !check_variable_handle(conn, variable, call))
        return -1;
    return sdk_stream.get(conn, variable, value);
}

static int checked_stream_set(fb_conn *conn, const fb_variable *variable, fb_bytes value)
{
    static const char call[] = "stream.set";

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, variable, "variable") ||
        !check_variable_handle(conn, variable, call) ||
        !checked_bytes(call, value.p, value.n, "value"))
        return -1;
    return sdk_stream.set(conn, variable, value);
}

static int checked_stream_evaluate(fb_conn *conn, const fb_template *text, fb_bytes *out)
{
    static const char call[] = "stream.evaluate";

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, text, "text") || !checked_given(call, out, "out"))
        return -1;
    return sdk_stream.evaluate(conn, text, out);
}

static int checked_stream_set_status(fb_conn *conn, uint32_t status)
{
    static const char call[] = "stream.set_status";

    conn = checked_conn(conn, call);
    if (conn == NULL)
        return -1;
    if (status < FB_STATUS_LEAST || status > FB_STATUS_GREATEST)
        checked_report_call(
            NULL, call, "with %u: it is %u to %u", status, FB_STATUS_LEAST, FB_STATUS_GREATEST);
    return sdk_stream.set_status(conn, status);
}

static uint32_t checked_stream_status(const fb_conn *conn)
{
    conn = checked_conn(conn, "stream.status");
    return conn != NULL ? sdk_stream.status(conn) : 0;
}

static void checked_stream_count(fb_conn *conn, uint64_t received, uint64_t sent)
{
    conn = checked_conn(conn, "stream.count");
    if (conn != NULL)
        sdk_stream.count(conn, received, sent);
}

static int checked_stream_pass(fb_conn *conn, const fb_listener *listener)
{
    static const char call[] = "stream.pass";

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, listener, "listener"))
        return -1;
    return sdk_stream.pass(conn, listener);
}

const fb_stream checked_stream = {
    .size = sizeof(fb_stream),
    .get = checked_stream_get,
    .set = checked_stream_set,
    .evaluate = checked_stream_evaluate,
    .set_status = checked_stream_set_status,
    .status = checked_stream_status,
    .count = checked_stream_count,
    .pass = checked_stream_pass,
};

const void *checked_interface(fb_worker *worker, const char *name, uint32_t version)
{
    const void *table;

    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !checked_given(CHECKED_CALL, name, "name"))
        return NULL;
    table = fb_interface(worker, name, version);
    if (table == &sdk_upstreams)
        return &checked_upstreams;
    return table == &sdk_stream ? &checked_stream : table;
}
