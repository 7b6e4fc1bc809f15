/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the statistics of clients and of tries, from the zones that workers count in. A protocol's
 * are sums over all servers that have ever had the protocol: no number falls when a reload drops a
 * server. */
#include "control/traffic.h"

#include "session/stats.h"

#include <string.h>

/* Writes how many ended by each cause. */
static void write_ended(
    struct json *json, const uint64_t ended[], unsigned n, const char *(*name)(unsigned end))
{
    json_object(json, "ended");
    for (unsigned i = 0; i < n; i++)
        if (ended[i] > 0 && name(i) != NULL)
            json_number(json, name(i), (int64_t)ended[i]);
    json_close(json);
}

static void write_bounds(struct json *json, const char *key, struct stats_sum_of_times *times)
{
    struct histogram_summary summary;

    histogram_summarize(times->n, STATS_BUCKETS, &summary);
    json_object(json, key);
    json_number(json, "n", (int64_t)summary.n);
    json_number(json, "total_ms", (int64_t)times->ms);
    json_number(json, "p50_ms", (int64_t)summary.p50);
    json_number(json, "p90_ms", (int64_t)summary.p90);
    json_number(json, "p99_ms", (int64_t)summary.p99);
    json_number(json, "max_ms", (int64_t)summary.max);
    json_close(json);
}

/* Writes the members of the numbers, which are input of workers, and closes the object. */
static void write_numbers(struct stats_totals *totals, struct json *json)
{
    json_number(json, "accepts", (int64_t)totals->accepts);
    json_number(json, "active", (int64_t)totals->active);
    json_number(json, "received", (int64_t)totals->received);
    json_number(json, "sent", (int64_t)totals->sent);
    write_ended(json, totals->ended, STATS_ENDS, session_stats_end_name);
    write_bounds(json, "lengths", &totals->lengths);
    json_close(json);
}

/* Adds b to a, number by number. */
static void add_totals(struct stats_totals *a, const struct stats_totals *b)
{
    uint64_t *to = (uint64_t *)a;
    const uint64_t *from = (const uint64_t *)b;

    for (size_t i = 0; i < sizeof(*a) / sizeof(*to); i++)
        to[i] += from[i];
}

/* Notes which entries the configuration in force has. */
static void find_used_listens(const struct stream_settings *stream, bool used[STATS_ENTRIES_MOST])
{
    const struct listen_stats *listen;

    STAILQ_FOREACH (listen, &stream->listen_stats, link)
        if (listen->entry > 0 && listen->entry < STATS_ENTRIES_MOST)
            used[listen->entry] = true;
}

static void write_servers(const void *memory, const bool used[], struct json *json)
{
    json_array(json, "servers");
    for (uint32_t i = 0; i < stats_n(memory); i++) {
        struct stats_key key = stats_key_of(memory, i);
        struct stats_totals totals;

        stats_read(memory, i, &totals, sizeof(totals));
        if (!used[i] && totals.active == 0 && (i > 0 || totals.accepts == 0))
            continue;
        json_object(json, NULL);
        json_string(json, "listen", i > 0 ? key.address : "others");
        if (*key.name != '\0')
            json_string(json, "name", key.name);
        if (*key.protocol != '\0')
            json_string(json, "protocol", key.protocol);
        if (!used[i] && i > 0) /* a reload has dropped it */
            json_bool(json, "dropped", true);
        write_numbers(&totals, json);
    }
    json_close(json);
}

/* Whether an entry before has the protocol, too. */
static bool is_written(const void *memory, uint32_t entry)
{
    for (uint32_t i = 1; i < entry; i++)
        if (strcmp(stats_key_of(memory, i).protocol, stats_key_of(memory, entry).protocol) == 0)
            return true;
    return false;
}

