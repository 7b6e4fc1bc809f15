/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "metrics": a walk over the numbers in shared memory, by a table of families. The
 * source of a family has entries, and an entry one number, or a number for each part, such as the
 * causes of ends. Numbers are input of workers: shown, and trusted for no other purpose. */
#include "sdk/handle.h"
#include "sdk/interfaces.h"
#include "session/stats.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(FB_SAMPLE_BUCKETS == STATS_BUCKETS, "equal buckets");

/* Which entries a family has; families of a source stand together. */
enum sample_source { OF_DAEMON, OF_WORKERS, OF_PROTOCOLS, OF_LISTENS, OF_SERVERS, OF_QUEUES };

static const char *const things[] = {
    [OF_DAEMON] = "daemon",
    [OF_WORKERS] = "workers",
    [OF_PROTOCOLS] = "protocols",
    [OF_LISTENS] = "listens",
    [OF_SERVERS] = "servers",
    [OF_QUEUES] = "queues",
};

/* The value of an entry: a number by its place, or derived from several. */
enum what { NUMBER, ACTIVE, TIMES };

struct family {
    const char *name, *unit, *help;
    enum sample_source source;
    fb_sample_kind kind;
    enum what what;
    uint32_t at;      /* the place of the number, or the first of several */
    uint32_t part_n;  /* 0: one number */
    const char *part; /* the label of parts */
    const char *(*part_name)(unsigned part);
};

#define AT(type, member) ((uint32_t)(offsetof(struct type, member) / sizeof(uint64_t)))
#define TIME_AT(which) (AT(stats_tries, times) + (which) * AT(stats_times, n[STATS_BUCKETS]))

#define COUNT(source, name, unit, help, at)                                                        \
    { name, unit, help, source, FB_SAMPLE_COUNTER, NUMBER, at, 0, NULL, NULL }
#define GAUGE(source, name, help, what, at)                                                        \
    { name, NULL, help, source, FB_SAMPLE_GAUGE, what, at, 0, NULL, NULL }
#define PARTS(source, name, help, at, n, part, part_name)                                          \
    { name, NULL, help, source, FB_SAMPLE_COUNTER, NUMBER, at, n, part, part_name }
#define HISTOGRAM(source, name, help, at)                                                          \
    { name, "seconds", help, source, FB_SAMPLE_HISTOGRAM, TIMES, at, 0, NULL, NULL }

