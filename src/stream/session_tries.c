/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins and ends the tries of a session. The group that a text with variables names is found at
 * the first; the key of a `hash` is worked out then, too. */
#include "stream/session_tries.h"

#include "base/compiler.h"
#include "stream/session_upstream.h"
#include "stream/template.h"
#include "upstream/peers.h"
#include "upstream/queue.h"

#include <string.h>

static struct session_tries *tries_of(const struct fb_conn *client)
{
    const struct session_record *record = session_record_of(client);

    assert(!client->outgoing);
    return record != NULL ? record->tries : NULL;
}

/* Works out the key of the group's balancer; -1 without memory. */
static int find_key(struct fb_conn *client, struct choice *choice)
{
    const struct template *key = choice->upstream->balance.key;
    struct value value;

    if (key == NULL)
        return 0;
    if (template_value(client, key, &value) == -1)
        return -1;
    choice->key = (fb_bytes) { (const uint8_t *)value.p, value.n };
    return 0;
}

/* Begins the session's choice; *status has the reason where it returns NULL. */
static struct session_tries *begin(
    struct fb_conn *client, const struct fb_upstream *where, fb_choice *status)
{
    struct session_tries *tries = session_keep(client, sizeof(*tries));
    struct upstream *upstream;

    *status = FB_CHOICE_NO_MEMORY;
    if (tries == NULL)
        return NULL;
    memset(tries, 0, sizeof(*tries));
    tries->client = client;
    upstream = session_upstream_find(client, where, status);
    if (upstream == NULL)
        return NULL;
    choice_begin(&tries->choice, &stream_of(client)->upstreams, upstream);
    if (find_key(client, &tries->choice) == -1) {
        *status = FB_CHOICE_NO_MEMORY;
        session_upstream_close(upstream);
        return NULL;
    }
    session_record_of(client)->tries = tries;
    return tries;
}

/* Returns the address's text, which is to last as long as the session: that of a peer does not,
 * unless the configuration has it. NULL without memory. */
