/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "upstream": the servers for a client. Every call asks for the client first; for a
 * connection without a client the answer is as if no server was left. The checks of servers are the
 * worker's. */
#include "sdk/upstreams.h"

#include "backends/tries.h"
#include "features/health/match.h"
#include "sdk/handle.h"
#include "upstream/health.h"
#include "upstream/refresh.h"

#include <assert.h>
#include <errno.h>

static fb_choice upstreams_choose(fb_conn *client, const fb_upstream *upstream,
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
    const fb_try **out)
{
    assert(chosen != NULL && out != NULL);
    *out = NULL;
    if (!sdk_handle_check(client, "fb_upstreams.choose") || client->outgoing ||
        !conn_is_active(client))
        return FB_CHOICE_NONE;
    return tries_choose(client, upstream, chosen, out);
}

static void upstreams_end_with_client(fb_conn *client)
{
    if (sdk_handle_check(client, "fb_upstreams.end_with_client") && !client->outgoing)
        tries_end_with_client(client);
}

static void upstreams_connected(fb_conn *client)
{
    if (sdk_handle_check(client, "fb_upstreams.connected") && !client->outgoing)
        tries_connected(client);
}

static void upstreams_first_byte(fb_conn *client)
{
    if (sdk_handle_check(client, "fb_upstreams.first_byte") && !client->outgoing)
        tries_first_byte(client);
}

static void upstreams_end(fb_conn *client, const fb_conn *server, fb_try_end how)
{
    assert(how >= FB_TRY_SERVED && how <= FB_TRY_SKIPPED);
    if (sdk_handle_check(client, "fb_upstreams.end") && !client->outgoing)
        tries_end(client, server, how);
}

/* The checks of servers */

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
    if (match != NULL) {
        probe->shown.send = (fb_bytes) { (const uint8_t *)match->send.p, match->send.n };
        probe->shown.expects = match_expects(match);
    }
    return &probe->shown;
}

static fb_verdict upstreams_verdict(fb_conn *conn, const fb_probe *probe, fb_bytes answer)
{
    const struct match *match = probe_of(probe)->check->match;

    if (!sdk_handle_check(conn, "fb_upstreams.verdict") || answer.n == 0)
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
