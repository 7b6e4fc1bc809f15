/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends the tries of a session. The first finds the group, and the key of a `hash`. */
#include "backends/tries.h"

#include "backends/drop.h"
#include "backends/group.h"
#include "base/compiler.h"
#include "session/secure.h"
#include "text/template.h"
#include "upstream/peers.h"
#include "upstream/queue.h"
#include "upstream/refresh.h"

#include <string.h>

/* Tries are part of each proxied session. */
static_assert(sizeof(struct session_tries) <= 72, "a proxied session has become dearer");

/* Works out the key for the group's balancer, which needs a key; -1 without memory. */
static NOINLINE int find_balance_key(struct fb_conn *client, struct choice *choice)
{
    const struct template *key = choice->upstream->balance.key;
    struct choice_more *more = choice_make_more(choice);
    struct value value;

    if (more == NULL || template_value(client, key, &value) == -1)
        return -1;
    more->key = (fb_bytes) { (const uint8_t *)value.p, value.n };
    return 0;
}

/* Begins the choice of a session in a group; NULL without memory. */
static inline struct session_tries *begin_in(
    struct stream *stream, struct session_conn *session, struct upstream *upstream)
{
    struct session_tries *tries = spares_take(&stream->tries);
    struct fb_conn *client = session->conn;

    if (unlikely(tries == NULL)) {
        backend_group_close(upstream);
        return NULL;
    }
    tries->client = client;
    tries->ended = NULL;
    choice_begin(&tries->choice, upstream);
    container_of(session, struct session_client, session)->tries = tries;
    if (likely(upstream->balance.key == NULL || find_balance_key(client, &tries->choice) == 0))
        return tries;
    tries_clear(session);
    return NULL;
}

/* Begins the tries in the group named by a text; returns the reason where there is no group. */
static NOINLINE fb_choice begin_by_text(
    struct stream *stream, struct session_conn *session, const struct fb_upstream *where)
{
    fb_choice status = FB_CHOICE_NO_MEMORY;
    struct upstream *upstream = backend_group_find(session->conn, where, &status);

    if (upstream == NULL && status == FB_CHOICE_INVALID)
        session_end_note(session->conn, SESSION_END_NO_UPSTREAM);
    if (upstream != NULL && begin_in(stream, session, upstream) == NULL)
        status = FB_CHOICE_NO_MEMORY;
    return status;
}

