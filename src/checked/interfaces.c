/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces "stream", "upstream" and "metrics" in the checked mode: tables of wrappers,
 * because pointers lead to the calls and no relocation does. After a report a call answers as if
 * nothing was known; a choice is then "no server is left". */
#include "sdk/interfaces.h"
#include "checked/calls.h"
#include "sdk/handle.h"
#include "text/variable.h"

#include <assert.h>

const void *checked_interface(fb_worker *worker, const char *name, uint32_t version)
{
    const void *table;

    if (!WORKER(worker) || !GIVEN(name))
        return NULL;
    table = fb_interface(worker, name, version);
    if (table == &sdk_upstreams)
        return &checked_upstreams;
    if (table == &sdk_metrics)
        return &checked_metrics;
    return table == &sdk_stream ? &checked_stream : table;
}

/* Rows as in calls.def; the call is named "INTERFACE.NAME". */
#undef CHECKED_CALL
#define CHECKED_CALL called

#define INTERFACE_VALUE(name, signature, checks, call, otherwise)                                  \
    static signature                                                                               \
    {                                                                                              \
        static const char called[] = name;                                                         \
                                                                                                   \
        return (checks) ? call : otherwise;                                                        \
    }

#define INTERFACE_VOID(name, signature, checks, call)                                              \
    static signature                                                                               \
    {                                                                                              \
        static const char called[] = name;                                                         \
                                                                                                   \
        if (checks)                                                                                \
            call;                                                                                  \
    }

/* ---- stream ---- */

/* Whether the handle is a variable of the connection's configuration. */
static bool is_variable_handle(const fb_conn *conn, const fb_variable *handle, const char *call)
{
    struct variables *variables = sdk_worker_of(conn)->cycle->stream.variables;
    const struct variable *wanted = (const struct variable *)handle;
    struct variable *variable = NULL;

    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable == wanted && variable->index > 0)
            return true;
    return checked_report_call(NULL, call, "with a variable that is none of this configuration");
}

INTERFACE_VALUE("stream.get",
    int checked_stream_get(fb_conn *conn, const fb_variable *variable, fb_bytes *value),
    CONN(conn) && GIVEN(variable) && GIVEN(value) && is_variable_handle(conn, variable, called),
    sdk_stream.get(conn, variable, value), -1)
INTERFACE_VALUE("stream.set",
    int checked_stream_set(fb_conn *conn, const fb_variable *variable, fb_bytes value),
    CONN(conn) && GIVEN(variable) && is_variable_handle(conn, variable, called) &&
        BYTES(value.p, value.n, "value"),
    sdk_stream.set(conn, variable, value), -1)
INTERFACE_VALUE("stream.evaluate",
    int checked_stream_evaluate(fb_conn *conn, const fb_template *text, fb_bytes *out),
    CONN(conn) && GIVEN(text) && GIVEN(out), sdk_stream.evaluate(conn, text, out), -1)
INTERFACE_VALUE("stream.set_status", int checked_stream_set_status(fb_conn *conn, uint32_t status),
    CONN(conn) &&
        ((status >= FB_STATUS_LEAST && status <= FB_STATUS_GREATEST) ||
            REPORT("with %u, outside of %u to %u", status, FB_STATUS_LEAST, FB_STATUS_GREATEST)),
    sdk_stream.set_status(conn, status), -1)
INTERFACE_VALUE("stream.status", uint32_t checked_stream_status(const fb_conn *conn), CONN(conn),
    sdk_stream.status(conn), 0)
INTERFACE_VOID("stream.count",
    void checked_stream_count(fb_conn *conn, uint64_t received, uint64_t sent), CONN(conn),
    sdk_stream.count(conn, received, sent))
INTERFACE_VALUE("stream.pass", int checked_stream_pass(fb_conn *conn, const fb_listener *listener),
    CONN(conn) && GIVEN(listener), sdk_stream.pass(conn, listener), -1)
INTERFACE_VALUE("stream.tlvs", uint32_t checked_stream_tlvs(const fb_conn *conn, uint8_t *out),
    CONN(conn) && GIVEN(out), sdk_stream.tlvs(conn, out), 0)

const fb_stream checked_stream = {
    .size = sizeof(fb_stream),
    .get = checked_stream_get,
    .set = checked_stream_set,
    .evaluate = checked_stream_evaluate,
    .set_status = checked_stream_set_status,
    .status = checked_stream_status,
    .count = checked_stream_count,
    .pass = checked_stream_pass,
    .tlvs = checked_stream_tlvs,
};

