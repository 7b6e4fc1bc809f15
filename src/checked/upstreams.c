/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "upstream" in the checked mode: a table of wrappers, as for "stream". A call with a
 * wrong argument does nothing after the report; a choice is then "no server is left". */
#include "sdk/upstreams.h"
#include "checked/calls.h"

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
    static const char call[] = "upstream.choose";
    struct checked_slot *slot;

    client = checked_conn(client, call);
    if (client == NULL || !checked_given(call, upstream, "upstream") ||
        !checked_given(call, (const void *)(uintptr_t)chosen, "chosen") ||
        !checked_given(call, out, "out"))
        return FB_CHOICE_NONE;
    slot = checked_slot_of(client);
    if (slot != NULL)
        slot->chosen = chosen;
    return sdk_upstreams.choose(client, upstream, slot != NULL ? is_chosen : chosen, out);
}

static void checked_upstreams_end_with_client(fb_conn *client)
{
    client = checked_conn(client, "upstream.end_with_client");
    if (client != NULL)
        sdk_upstreams.end_with_client(client);
}

static void checked_upstreams_connected(fb_conn *client)
{
    client = checked_conn(client, "upstream.connected");
    if (client != NULL)
        sdk_upstreams.connected(client);
}

static void checked_upstreams_first_byte(fb_conn *client)
{
    client = checked_conn(client, "upstream.first_byte");
    if (client != NULL)
        sdk_upstreams.first_byte(client);
}

static void checked_upstreams_end(fb_conn *client, const fb_conn *server, fb_try_end how)
{
    static const char call[] = "upstream.end";

    client = checked_conn(client, call);
    if (server != NULL)
        server = checked_conn(server, call);
    if (how < FB_TRY_SERVED || how > FB_TRY_SKIPPED)
        checked_report_call(NULL, call, "with %d, which is no fb_try_end", (int)how);
    else if (client != NULL)
        sdk_upstreams.end(client, server, how);
}

static const fb_probe *checked_upstreams_claim(
    fb_worker *worker, const fb_health_check *check, uint64_t *wait)
{
    static const char call[] = "upstream.claim";

    if (!checked_given(call, check, "check") || !checked_given(call, wait, "wait"))
        return NULL;
    return sdk_upstreams.claim(worker, check, wait);
}

static fb_verdict checked_upstreams_verdict(fb_conn *conn, const fb_probe *probe, fb_bytes answer)
{
    static const char call[] = "upstream.verdict";

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, probe, "probe"))
        return FB_VERDICT_FAILED;
    return sdk_upstreams.verdict(conn, probe, answer);
}

static void checked_upstreams_probed(
    fb_worker *worker, const fb_probe *probe, fb_probe_end how, const char *doing, int error)
{
    static const char call[] = "upstream.probed";

    if (how < FB_PROBE_PASSED || how > FB_PROBE_UNUSED)
        checked_report_call(NULL, call, "with %d, which is no fb_probe_end", (int)how);
    else if (checked_given(call, probe, "probe") && checked_given(call, doing, "doing"))
        sdk_upstreams.probed(worker, probe, how, doing, error);
}

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
