/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces of the SDK: "stream", a protocol's session as known to stream {}, "upstream", the
 * servers for a client and the checks of servers, and "metrics" (samples.c). Calls first ask for
 * the session's client; for a worker's own connection the answer is as of an unknown session, or as
 * if no server was left. Never runs a protocol's callback but `value` of a variable. */
#include "sdk/interfaces.h"

#include "backends/tries.h"
#include "features/health/match.h"
#include "features/pass/pass.h"
#include "features/ssl/tlvs.h"
#include "sdk/handle.h"
#include "session/record.h"
#include "text/template.h"
#include "text/variable.h"
#include "upstream/health.h"
#include "upstream/refresh.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- stream ---- */

/* Returns the client of the connection's session, after a report NULL. */
static struct fb_conn *stream_client_of(const fb_conn *conn, const char *call)
{
    struct fb_conn *client;

    if (!SDK_VALID_FOR(conn, call))
        return NULL;
    client = session_client_of(conn);
    return client->outgoing ? NULL : client;
}

static fb_bytes value_bytes(const struct value *value)
{
    return (fb_bytes) { (const uint8_t *)value->p, value->n };
}

static int stream_get_variable(fb_conn *conn, const fb_variable *variable, fb_bytes *value)
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

static int stream_set_variable(fb_conn *conn, const fb_variable *handle, fb_bytes value)
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

static uint32_t stream_tlvs(const fb_conn *conn, uint8_t *out)
{
    const struct fb_conn *client = stream_client_of(conn, "fb_stream.tlvs");

    return client != NULL ? ssl_tlvs_write(client, out) : 0;
}

const fb_stream sdk_stream = {
    .size = sizeof(fb_stream),
    .get = stream_get_variable,
    .set = stream_set_variable,
    .evaluate = stream_evaluate,
    .set_status = stream_set_status,
    .status = stream_status,
    .count = stream_count,
    .pass = stream_pass,
    .tlvs = stream_tlvs,
};

/* ---- upstream ---- */

/* Whether the call, named for the report, may go on, of a client. */
#define IS_CLIENT(conn, call) (SDK_VALID_FOR(conn, call) && !(conn)->outgoing)

static fb_choice upstreams_choose(fb_conn *client, const fb_upstream *upstream,
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
    const fb_try **out)
{
    assert(chosen != NULL && out != NULL);
    *out = NULL;
    return IS_CLIENT(client, "fb_upstreams.choose") && conn_is_active(client)
               ? tries_choose(client, upstream, chosen, out)
               : FB_CHOICE_NONE;
}

static void upstreams_end_with_client(fb_conn *client)
{
    if (IS_CLIENT(client, "fb_upstreams.end_with_client"))
        tries_end_with_client(client);
}

static void upstreams_connected(fb_conn *client)
{
    if (IS_CLIENT(client, "fb_upstreams.connected"))
        tries_connected(client);
}

static void upstreams_first_byte(fb_conn *client)
{
    if (IS_CLIENT(client, "fb_upstreams.first_byte"))
        tries_first_byte(client);
}

static void upstreams_end(fb_conn *client, const fb_conn *server, fb_try_end how)
{
    assert(how >= FB_TRY_SERVED && how <= FB_TRY_SKIPPED);
    if (IS_CLIENT(client, "fb_upstreams.end"))
        tries_end(client, server, how);
}

static struct health_probe *probe_of(const fb_probe *shown)
{
    struct health_probe *probe = container_of(shown, struct health_probe, shown);

    CHECK_KIND(probe, PROBE_KIND);
    return probe;
}

static const fb_probe *upstreams_claim(
    fb_worker *worker, const fb_health_check *check, uint64_t *wait)
{
    struct stream *stream = &worker->worker->stream;
    const struct match *match = check->check->match;
    struct health_probe *probe = NULL;

    *wait = HEALTH_RETRY_MS;
    if (check->upstream->refreshes != NULL)
        refresh_group(&stream->upstreams, check->upstream);
    if (!stream->draining)
        probe = health_claim(&stream->upstreams, check->upstream, check->check, wait);
    if (probe == NULL)
        return NULL;
    probe->is_early = worker->worker->phase < WORKER_SERVING;
    probe->shown.host = check->upstream->name;
    if (match != NULL) {
        probe->shown.send = (fb_bytes) { (const uint8_t *)match->send.p, match->send.n };
        probe->shown.expects = match_expects(match);
    }
    return &probe->shown;
}

static fb_verdict upstreams_verdict(fb_conn *conn, const fb_probe *probe, fb_bytes answer)
{
    const struct match *match = probe_of(probe)->check->match;

    if (!SDK_VALID_FOR(conn, "fb_upstreams.verdict") || answer.n == 0)
        return FB_VERDICT_MORE;
    if (match == NULL || !match_expects(match))
        return FB_VERDICT_PASSED;
    switch (match_test(match, conn, (const char *)answer.p, answer.n)) {
    case MATCH_FOUND:
        return FB_VERDICT_PASSED;
    case MATCH_MORE:
        return FB_VERDICT_MORE;
    default:
        return FB_VERDICT_FAILED;
    }
}

/* Whether the server may be a server of this daemon, without a listener until the workers serve. */
static bool listens_later(const struct health_probe *probe, int error)
{
    return probe->is_early && (error == ECONNREFUSED || error == ENOENT);
}

static void upstreams_probed(
    fb_worker *worker, const fb_probe *probe, fb_probe_end how, const char *doing, int error)
{
    struct health_probe *run = probe_of(probe);

    assert(how >= FB_PROBE_PASSED && how <= FB_PROBE_UNUSED && doing != NULL);
    if (how == FB_PROBE_FAILED && listens_later(run, error))
        how = FB_PROBE_UNUSED;
    health_end(&worker->worker->stream.upstreams, run, how, doing, error);
}

const fb_upstreams sdk_upstreams = {
    .size = sizeof(fb_upstreams),
    .choose = upstreams_choose,
    .connected = upstreams_connected,
    .first_byte = upstreams_first_byte,
    .end = upstreams_end,
    .claim = upstreams_claim,
    .verdict = upstreams_verdict,
    .probed = upstreams_probed,
    .end_with_client = upstreams_end_with_client,
};

const void *fb_interface(fb_worker *worker, const char *name, uint32_t version)
{
    assert(worker->worker != NULL);
    if (name == NULL || version != 1)
        return NULL;
    if (strcmp(name, "upstream") == 0)
        return &sdk_upstreams;
    if (strcmp(name, "metrics") == 0)
        return &sdk_metrics;
    return strcmp(name, "stream") == 0 ? &sdk_stream : NULL;
}
