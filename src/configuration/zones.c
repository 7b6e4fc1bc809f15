/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the zones of a configuration. A server without room in the statistics is counted with
 * others, and is said in a line. */
#include "configuration/zones.h"

static void report_left_out(struct log *log, unsigned n, const char *what)
{
    if (n > 0)
        log_tell(log, LEVEL_WARN,
            "the statistics have no room for %u more %s, which are counted together; a restart "
            "makes room",
            n, what);
}

/* Finds the entry of each `listen` in the statistics again, or adds it. */
static void enter_listens(struct stream_settings *stream, struct log *log)
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
    report_left_out(log, left_out, "\"listen\" directives");
}

/* Finds or adds the entries of the servers and the queue of each group. */
static void enter_tries(struct stream_settings *stream, struct log *log)
{
    void *memory = zone_memory(stream->tries);
    struct upstream_server *server;
    struct upstream *upstream;
    unsigned left_out = 0;

    stats_open(memory, &stream->tries_shape);
    STAILQ_FOREACH (upstream, &stream->upstreams, link) {
        struct stats_key key = { .protocol = "", .address = "", .name = upstream->name };

        if (upstream->queue > 0) {
            upstream->waits.entry = stats_enter(memory, &key);
            left_out += upstream->waits.entry == 0;
        }
        STAILQ_FOREACH (server, &upstream->servers, link) {
            key.address = server->name;
            server->stats.entry = stats_enter(memory, &key);
            left_out += server->stats.entry == 0;
        }
    }
    report_left_out(log, left_out, "servers of groups");
}

int configuration_open_zones(struct cycle *cycle, const struct zones *old, struct log *log)
{
    if (zones_open(&cycle->zones, old, log) == -1)
        return -1;
    if (cycle->stream.stats != NULL)
        enter_listens(&cycle->stream, log);
    if (cycle->stream.tries != NULL)
        enter_tries(&cycle->stream, log);
    return 0;
}