static void write_protocols(const void *memory, struct json *json)
{
    json_array(json, "protocols");
    for (uint32_t i = 1; i < stats_n(memory); i++) {
        const char *protocol = stats_key_of(memory, i).protocol;
        struct stats_totals all = { 0 }, one;

        if (*protocol == '\0' || is_written(memory, i))
            continue;
        for (uint32_t other = i; other < stats_n(memory); other++)
            if (strcmp(stats_key_of(memory, other).protocol, protocol) == 0) {
                stats_read(memory, other, &one, sizeof(one));
                add_totals(&all, &one);
            }
        json_object(json, NULL);
        json_string(json, "protocol", protocol);
        write_numbers(&all, json);
    }
    json_close(json);
}

static void find_used_tries(const struct stream_settings *stream, bool used[STATS_ENTRIES_MOST])
{
    const struct upstream_server *server;
    const struct upstream *upstream;

    STAILQ_FOREACH (upstream, &stream->upstreams, link) {
        used[upstream->waits.entry % STATS_ENTRIES_MOST] = true;
        STAILQ_FOREACH (server, &upstream->servers, link)
            used[server->stats.entry % STATS_ENTRIES_MOST] = true;
    }
    used[0] = false; /* of all others */
}

/* Writes the members of a server's numbers, which are input of workers. */
static void write_tries(struct stats_tries_totals *totals, struct json *json)
{
    json_number(json, "tries", (int64_t)totals->begun);
    json_number(json, "active", (int64_t)totals->active);
    json_number(json, "received", (int64_t)totals->received);
    json_number(json, "sent", (int64_t)totals->sent);
    write_ended(json, totals->ended, STATS_TRY_ENDS, session_stats_try_end_name);
    for (unsigned i = 0; i < STATS_TROUBLES; i++)
        json_number(json, session_stats_trouble_name(i), (int64_t)totals->troubles[i]);
    write_bounds(json, "connect", &totals->times[UPSTREAM_TIME_CONNECT]);
    write_bounds(json, "first_byte", &totals->times[UPSTREAM_TIME_FIRST_BYTE]);
    write_bounds(json, "lengths", &totals->times[UPSTREAM_TIME_LAST_BYTE]);
}

/* Writes the members of a queue's numbers. */
static void write_waits(struct stats_tries_totals *totals, struct json *json)
{
    json_number(json, "waits", (int64_t)totals->begun);
    json_number(json, "waiting", (int64_t)totals->active);
    write_ended(json, totals->ended, STATS_TRY_ENDS, session_stats_wait_end_name);
    write_bounds(json, "times", &totals->times[0]);
}

static void write_upstream_servers(const void *memory, const bool used[], struct json *json)
{
    json_array(json, "upstream_servers");
    for (uint32_t i = 0; i < stats_n(memory); i++) {
        struct stats_key key = stats_key_of(memory, i);
        struct stats_tries_totals totals;

        stats_read(memory, i, &totals, sizeof(totals));
        if (!used[i] && totals.active == 0 && (i > 0 || totals.begun == 0))
            continue;
        json_object(json, NULL);
        if (i > 0)
            json_string(json, "upstream", key.name);
        if (i == 0 || *key.address != '\0')
            json_string(json, "server", i > 0 ? key.address : "others");
        if (!used[i] && i > 0) /* a reload has dropped it */
            json_bool(json, "dropped", true);
        if (i == 0 || *key.address != '\0')
            write_tries(&totals, json);
        else
            write_waits(&totals, json);
        json_close(json);
    }
    json_close(json);
}

void control_traffic_write(const struct stream_settings *stream, struct json *json)
{
    if (stream->stats != NULL) {
        bool used[STATS_ENTRIES_MOST] = { false };

        find_used_listens(stream, used);
        write_servers(zone_memory(stream->stats), used, json);
        write_protocols(zone_memory(stream->stats), json);
    }
    if (stream->tries != NULL) {
        bool used[STATS_ENTRIES_MOST] = { false };

        find_used_tries(stream, used);
        write_upstream_servers(zone_memory(stream->tries), used, json);
    }
}