/* Returns the text of the address, with the session's lifetime; NULL without memory. */
static const char *keep_address(struct fb_conn *client, const struct peer *peer)
{
    const char *text = peer->target.text;
    char *copy;

    if (likely(peer->server->target != NULL))
        return peer->server->target->text;
    copy = session_keep(client, strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Adds an ended try, which the caller fills in wholly; NULL without memory. */
static inline struct session_try *add_ended(struct session_tries *tries)
{
    struct session_try **place = &tries->ended;
    struct session_try *run = spares_take(&stream_of(tries->client)->ended_tries);

    if (unlikely(run == NULL))
        return NULL;
    while (unlikely(*place != NULL))
        place = &(*place)->next;
    return *place = run;
}

/* Fills in the running try; NULL: none. */
static const struct session_try *running_try(
    const struct session_tries *tries, struct session_try *out)
{
    const struct choice *choice = &tries->choice;

    if (choice->peer == NULL)
        return NULL;
    *out = (struct session_try) {
        .address = choice->peer->target.text,
        .lasted_ms = FB_NO_TIME,
        .connected_ms = choice->connected_ms,
        .first_byte_ms = choice->first_byte_ms,
    };
    return out;
}

const struct session_try *tries_next(
    const struct session_tries *tries, const struct session_try *run, struct session_try *running)
{
    const struct session_try *next = run != NULL ? run->next : tries->ended;

    return next != NULL || run == running ? next : running_try(tries, running);
}

/* Returns the latest try, or NULL; *running as above. */
static const struct session_try *last_try(
    const struct session_tries *tries, struct session_try *running)
{
    const struct session_try *last = NULL, *next;

    while ((next = tries_next(tries, last, running)) != NULL)
        last = next;
    return last;
}

unsigned tries_last_end(const struct session_tries *tries)
{
    const struct session_try *run = tries->ended;

    while (run != NULL && run->next != NULL)
        run = run->next;
    return run != NULL ? run->end : SESSION_END_NONE;
}

/* Returns why the group has no server for a session. */
static enum session_end end_without_server(const struct choice *choice)
{
    enum wait_reason given_up = choice->more != NULL ? choice->more->given_up : WAIT_REASONS;

    if (given_up == WAIT_FOR_ROOM)
        return SESSION_END_QUEUE_TIMEOUT;
    if (given_up == WAIT_FOR_NAME || choice->upstream->peers->n == 0)
        return SESSION_END_UNRESOLVED;
    return SESSION_END_NO_UPSTREAM;
}

/* Shows the group in the place of a server that might have been left, as nginx does. */
static COLD fb_choice show_group(struct session_tries *tries)
{
    struct session_try *group;

    if (tries->ended != NULL && tries->choice.left == 0)
        return FB_CHOICE_NONE;
    group = add_ended(tries);
    if (group == NULL)
        return FB_CHOICE_NO_MEMORY;
    *group = (struct session_try) {
        .address = tries->choice.upstream->name,
        .connected_ms = CHOICE_NO_TIME,
        .first_byte_ms = CHOICE_NO_TIME,
        .end = (uint8_t)end_without_server(&tries->choice),
    };
    return FB_CHOICE_NONE;
}

/* Shows the protocol a begun try, in memory that all sessions share. */
static fb_choice show_try(
    struct stream *stream, struct session_tries *tries, fb_choice status, const fb_try **out)
{
    const struct server *server = session_server_of(tries->client);
    const struct upstream *upstream = tries->choice.upstream;
    const struct peer *peer = tries->choice.peer;
    fb_try *shown = &stream->shown_try;

    *out = NULL;
    if (status == FB_CHOICE_NONE)
        return show_group(tries);
    if (status == FB_CHOICE_INVALID)
        session_end_note(tries->client, end_without_server(&tries->choice));
    if (status != FB_CHOICE_SERVER)
        return status;
    *shown = (fb_try) {
        .target = &peer->target,
        .server = peer->server->name,
        .left = tries->choice.left,
        .wants_first_byte = 1, /* for the statistics */
        .host = upstream->name,
    };
    if (unlikely(upstream->drop.way == UPSTREAM_DROP_ON ||
                 server->settings.drop.way == UPSTREAM_DROP_ON))
        backend_drop_watch(tries);
    *out = shown;
    return status;
}

/* Asks the balancer, and shows the protocol the outcome. */
static inline fb_choice choose(
    struct stream *stream, struct session_tries *tries, session_chosen *chosen, const fb_try **out)
{
    struct upstream *upstream = tries->choice.upstream;
    struct session_record *record;
    fb_choice status;

    if (unlikely(upstream->refreshes != NULL))
        refresh_group(&stream->upstreams, upstream);
    status = likely(upstream->waiting == NULL) ? choice_next(&tries->choice)
                                               : queue_choose(&tries->choice);
    if (unlikely(status == FB_CHOICE_NONE))
        status = queue_wait(&tries->choice);
    status = show_try(stream, tries, status, out);
    if (likely(status != FB_CHOICE_WAITS))
        return status;
    record = session_record_create(tries->client->session);
    if (record == NULL) {
        queue_end(&tries->choice, FB_TRY_UNUSED);
        return FB_CHOICE_NO_MEMORY;
    }
    record->chosen = chosen;
    return status;
}

fb_choice tries_choose(struct fb_conn *client, const struct fb_upstream *upstream,
    session_chosen *chosen, const fb_try **out)
{
    struct session_conn *session = session_conn_make(client);
    struct session_tries *tries = session_tries_of(client);
    struct stream *stream = stream_of(client);
    fb_choice status = FB_CHOICE_NO_MEMORY;

    assert(chosen != NULL && upstream != NULL);
    *out = NULL;
    if (unlikely(session == NULL))
        return FB_CHOICE_NO_MEMORY;
    if (unlikely(tries != NULL && (tries->choice.peer != NULL || choice_waits(&tries->choice)))) {
        conn_log(client, LEVEL_ALERT, 0, "a server is chosen while a try of the session %s",
            choice_waits(&tries->choice) ? "waits" : "runs");
        return FB_CHOICE_INVALID;
    }
    if (tries == NULL && likely(upstream->upstream != NULL)) {
        tries = begin_in(stream, session, upstream->upstream);
    } else if (tries == NULL) {
        status = begin_by_text(stream, session, upstream);
        tries = session_tries_of(client);
    }
    return likely(tries != NULL) ? choose(stream, tries, chosen, out) : status;
}

void tries_end_with_client(struct fb_conn *client)
{
    const struct session_tries *tries = session_tries_of(client);

    if (tries != NULL && choice_waits(&tries->choice))
        conn_end_with_peer(client, true);
}

void tries_tell(struct choice *choice, fb_choice status)
{
    struct session_tries *tries = container_of(choice, struct session_tries, choice);
    struct fb_conn *client = tries->client;
    session_chosen *chosen = session_record_of(client)->chosen;
    const fb_try *run;

    assert(chosen != NULL && status != FB_CHOICE_WAITS);
    conn_end_with_peer(client, false);
    status = show_try(stream_of(client), tries, status, &run);
    session_callback_begin(client, CALLBACK_CHOSEN);
    chosen(client, client->state, status, run);
    session_callback_end(client);
}

/* Returns the latest connection to the server; NULL: there is none. */
static const struct fb_conn *server_of(const struct fb_conn *client)
{
    const struct session_outgoing *child = LIST_FIRST(&client->session->children);

    return child != NULL ? child->session.conn : NULL;
}

void tries_connected(struct fb_conn *client)
{
    struct session_tries *tries = session_tries_of(client);

    if (tries == NULL || tries->choice.peer == NULL)
        return;
    choice_connected(&tries->choice);
    if (conn_logs(client, LEVEL_INFO) && server_of(client) != NULL)
        session_log_connected(client, server_of(client));
}

void tries_first_byte(struct fb_conn *client)
{
    struct session_tries *tries = session_tries_of(client);

    if (tries != NULL && tries->choice.peer != NULL)
        choice_first_byte(&tries->choice);
}

void tries_server_first_byte(struct fb_conn *server)
{
    const struct session_conn *parent = session_parent_of(server->session);

    if (parent != NULL && !parent->is_outgoing)
        tries_first_byte(parent->conn);
}

/* Returns how the end of the server's connection ends the session, if at all. */
static enum session_end end_by_server(const struct choice *choice, const struct fb_conn *server)
{
    bool connected = choice->connected_ms != CHOICE_NO_TIME;

    switch (server->reason) {
    case FB_PEER_GONE:
        return connected ? SESSION_END_UPSTREAM_EOF : SESSION_END_CONNECT_FAILED;
    case FB_RESET:
    case FB_IO_ERROR:
        return connected ? SESSION_END_UPSTREAM_RESET : SESSION_END_CONNECT_FAILED;
    case FB_REFUSED:
        return SESSION_END_CONNECT_REFUSED;
    case FB_TIMED_OUT:
    case FB_TLS_TIMED_OUT:
        return connected ? SESSION_END_NONE : SESSION_END_CONNECT_TIMEOUT;
    case FB_TLS_FAILED:
        return SESSION_END_UPSTREAM_TLS_FAILED;
    default:
        return SESSION_END_NONE;
    }
}

/* Keeps the numbers of the ending try; without memory the try is left out. */
static void keep_ended(struct session_tries *tries, const struct fb_conn *server)
{
    const struct choice *choice = &tries->choice;
    const char *address = keep_address(tries->client, choice->peer);
    struct session_try *run = address != NULL ? add_ended(tries) : NULL;

    if (unlikely(run == NULL))
        return;
    *run = (struct session_try) {
        .address = address,
        .lasted_ms = choice_now(choice) - choice->began_ms,
        .connected_ms = choice->connected_ms,
        .first_byte_ms = choice->first_byte_ms,
    };
    if (server == NULL)
        return;
    run->sent = server->sent;
    run->received = server->received;
    run->end = (uint8_t)end_by_server(choice, server);
}

/* Adds a connection to the server's numbers. */
static inline void count_server(struct session_tries *tries, const struct fb_conn *server)
{
    struct choice *choice = &tries->choice;

    if (unlikely(server->received == 0 && tries->client->received > 0))
        choice_note_silence(choice);
    if (likely(server->reason == 0 || server->reason == FB_PEER_GONE))
        return;
    switch (end_by_server(choice, server)) {
    case SESSION_END_UPSTREAM_RESET:
        choice_count_trouble(choice, PEER_RESET);
        break;
    case SESSION_END_CONNECT_TIMEOUT:
        choice_count_trouble(choice, PEER_TIMED_OUT);
        break;
    case SESSION_END_CONNECT_REFUSED:
        choice_count_trouble(choice, PEER_REFUSED);
        break;
    default:
        break;
    }
}

void tries_end(struct fb_conn *client, const struct fb_conn *server, fb_try_end how)
{
    struct session_tries *tries = session_tries_of(client);

    if (tries == NULL || tries->choice.peer == NULL)
        return;
    keep_ended(tries, server);
    if (server != NULL)
        count_server(tries, server);
    queue_end(&tries->choice, how);
}

/* Names the activity of a session's connection; last: the session's last try, or NULL; server: the
 * connection to the server, or NULL. */
static COLD const char *action_of(const struct fb_conn *conn, const struct fb_conn *server,
    const struct session_try *last, enum log_transfer transfer)
{
    static const char *const actions[][2] = {
        [LOG_NO_TRANSFER] = { "proxying connection", "proxying connection" },
        [LOG_RECEIVING] = { "proxying and reading from client",
            "proxying and reading from upstream" },
        [LOG_SENDING] = { "proxying and sending to client", "proxying and sending to upstream" },
    };

    if ((last == NULL || last->connected_ms == CHOICE_NO_TIME) && server != NULL &&
        (session_is_handshaking(server) || server->source.layered))
        return "SSL handshaking to upstream";
    if (last == NULL || last->connected_ms == CHOICE_NO_TIME)
        return "connecting to upstream";
    return actions[transfer][conn->outgoing];
}

COLD void tries_describe(const struct fb_conn *conn, struct log_line *line)
{
    const struct fb_conn *client = session_client_of(conn), *server;
    const struct session_tries *tries = client->outgoing ? NULL : session_tries_of(client);
    const struct session_try *last;
    struct session_try running;

    if (tries == NULL)
        return;
    server = conn->outgoing ? conn : server_of(client);
    last = last_try(tries, &running);
    line->relay = (struct log_relay) {
        .action = action_of(conn, server, last, line->transfer),
        .from_client = client->received,
        .to_client = client->sent,
        .from_upstream = server != NULL ? server->received : 0,
        .to_upstream = server != NULL ? server->sent : 0,
    };
    if (last == NULL)
        return;
    line->upstream = last->address;
    if (server == NULL) {
        line->relay.from_upstream = last->received;
        line->relay.to_upstream = last->sent;
    }
}

void tries_clear(struct session_conn *session)
{
    struct stream *stream = stream_of(session->conn);
    struct session_tries *tries = session_tries_of(session->conn);
    struct session_try *run;

    if (tries->choice.peer != NULL || choice_waits(&tries->choice))
        queue_end(&tries->choice, tries->choice.peer != NULL ? FB_TRY_SERVED : FB_TRY_UNUSED);
    while ((run = tries->ended) != NULL) {
        tries->ended = run->next;
        spares_give(&stream->ended_tries, run);
    }
    choice_done(&tries->choice);
    backend_group_close(tries->choice.upstream);
    container_of(session, struct session_client, session)->tries = NULL;
    spares_give(&stream->tries, tries);
}

void tries_report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message)
{
    struct fb_conn *client = container_of(choice, struct session_tries, choice)->client;
    struct log_line line = { .level = level };
    char text[ADDRESS_TEXT];

    if (!conn_logs(client, level))
        return;
    conn_log_line(client, &line, text);
    line.upstream = upstream;
    session_log_put(client->net->log, &line, "%s", message);
}