static const struct family families[] = {
    COUNT(
        OF_DAEMON, "forkbeard_accepts", NULL, "Connections taken from the kernel", COUNTER_ACCEPTS),
    COUNT(OF_DAEMON, "forkbeard_handled", NULL, "Accepted connections that a server has got",
        COUNTER_HANDLED),
    COUNT(OF_DAEMON, "forkbeard_requests", NULL, "Requests, as the protocols count them",
        COUNTER_REQUESTS),
    COUNT(OF_DAEMON, "forkbeard_reclaimed", NULL, "Idle connections closed for want of room",
        COUNTER_RECLAIMED),
    COUNT(OF_DAEMON, "forkbeard_log_lines_lost", NULL, "Log lines of workers that no log has taken",
        COUNTER_LOST),
    GAUGE(OF_WORKERS, "forkbeard_worker_connections", "Connections of clients", NUMBER,
        COUNTER_ACTIVE),
    GAUGE(OF_WORKERS, "forkbeard_worker_reading", "Connections with a part of a request", NUMBER,
        COUNTER_READING),
    GAUGE(OF_WORKERS, "forkbeard_worker_writing", "Connections with unsent output", NUMBER,
        COUNTER_WRITING),
    GAUGE(OF_WORKERS, "forkbeard_worker_slots", "Slots of worker_connections in use", NUMBER,
        COUNTER_SLOTS),
    COUNT(OF_LISTENS, "forkbeard_listen_accepted", NULL, "Clients accepted", AT(stats, accepts)),
    GAUGE(OF_LISTENS, "forkbeard_listen_active", "Clients now", ACTIVE, 0),
    COUNT(OF_LISTENS, "forkbeard_listen_received", "bytes", "Bytes received from clients",
        AT(stats, traffic.received)),
    COUNT(OF_LISTENS, "forkbeard_listen_sent", "bytes", "Bytes sent to clients",
        AT(stats, traffic.sent)),
    PARTS(OF_LISTENS, "forkbeard_listen_ended", "Sessions ended, by $session_end", AT(stats, ended),
        STATS_ENDS, "cause", session_stats_end_name),
    HISTOGRAM(
        OF_LISTENS, "forkbeard_listen_session", "Lengths of ended sessions", AT(stats, lengths)),
    COUNT(
        OF_SERVERS, "forkbeard_upstream_tries", NULL, "Connections tried", AT(stats_tries, begun)),
    GAUGE(OF_SERVERS, "forkbeard_upstream_active", "Connections now", ACTIVE, 0),
    COUNT(OF_SERVERS, "forkbeard_upstream_received", "bytes", "Bytes received from the server",
        AT(stats_tries, traffic.received)),
    COUNT(OF_SERVERS, "forkbeard_upstream_sent", "bytes", "Bytes sent to the server",
        AT(stats_tries, traffic.sent)),
    PARTS(OF_SERVERS, "forkbeard_upstream_ended", "Tries ended, by how", AT(stats_tries, ended),
        STATS_TRY_ENDS, "how", session_stats_try_end_name),
    PARTS(OF_SERVERS, "forkbeard_upstream_troubles", "Troubles of sessions with the server",
        AT(stats_tries, troubles), STATS_TROUBLES, "kind", session_stats_trouble_name),
    HISTOGRAM(OF_SERVERS, "forkbeard_upstream_connect", "Times until connected",
        TIME_AT(UPSTREAM_TIME_CONNECT)),
    HISTOGRAM(OF_SERVERS, "forkbeard_upstream_first_byte", "Times until the server's first byte",
        TIME_AT(UPSTREAM_TIME_FIRST_BYTE)),
    HISTOGRAM(OF_SERVERS, "forkbeard_upstream_session", "Times until the server's last byte",
        TIME_AT(UPSTREAM_TIME_LAST_BYTE)),
    COUNT(OF_QUEUES, "forkbeard_queue_waits", NULL, "Sessions that had to wait for a server",
        AT(stats_tries, begun)),
    GAUGE(OF_QUEUES, "forkbeard_queue_waiting", "Sessions waiting for a server", ACTIVE, 0),
    PARTS(OF_QUEUES, "forkbeard_queue_ended", "Waits ended, by how", AT(stats_tries, ended),
        STATS_TRY_ENDS, "how", session_stats_wait_end_name),
    HISTOGRAM(OF_QUEUES, "forkbeard_queue_wait", "Times of ended waits", TIME_AT(0)),
    COUNT(OF_PROTOCOLS, "forkbeard_protocol_events", NULL, "Counters of a protocol's own", 0),
    GAUGE(OF_PROTOCOLS, "forkbeard_protocol_state", "Gauges of a protocol's own", NUMBER, 0),
};

static void label_part(fb_sample *sample, const char *name, const char *value)
{
    assert(sample->label_n < FB_LABELS_MAX);
    sample->labels[sample->label_n++] = (fb_label) { name, value };
}

static void label_key(fb_sample *sample, const char *name, const char *value)
{
    label_part(sample, name, value);
    sample->key_n = sample->label_n;
}

/* ---- The statistics of listens, servers and queues ---- */

static void *stats_memory(const struct stream_settings *stream, enum sample_source source)
{
    const struct zone *zone = source == OF_LISTENS ? stream->stats : stream->tries;

    return zone != NULL ? zone_memory(zone) : NULL;
}

static void fill_times(const void *memory, uint32_t entry, uint32_t at, fb_sample *sample)
{
    sample->sum = stats_number(memory, entry, at);
    for (uint32_t i = 0; i < STATS_BUCKETS; i++)
        sample->buckets[i] = stats_number(memory, entry, at + AT(stats_times, n) + i);
}