/* ---- upstream ---- */

/* The protocol's callback is kept with the client's slot, because there is one wait at a time. */
static void is_chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run)
{
    struct checked_slot *slot = checked_slot_of(client);
    struct checked_scope scope;

    assert(slot != NULL && slot->chosen != NULL);
    checked_enter_conn(&scope, client, "chosen");
    slot->chosen(checked_handle_of(client), state, choice, run);
    checked_leave_conn(&scope, client);
}

static fb_choice checked_upstreams_choose(fb_conn *client, const fb_upstream *upstream,
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
    const fb_try **out)
{
    static const char called[] = "upstream.choose";
    struct checked_slot *slot;

    if (!CONN(client) || !GIVEN(upstream) || !GIVEN(chosen) || !GIVEN(out))
        return FB_CHOICE_NONE;
    slot = checked_slot_of(client);
    if (slot != NULL)
        slot->chosen = chosen;
    return sdk_upstreams.choose(client, upstream, slot != NULL ? is_chosen : chosen, out);
}

INTERFACE_VOID("upstream.end_with_client", void checked_upstreams_end_with_client(fb_conn *client),
    CONN(client), sdk_upstreams.end_with_client(client))
INTERFACE_VOID("upstream.connected", void checked_upstreams_connected(fb_conn *client),
    CONN(client), sdk_upstreams.connected(client))
INTERFACE_VOID("upstream.first_byte", void checked_upstreams_first_byte(fb_conn *client),
    CONN(client), sdk_upstreams.first_byte(client))
INTERFACE_VOID("upstream.end",
    void checked_upstreams_end(fb_conn *client, const fb_conn *server, fb_try_end how),
    CONN(client) && (server == NULL || CONN(server)) &&
        ((how >= FB_TRY_SERVED && how <= FB_TRY_SKIPPED) ||
            REPORT("with %d, not an fb_try_end", (int)how)),
    sdk_upstreams.end(client, server, how))
INTERFACE_VALUE("upstream.claim",
    const fb_probe *checked_upstreams_claim(
        fb_worker *worker, const fb_health_check *check, uint64_t *wait),
    GIVEN(check) && GIVEN(wait), sdk_upstreams.claim(worker, check, wait), NULL)
INTERFACE_VALUE("upstream.verdict",
    fb_verdict checked_upstreams_verdict(fb_conn *conn, const fb_probe *probe, fb_bytes answer),
    CONN(conn) && GIVEN(probe), sdk_upstreams.verdict(conn, probe, answer), FB_VERDICT_FAILED)
INTERFACE_VOID("upstream.probed",
    void checked_upstreams_probed(
        fb_worker *worker, const fb_probe *probe, fb_probe_end how, const char *doing, int error),
    ((how >= FB_PROBE_PASSED && how <= FB_PROBE_UNUSED) ||
        REPORT("with %d, not an fb_probe_end", (int)how)) &&
        GIVEN(probe) && GIVEN(doing),
    sdk_upstreams.probed(worker, probe, how, doing, error))

const fb_upstreams checked_upstreams = {
    .size = sizeof(fb_upstreams),
    .choose = checked_upstreams_choose,
    .connected = checked_upstreams_connected,
    .first_byte = checked_upstreams_first_byte,
    .end = checked_upstreams_end,
    .claim = checked_upstreams_claim,
    .verdict = checked_upstreams_verdict,
    .probed = checked_upstreams_probed,
    .end_with_client = checked_upstreams_end_with_client,
};

/* ---- metrics ---- */

INTERFACE_VALUE("metrics.next",
    int checked_metrics_next(fb_worker *worker, fb_sample_cursor *cursor, fb_sample *sample),
    WORKER(worker) && GIVEN(cursor) && GIVEN(sample), sdk_metrics.next(worker, cursor, sample), 0)

INTERFACE_VALUE("metrics.next_row",
    uint32_t checked_metrics_next_row(
        fb_worker *worker, fb_sample_cursor *cursor, fb_sample *samples),
    WORKER(worker) && GIVEN(cursor) && GIVEN(samples),
    sdk_metrics.next_row(worker, cursor, samples), 0)

const fb_metrics checked_metrics = {
    .size = sizeof(fb_metrics),
    .next = checked_metrics_next,
    .next_row = checked_metrics_next_row,
};
