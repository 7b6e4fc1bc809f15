/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the statistics of clients, from the zone that workers count in. A protocol's are sums over
 * all servers that have ever had the protocol: no number falls when a reload drops a server. */
#include "control/traffic.h"

#include "session/end.h"

#include <string.h>

static const char *end_name(unsigned end)
{
    return end == STATS_END_MOVED  ? "moved"
           : end == STATS_END_DIED ? "worker_died"
           : end < SESSION_ENDS    ? session_end_name((enum session_end)end)
                                   : NULL;
}

static void write_lengths(struct stats_totals *totals, struct json *json)
{
    struct histogram_summary lengths;

    histogram_summarize(totals->lengths, STATS_LENGTHS, &lengths);
    json_object(json, "lengths");
    json_number(json, "n", (int64_t)lengths.n);
    json_number(json, "total_ms", (int64_t)totals->length_ms);
    json_number(json, "p50_ms", (int64_t)lengths.p50);
    json_number(json, "p90_ms", (int64_t)lengths.p90);
    json_number(json, "p99_ms", (int64_t)lengths.p99);
    json_number(json, "max_ms", (int64_t)lengths.max);
    json_close(json);
}

/* Writes the members of the numbers, which are input of workers, and closes the object. */
static void write_numbers(struct stats_totals *totals, struct json *json)
{
    json_number(json, "accepts", (int64_t)totals->accepts);
    json_number(json, "active", (int64_t)totals->active);
    json_number(json, "received", (int64_t)totals->received);
    json_number(json, "sent", (int64_t)totals->sent);
    json_object(json, "ended");
    for (unsigned i = 0; i < STATS_ENDS; i++)
        if (totals->ended[i] > 0 && end_name(i) != NULL)
            json_number(json, end_name(i), (int64_t)totals->ended[i]);
    json_close(json);
    write_lengths(totals, json);
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
static void find_used(const struct stream_settings *stream, bool used[STATS_ENTRIES_MOST])
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

        stats_read(memory, i, &totals);
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
                stats_read(memory, other, &one);
                add_totals(&all, &one);
            }
        json_object(json, NULL);
        json_string(json, "protocol", protocol);
        write_numbers(&all, json);
    }
    json_close(json);
}

void control_traffic_write(const struct stream_settings *stream, struct json *json)
{
    const void *memory = stream->stats != NULL ? zone_memory(stream->stats) : NULL;
    bool used[STATS_ENTRIES_MOST] = { false };

    if (memory == NULL) /* the configuration has no server */
        return;
    find_used(stream, used);
    write_servers(memory, used, json);
    write_protocols(memory, json);
}
