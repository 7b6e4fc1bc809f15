/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the zones of a configuration. A server without room in the statistics is counted with
 * others, and is said in a line. */
#include "configuration/zones.h"

/* Finds the entry of each `listen` in the statistics again, or adds it. */
static void enter_stats(struct stream_settings *stream, struct log *log)
{
    void *memory = zone_memory(stream->stats);
    struct listen_stats *listen;
    unsigned left_out = 0;

    stats_open(memory, &stream->stats_shape);
    STAILQ_FOREACH (listen, &stream->listen_stats, link) {
        const fb_protocol *protocol = listen->server != NULL ? listen->server->protocol : NULL;
        struct stats_key key = {
            .protocol = protocol != NULL ? protocol->name : "",
            .address = listen->address,
            .name = listen->name,
        };

        if (listen->word == NULL) /* of all others */
            continue;
        listen->entry = stats_enter(memory, &key);
        left_out += listen->entry == 0;
    }
    if (left_out > 0)
        log_tell(log, LEVEL_WARN,
            "the statistics have no room for %u more \"listen\" directives, which are counted "
            "together; a restart makes room",
            left_out);
}

int configuration_open_zones(struct cycle *cycle, const struct zones *old, struct log *log)
{
    if (zones_open(&cycle->zones, old, log) == -1)
        return -1;
    if (cycle->stream.stats != NULL)
        enter_stats(&cycle->stream, log);
    return 0;
}
