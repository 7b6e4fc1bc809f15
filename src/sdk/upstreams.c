/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "upstream": the servers that a client may be connected with. Each call asks for the
 * client first; a connection that is none is answered as if no server was left. */
#include "sdk/upstreams.h"

#include "sdk/handle.h"
#include "stream/session_tries.h"

#include <assert.h>

static fb_choice upstreams_choose(fb_conn *client, const fb_upstream *upstream,
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
    const fb_try **out)
{
    assert(chosen != NULL && out != NULL);
    *out = NULL;
    if (!sdk_handle_check(client, "fb_upstreams.choose") || client->outgoing ||
        !conn_is_active(client))
        return FB_CHOICE_NONE;
    return session_tries_choose(client, upstream, chosen, out);
}

static void upstreams_connected(fb_conn *client)
{
    if (sdk_handle_check(client, "fb_upstreams.connected") && !client->outgoing)
        session_tries_connected(client);
}

static void upstreams_first_byte(fb_conn *client)
{
    if (sdk_handle_check(client, "fb_upstreams.first_byte") && !client->outgoing)
        session_tries_first_byte(client);
}

static void upstreams_end(fb_conn *client, const fb_conn *server, fb_try_end how)
{
    assert(how >= FB_TRY_SERVED && how <= FB_TRY_UNUSED);
    if (sdk_handle_check(client, "fb_upstreams.end") && !client->outgoing)
        session_tries_end(client, server, how);
}

const fb_upstreams sdk_upstreams = {
    .size = sizeof(fb_upstreams),
    .choose = upstreams_choose,
    .connected = upstreams_connected,
    .first_byte = upstreams_first_byte,
    .end = upstreams_end,
};