static const char *keep_address(struct fb_conn *client, const struct peer *peer)
{
    const char *text = peer->target.text;
    char *copy;

    if (likely(peer->server->target != NULL))
        return peer->server->target->text;
    copy = session_keep(client, strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Adds what the variables show of a try; false without memory. */
static bool add(struct session_tries *tries, const char *address, uint64_t lasted_ms)
{
    struct session_try *next = &tries->first;

    if (tries->last != NULL) {
        next = session_keep(tries->client, sizeof(*next));
        if (next == NULL)
            return false;
        tries->last->next = next;
    }
    *next = (struct session_try) { .address = address,
        .connected_ms = FB_NO_TIME,
        .first_byte_ms = FB_NO_TIME,
        .lasted_ms = lasted_ms };
    tries->last = next;
    return true;
}

/* Shows the group in the place of a server that might have been left, as nginx does. */
static COLD fb_choice show_group(struct session_tries *tries)
{
    if (tries->last != NULL && tries->choice.left == 0)
        return FB_CHOICE_NONE;
    return add(tries, tries->choice.upstream->name, 0) ? FB_CHOICE_NONE : FB_CHOICE_NO_MEMORY;
}

/* Begins a try where a server was chosen. */
static fb_choice take(struct session_tries *tries, fb_choice status)
{
    const struct peer *peer = tries->choice.peer;
    const char *address;

    if (status == FB_CHOICE_NONE)
        return show_group(tries);
    if (status != FB_CHOICE_SERVER)
        return status;
    address = keep_address(tries->client, peer);
    if (address == NULL || !add(tries, address, FB_NO_TIME)) {
        queue_end(&tries->choice, FB_TRY_UNUSED);
        return FB_CHOICE_NO_MEMORY;
    }
    tries->shown = (fb_try) {
        .target = &peer->target, .server = peer->server->name, .left = tries->choice.left
    };
    return status;
}

fb_choice session_tries_choose(struct fb_conn *client, const struct fb_upstream *upstream,
    session_chosen *chosen, const fb_try **out)
{
    struct session_tries *tries = tries_of(client);
    fb_choice status;

    assert(chosen != NULL && upstream != NULL);
    *out = NULL;
    if (tries == NULL) {
        tries = begin(client, upstream, &status);
        if (tries == NULL)
            return status;
    }
    if (unlikely(tries->choice.peer != NULL || tries->chosen != NULL)) {
        conn_log(client, LEVEL_ALERT, 0, "a server is chosen while a try of the session %s",
            tries->chosen != NULL ? "waits" : "runs");
        return FB_CHOICE_INVALID;
    }
    status = take(tries, queue_choose(&tries->choice));
    if (status == FB_CHOICE_SERVER)
        *out = &tries->shown;
    tries->chosen = status == FB_CHOICE_WAITS ? chosen : NULL;
    return status;
}

void session_tries_tell(struct choice *choice, fb_choice status)
{
    struct session_tries *tries = container_of(choice, struct session_tries, choice);
    struct fb_conn *client = tries->client;
    session_chosen *chosen = tries->chosen;

    assert(chosen != NULL && status != FB_CHOICE_WAITS);
    tries->chosen = NULL;
    status = take(tries, status);
    session_callback_begin(client, CALLBACK_CHOSEN);
    chosen(client, client->state, status, status == FB_CHOICE_SERVER ? &tries->shown : NULL);
    session_callback_end(client);
}

static uint64_t since_choice(const struct session_tries *tries)
{
    return stream_of(tries->client)->net.loop.clock.mono_ms - tries->choice.began_ms;
}

/* Returns the connection to the server that was made last; NULL: there is none. */
static const struct fb_conn *server_of(const struct fb_conn *client)
{
    const struct session_conn *child = TAILQ_FIRST(&session_conn_of(client)->children);

    return child != NULL ? child->conn : NULL;
}

void session_tries_connected(struct fb_conn *client)
{
    struct session_tries *tries = tries_of(client);

    if (tries == NULL || tries->choice.peer == NULL)
        return;
    choice_connected(&tries->choice);
    tries->last->connected_ms = tries->choice.connected_ms;
    if (unlikely(session_log_wants(client, LEVEL_INFO)) && server_of(client) != NULL)
        session_log_connected(client, server_of(client));
}

void session_tries_first_byte(struct fb_conn *client)
{
    struct session_tries *tries = tries_of(client);

    if (tries == NULL || tries->choice.peer == NULL)
        return;
    choice_first_byte(&tries->choice);
    tries->last->first_byte_ms = tries->choice.first_byte_ms;
}

void session_tries_end(struct fb_conn *client, const struct fb_conn *server, fb_try_end how)
{
    struct session_tries *tries = tries_of(client);

    if (tries == NULL || tries->choice.peer == NULL)
        return;
    tries->last->lasted_ms = since_choice(tries);
    if (server != NULL) {
        tries->last->sent = server->sent;
        tries->last->received = server->received;
        choice_count(&tries->choice, server->sent, server->received);
        tries->upstream_ended = server->reason == FB_PEER_GONE || server->reason == FB_RESET;
    }
    queue_end(&tries->choice, how);
}

COLD void session_tries_describe(const struct fb_conn *conn, struct log_line *line)
{
    const struct fb_conn *client = session_client_of(conn), *server;
    const struct session_tries *tries = client->outgoing ? NULL : tries_of(client);

    if (tries == NULL)
        return;
    server = conn->outgoing ? conn : server_of(client);
    line->relay = (struct log_relay) {
        .action = "connecting to upstream",
        .from_client = client->received,
        .to_client = client->sent,
        .from_upstream = server != NULL ? server->received : 0,
        .to_upstream = server != NULL ? server->sent : 0,
    };
    if (tries->last == NULL)
        return;
    line->upstream = tries->last->address;
    if (tries->last->connected_ms != FB_NO_TIME)
        line->relay.action = "proxying connection";
    if (server == NULL) {
        line->relay.from_upstream = tries->last->received;
        line->relay.to_upstream = tries->last->sent;
    }
}

void session_tries_clear(struct session_conn *session)
{
    struct session_tries *tries = session->record->tries;

    if (tries->choice.peer != NULL)
        session_tries_end(session->conn, NULL, FB_TRY_SERVED);
    else if (tries->chosen != NULL)
        queue_end(&tries->choice, FB_TRY_UNUSED);
    session_upstream_close(tries->choice.upstream);
    session->record->tries = NULL;
}

void *session_tries_keep(struct choice *choice, size_t n)
{
    return session_keep(container_of(choice, struct session_tries, choice)->client, n);
}

static void PRINTF_FORMAT(3, 4)
    put_line(struct log *log, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vput(log, line, format, args);
    va_end(args);
}

void session_tries_report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message)
{
    struct fb_conn *client = container_of(choice, struct session_tries, choice)->client;
    struct log_line line = { .level = level };
    char text[ADDRESS_TEXT];

    if (!session_log_wants(client, level))
        return;
    conn_log_line(client, &line, text);
    line.upstream = upstream;
    put_line(client->net->log, &line, "%s", message);
}
