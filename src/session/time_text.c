/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the loop's time in the local time zone, when its second is another. */
#include "session/time_text.h"

#include "session/stream.h"

#include <bsd/string.h>
#include <time.h>

static void make_texts(struct time_text *text, time_t now)
{
    char zone[8] = "";
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(text->local, sizeof(text->local), "%d/%b/%Y:%H:%M:%S %z", &tm);
    strftime(zone, sizeof(zone), "%z", &tm);
    memmove(zone + 4, zone + 3, 3); /* +0100 becomes +01:00 */
    zone[3] = ':';
    strftime(text->iso8601, sizeof(text->iso8601), "%Y-%m-%dT%H:%M:%S", &tm);
    strlcat(text->iso8601, zone, sizeof(text->iso8601));
    text->second = now;
}

const struct time_text *time_text_of(struct stream *stream)
{
    int64_t now = stream->net.loop.clock.wall_ms / 1000;
    struct time_text *text = &stream->time;

    if (text->local[0] == '\0' || text->second != now)
        make_texts(text, (time_t)now);
    return text;
}
