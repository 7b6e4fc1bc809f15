/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies with events of the master's ring. A follower waits as for an outcome, and is sent a line
 * when it has taken the line before: the ring keeps the events of the meantime, and the next line
 * tells how many the ring has lost. No timer runs, and a follower holds one reply at most. */
#include "control/events.h"

#include "pool/layout.h"

#include <stdio.h>
#include <time.h>

/* Fewer than may wait, so that followers leave room for clients of commands. */
#define FOLLOWERS_MAX 8

static const struct event_log *events_of(const struct control_client *client)
{
    return client->control->pool->log->event_log;
}

static bool has_most_followers(const struct control_client *client)
{
    const struct control_client *other;
    unsigned n = 0;

    TAILQ_FOREACH (other, &client->control->clients, link)
        n += other->waiting_for == CONTROL_WAIT_EVENTS;
    return n >= FOLLOWERS_MAX || control_is_waiting_full(client);
}

static void write_event(const struct event_entry *event, uint64_t number, struct json *json)
{
    time_t seconds = (time_t)(event->at_ms / 1000);
    char text[32], at[48];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(at, sizeof(at), "%s.%03dZ", text, (int)(event->at_ms % 1000));
    json_object(json, NULL);
    json_number(json, "number", (int64_t)number);
    json_string(json, "time", at);
    json_string(json, "kind", event->kind);
    json_string(json, "text", event->text);
    json_close(json);
}

bool control_events_are_due(const struct control_client *client)
{
    return client->waiting_for == CONTROL_WAIT_EVENTS && client->event_n < events_of(client)->n;
}

void control_events_send(struct control_client *client)
{
    const struct event_log *events = events_of(client);
    uint64_t number = event_log_next(events, client->event_n);
    struct json json;

    assert(client->event_n <= events->n);
    control_reply_begin(&json, true);
    json_number(&json, "lost", (int64_t)(number - client->event_n - 1));
    json_array(&json, "events");
    for (; number <= events->n; number++)
        write_event(event_log_find(events, number), number, &json);
    json_close(&json);
    client->event_n = events->n;
    control_reply_end(&json, client, false);
}

void control_events_handle(struct control_client *client, struct json_value request)
{
    const struct event_log *events = events_of(client);
    int64_t since = json_integer(json_member(request, "since"), 0);

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    if (events == NULL) {
        control_reply_error(client, "the daemon had no memory for events", false);
        return;
    }
    if (json_is_true(json_member(request, "follow"))) {
        if (has_most_followers(client)) {
            control_reply_error(client, "too many clients follow the events, try again", false);
            return;
        }
        client->waiting_for = CONTROL_WAIT_EVENTS;
    }
    client->event_n = since <= 0 ? 0 : (uint64_t)since < events->n ? (uint64_t)since : events->n;
    control_events_send(client);
}