static bool label_stats(
    const struct family *family, const void *memory, uint32_t entry, fb_sample *sample)
{
    struct stats_key key = stats_key_of(memory, entry);
    bool is_queue = entry > 0 && *key.address == '\0';

    if (family->source == OF_LISTENS) {
        label_key(sample, "listen", entry > 0 ? key.address : "others");
        label_key(sample, "server", key.name);
        label_key(sample, "protocol", key.protocol);
        return true;
    }
    if (is_queue != (family->source == OF_QUEUES))
        return false;
    label_key(sample, "upstream", entry > 0 ? key.name : "others");
    if (!is_queue)
        label_key(sample, "server", key.address);
    return true;
}

/* Entry 0, of all beyond the room of the zone, and parts are only shown when something was counted:
 * most causes never occur. */
static bool fill_stats(const struct worker *worker, const struct family *family,
    const fb_sample_cursor *at, fb_sample *sample)
{
    const void *memory = stats_memory(&worker->cycle->stream, family->source);
    const char *part;

    if (!label_stats(family, memory, at->entry, sample) ||
        (at->entry == 0 && stats_number(memory, 0, 0) == 0))
        return false;
    if (family->what == TIMES) {
        fill_times(memory, at->entry, family->at, sample);
        return true;
    }
    sample->value =
        (int64_t)(family->what == ACTIVE ? stats_active(memory, at->entry)
                                         : stats_number(memory, at->entry, family->at + at->part));
    if (family->part_n == 0)
        return true;
    part = family->part_name(at->part);
    if (part == NULL || sample->value == 0)
        return false;
    label_part(sample, family->part, part);
    return true;
}

/* ---- Workers and protocols ---- */

static bool fill_worker(struct worker *worker, const struct family *family,
    const fb_sample_cursor *at, fb_sample *sample)
{
    char(*texts)[SAMPLE_TEXT] = worker->sample_texts;
    struct shared *shared = worker->stream.shared;
    uint32_t place = shared->published->slots[at->entry % SLOT_MAX].place;
    uint64_t n;

    if (place == PLACE_NONE)
        return false;
    snprintf(texts[0], sizeof(texts[0]), "%u", place >> PLACE_NUMBER_BITS);
    snprintf(texts[1], sizeof(texts[1]), "%u", place % SLOT_MAX);
    label_key(sample, "generation", texts[0]);
    label_key(sample, "worker", texts[1]);
    n = atomic_load_explicit(
        &shared_slot_at(shared, at->entry)->counters.n[family->at], memory_order_relaxed);
    sample->value = (int64_t)n;
    return true;
}

static const struct server *server_with(const struct worker *worker, uint32_t protocol)
{
    const struct server *server;

    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == protocol)
            return server;
    return NULL;
}

/* An entry is a protocol, and a part one of its metrics. */
static bool fill_protocol(const struct worker *worker, const struct family *family,
    const fb_sample_cursor *at, fb_sample *sample)
{
    const struct server *server = server_with(worker, at->entry);
    bool is_gauge = family->kind == FB_SAMPLE_GAUGE;

    if (server == NULL || server->metrics == NULL || at->part >= server->protocol->metric_n ||
        (server->protocol->metrics[at->part].kind == FB_GAUGE) != is_gauge)
        return false;
    label_key(sample, "protocol", server->protocol->name);
    label_part(sample, "metric", server->protocol->metrics[at->part].name);
    sample->value =
        shm_metrics_total(zone_memory(server->metrics), server->metrics->shape, at->part);
    return true;
}

/* ---- The walk ---- */

static uint32_t entries_in(const struct worker *worker, const struct family *family)
{
    const void *memory;

    switch (family->source) {
    case OF_DAEMON:
        return 1;
    case OF_WORKERS:
        return worker->stream.shared->published->slot_n;
    case OF_PROTOCOLS:
        return STREAM_PROTOCOLS_MAX;
    default:
        memory = stats_memory(&worker->cycle->stream, family->source);
        return memory != NULL ? stats_n(memory) : 0;
    }
}

/* Entries without a begin have no parts: most causes of most entries never occur, and looking at
 * each would take a whole turn. */
