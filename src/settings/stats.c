/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the `listen` directives of servers their places in the statistics, and declares the zones,
 * for servers and for groups. All ports of a range have one place, and so have all directives
 * beyond the zone's entries. */
#include "os/process.h"
#include "settings/apply.h"
#include "settings/listen.h"

#include <errno.h>

/* Entries of a zone at least, and for each directive: a later configuration finds room for more. */
#define LISTENS_LEAST 256
#define TRIES_LEAST 128
#define ENTRIES_EACH 4

#define ZONE_VERSION 1

static struct listen_stats *add_stats(struct apply *apply, const struct listen_stats *values)
{
    struct listen_stats *stats = apply_alloc(apply, sizeof(*stats));

    if (stats == NULL)
        return NULL;
    *stats = *values;
    STAILQ_INSERT_TAIL(&apply->cycle->stream.listen_stats, stats, link);
    apply->cycle->stream.listen_stats_n++;
    return stats;
}

/* Returns the place of all directives beyond the zone's entries. */
static struct listen_stats *others(struct apply *apply)
{
    static const struct listen_stats values = { .address = "", .name = "" };
    struct listen_stats *first = STAILQ_FIRST(&apply->cycle->stream.listen_stats);

    return first != NULL ? first : add_stats(apply, &values);
}

struct listen_stats *listen_stats_make(
    struct apply *apply, const struct listen_address *listen, const char *name)
{
    struct stream_settings *stream = &apply->cycle->stream;
    struct listen_stats values = { .word = listen->word, .server = listen->server, .name = name };
    struct listen_stats *all = others(apply), *last;
    char text[ADDRESS_TEXT];

    if (all == NULL || stream->listen_stats_n == STATS_ENTRIES_MOST)
        return all;
    last = STAILQ_LAST(&stream->listen_stats, listen_stats, link);
    if (last->word == values.word) /* another port of the range, or address of the name */
        return last;
    values.address = apply_strdup(
        apply, listen->in_range ? listen->word->text : address_format_zone(&listen->address, text));
    return values.address != NULL ? add_stats(apply, &values) : NULL;
}

/* Declares statistics with room for `n` entries, and for more, unless there are too few addresses.
 * The shape's capacity is the least. */
static struct zone *declare_stats(struct apply *apply, const char *name, uint32_t n,
    const char *counted, struct stats_shape *shape)
{
    struct cycle *cycle = apply->cycle;
    struct zone *zone;
    char text[128];

    while (shape->capacity < STATS_ENTRIES_MOST && shape->capacity < n * ENTRIES_EACH)
        shape->capacity *= 2;
    do
        zone = zone_declare(&cycle->zones, cycle->arena, &stats_kind, name, ZONE_VERSION, shape);
    while (zone == NULL && (errno == EFBIG || errno == EOVERFLOW) && (shape->capacity /= 2) > 1);
    if (zone == NULL && errno == EFBIG)
        report_warn(apply->report, NULL, "no address space is left for statistics of %s", counted);
    else if (zone == NULL)
        report_error(apply->report, NULL, "the statistics of %s cannot be declared: %s", counted,
            os_error_text(errno, text, sizeof(text)));
    return zone;
}

/* Returns how many entries the servers and queues of all groups have. */
static uint32_t count_tries(const struct stream_settings *stream)
{
    const struct upstream *upstream;
    uint32_t n = 0;

    STAILQ_FOREACH (upstream, &stream->upstreams, link)
        n += upstream->server_n + (upstream->queue > 0);
    return n;
}

void stats_declare(struct apply *apply)
{
    struct stream_settings *stream = &apply->cycle->stream;

    stream->stats_shape = (struct stats_shape) { STATS_OF_LISTENS, LISTENS_LEAST };
    stream->tries_shape = (struct stats_shape) { STATS_OF_TRIES, TRIES_LEAST };
    if (stream->listen_stats_n > 0)
        stream->stats = declare_stats(
            apply, "stats:servers", stream->listen_stats_n, "servers", &stream->stats_shape);
    if (stream_connects(stream))
        stream->tries = declare_stats(
            apply, "stats:upstreams", count_tries(stream), "upstreams", &stream->tries_shape);
}
