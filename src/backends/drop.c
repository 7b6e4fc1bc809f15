/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends sessions whose server is out. A timer polls states of servers, written by any process. */
#include "backends/drop.h"

#include "session/end.h"
#include "upstream/drop.h"

/* Poll interval: half of the time until a server's sessions are to know. */
#define LOOK_MS 500
/* Limit of sessions ended in a turn, and the pause until the next turn. */
#define TURN_SESSIONS 512
#define TURN_MS 20

/* Returns the setting of the session's group, or else of the session's server. */
static const struct upstream_drop *drop_of_tries(
    const struct session_tries *tries, const struct server *server)
{
    const struct upstream_drop *drop = &tries->choice.upstream->drop;

    return drop->way != UPSTREAM_DROP_UNSET ? drop : &server->settings.drop;
}

/* Ends a session of a server that is out, in time; but not during the connect. */
static void drop_session(struct fb_conn *conn, void *arg)
{
    unsigned *left = arg;
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);
    const struct peer *peer = tries != NULL && tries->choice.is_watched ? tries->choice.peer : NULL;
    uint64_t over;

    if (*left == 0 || peer == NULL || peer->out_ms == 0 ||
        tries->choice.connected_ms == CHOICE_NO_TIME)
        return;
    over = session_spread(conn, (uint64_t)drop_of_tries(tries, session_server_of(conn))->over);
    if (conn->net->loop.clock.mono_ms - peer->out_ms < over)
        return;
    --*left;
    session_end_note(conn, SESSION_END_DROPPED);
    conn_fail(conn, FB_DRAINED);
}

static void look(struct loop *loop, struct timer *timer)
{
    struct stream *stream = container_of(timer, struct stream, drop);
    enum drop_found found = drop_look(&stream->upstreams);
    unsigned left = TURN_SESSIONS;

    if (found != DROP_NONE)
        timer_set(loop, timer, LOOK_MS);
    if (found == DROP_OUT)
        net_each(&stream->net, drop_session, &left);
    if (left == 0)
        timer_set(loop, timer, TURN_MS);
}

void backend_drop_watch(struct session_tries *tries)
{
    struct stream *stream = stream_of(tries->client);
    const struct upstream *upstream = tries->choice.upstream;

    if (upstream->is_of_session || upstream->peers->is_plain ||
        drop_of_tries(tries, session_server_of(tries->client))->way != UPSTREAM_DROP_ON)
        return;
    choice_watch(&tries->choice);
    stream->drop.expired = look;
    if (!timer_is_set(&stream->drop))
        timer_set(&stream->net.loop, &stream->drop, LOOK_MS);
}