static uint32_t parts_of(const struct worker *worker, const struct family *family, uint32_t entry)
{
    const fb_protocol *protocol;

    if (family->source == OF_PROTOCOLS) {
        protocol = worker->protocols[entry].protocol;
        return protocol != NULL ? protocol->metric_n : 0;
    }
    if (family->part_n == 0)
        return 1;
    return stats_number(stats_memory(&worker->cycle->stream, family->source), entry, 0) > 0
               ? family->part_n
               : 0;
}

static bool fill_value(struct worker *worker, const struct family *family,
    const fb_sample_cursor *at, fb_sample *sample)
{
    uint64_t n[COUNTERS];

    switch (family->source) {
    case OF_DAEMON:
        shared_totals(worker->stream.shared, n);
        sample->value = (int64_t)n[family->at];
        return true;
    case OF_WORKERS:
        return fill_worker(worker, family, at, sample);
    case OF_PROTOCOLS:
        return fill_protocol(worker, family, at, sample);
    default:
        return fill_stats(worker, family, at, sample);
    }
}

/* Fills *out, of size bytes, with the sample at the cursor; false: there is none. */
static bool fill(struct worker *worker, const fb_sample_cursor *at, size_t size, fb_sample *out)
{
    const struct family *family = &families[at->family];
    fb_sample sample = {
        .size = size,
        .name = family->name,
        .help = family->help,
        .unit = family->unit,
        .kind = family->kind,
        .thing = things[family->source],
    };

    if (!fill_value(worker, family, at, &sample))
        return false;
    memcpy(out, &sample, size < sizeof(sample) ? size : sizeof(sample));
    return true;
}

/* Goes on to the next part, entry or family that there may be. */
static bool find_place(const struct worker *worker, fb_sample_cursor *cursor)
{
    for (; cursor->family < countof(families); cursor->family++, cursor->entry = cursor->part = 0) {
        const struct family *family = &families[cursor->family];

        for (; cursor->entry < entries_in(worker, family); cursor->entry++, cursor->part = 0)
            if (cursor->part < parts_of(worker, family, cursor->entry))
                return true;
    }
    *cursor = (fb_sample_cursor) { 0 };
    return false;
}

static int metrics_next(fb_worker *handle, fb_sample_cursor *cursor, fb_sample *out)
{
    struct worker *worker = worker_of(handle);

    while (find_place(worker, cursor)) {
        bool filled = fill(worker, cursor, out->size, out);

        cursor->part++;
        if (filled)
            return 1;
    }
    return 0;
}

/* Fills samples of the cursor's entry while there is room, and goes on to the next entry. */
static uint32_t fill_row(struct worker *worker, fb_sample_cursor *cursor, fb_sample *out)
{
    enum sample_source source = families[cursor->family].source;
    size_t size = out->size;
    uint32_t n = 0;

    while (cursor->family < countof(families) && families[cursor->family].source == source) {
        while (cursor->part < parts_of(worker, &families[cursor->family], cursor->entry)) {
            if (n == FB_ROW_MAX)
                return n;
            n += fill(worker, cursor, size, (fb_sample *)(void *)((char *)out + n * size));
            cursor->part++;
        }
        cursor->family++;
        cursor->part = 0;
    }
    cursor->entry++;
    while (cursor->family > 0 && families[cursor->family - 1].source == source)
        cursor->family--;
    return n;
}

static void go_to_next_source(fb_sample_cursor *cursor)
{
    enum sample_source source = families[cursor->family].source;

    while (cursor->family < countof(families) && families[cursor->family].source == source)
        cursor->family++;
    cursor->entry = cursor->part = 0;
}

static uint32_t metrics_next_row(fb_worker *handle, fb_sample_cursor *cursor, fb_sample *out)
{
    struct worker *worker = worker_of(handle);

    for (; cursor->family < countof(families); go_to_next_source(cursor))
        while (cursor->entry < entries_in(worker, &families[cursor->family])) {
            uint32_t n = fill_row(worker, cursor, out);

            if (n > 0)
                return n;
        }
    *cursor = (fb_sample_cursor) { 0 };
    return 0;
}

const fb_metrics sdk_metrics = {
    .size = sizeof(fb_metrics),
    .next = metrics_next,
    .next_row = metrics_next_row,
};
