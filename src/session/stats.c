/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of clients: a client has one entry at a time, and numbers only grow. The end is
 * counted last: until then a client dies with the worker. */
#include "session/stats.h"

#include "net/conn.h"
#include "session/conn.h"

static_assert(SESSION_ENDS <= STATS_END_DIED, "the last number is the master's");
static_assert((int)SESSION_END_NONE == STATS_END_MOVED, "a client without an end was moved");

void session_stats_open(const struct stream_settings *settings, uint32_t slot)
{
    void *memory = settings->stats != NULL ? zone_memory(settings->stats) : NULL;
    struct listen_stats *listen;

    if (memory == NULL)
        return;
    STAILQ_FOREACH (listen, &settings->listen_stats, link)
        listen->own = stats_of_slot(memory, slot, listen->entry);
}

/* Returns the numbers of the client's entry; NULL: nothing is counted. */
static struct stats *stats_of(const struct fb_conn *client)
{
    const struct binding *binding = client->owner;

    assert(!client->outgoing);
    return binding->stats != NULL ? binding->stats->own : NULL;
}

void session_stats_accept(struct fb_conn *client)
{
    struct stats *stats = stats_of(client);

    if (stats != NULL)
        stats_add(&stats->accepts, 1);
}

void session_stats_begin(struct fb_conn *client)
{
    struct stats *stats = stats_of(client);
    bool first = client->traffic == &client->net->traffic;

    if (stats == NULL)
        return;
    client->traffic = &stats->traffic;
    if (!first) /* the bytes so far are the first server's */
        return;
    stats_add(&stats->traffic.received, client->received);
    stats_add(&stats->traffic.sent, client->sent);
}

void session_stats_end(struct fb_conn *client, enum session_end end)
{
    struct stats *stats = stats_of(client);

    if (stats == NULL)
        return;
    if (end != SESSION_END_NONE)
        stats_add_time(&stats->lengths,
            client->opened_ms > 0 ? client->net->loop.clock.mono_ms - client->opened_ms : 0);
    stats_add_end(&stats->ended[end]);
}

void session_stats_pause(struct fb_conn *conn, struct session_stats_mark *mark)
{
    *mark = (struct session_stats_mark) { conn->received, conn->sent, conn->traffic };
    conn->traffic = &conn->net->traffic;
}

void session_stats_resume(struct fb_conn *conn, const struct session_stats_mark *mark)
{
    struct stats *stats = conn->outgoing ? NULL : stats_of(conn);

    if (mark->traffic == NULL) /* the handshake has not begun */
        return;
    conn->traffic = stats != NULL ? &stats->traffic : mark->traffic;
    stats_add(&conn->traffic->received, conn->received - mark->received);
    stats_add(&conn->traffic->sent, conn->sent - mark->sent);
}

const char *session_stats_end_name(unsigned end)
{
    return end == STATS_END_MOVED  ? "moved"
           : end == STATS_END_DIED ? "worker_died"
           : end < SESSION_ENDS    ? session_end_names[end]
                                   : NULL;
}

const char *session_stats_try_end_name(unsigned end)
{
    static const char *const names[] = { "served", "failed", "unused", "skipped", "worker_died" };

    return end < countof(names) ? names[end] : NULL;
}

const char *session_stats_wait_end_name(unsigned end)
{
    static const char *const names[] = { "served", "failed", "left", NULL, "worker_died" };

    return end < countof(names) ? names[end] : NULL;
}

const char *session_stats_trouble_name(unsigned trouble)
{
    static const char *const names[] = { "resets", "timeouts", "refusals", "slow" };

    return trouble < countof(names) ? names[trouble] : NULL;
}
