/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the `listen` directives of servers their places in the statistics, and declares the zone.
 * All ports of a range have one place, and so have all directives beyond the zone's entries. */
#include "os/process.h"
#include "settings/apply.h"
#include "settings/listen.h"

#include <errno.h>

/* Entries of a zone at least, and for each directive: a later configuration finds room for more. */
#define ENTRIES_LEAST 256
#define ENTRIES_EACH 4

#define ZONE_NAME "stats:servers"
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

void listen_stats_declare(struct apply *apply)
{
    struct cycle *cycle = apply->cycle;
    struct stream_settings *stream = &cycle->stream;
    struct stats_shape *shape = &stream->stats_shape;
    char text[128];

    if (stream->listen_stats_n == 0)
        return;
    shape->capacity = ENTRIES_LEAST;
    while (shape->capacity < STATS_ENTRIES_MOST &&
           shape->capacity < stream->listen_stats_n * ENTRIES_EACH)
        shape->capacity *= 2;
    do
        stream->stats =
            zone_declare(&cycle->zones, cycle->arena, &stats_kind, ZONE_NAME, ZONE_VERSION, shape);
    while (stream->stats == NULL && errno == EFBIG && (shape->capacity /= 2) > 1);
    if (stream->stats == NULL && errno == EFBIG)
        report_warn(apply->report, NULL, "no address space is left for statistics of servers");
    else if (stream->stats == NULL)
        report_error(apply->report, NULL, "the statistics of servers cannot be declared: %s",
            os_error_text(errno, text, sizeof(text)));
}
