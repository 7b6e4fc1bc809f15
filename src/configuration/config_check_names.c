/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for the names of a configuration's servers once, from a loop of its own, and warns of names
 * without an answer. Never fails the check: nothing depends on a name but its server. */
#include "configuration/config_check.h"

#include "conf/report.h"
#include "names/names.h"
#include "upstream/addresses.h"

#include <stdlib.h>

#define ASK_MS 1000

struct name_check {
    struct loop loop;
    struct names *names;
    struct conf_report report;
    struct zone known; /* maps the addresses in force; without memory: there are none */
    unsigned waits;
};

struct asked {
    struct name_check *check;
    const struct upstream *upstream;
    const struct upstream_server *server;
};

static unsigned count_kept(const struct name_check *check, const struct asked *asked)
{
    const struct addresses_key key = addresses_key_of(asked->upstream, asked->server);
    struct addresses_state state = { .n = 0 };
    uint32_t entry = ADDRESSES_NONE;

    if (check->known.segment.base != NULL)
        entry = addresses_find(&check->known, &key);
    if (entry != ADDRESSES_NONE)
        addresses_read_state(&check->known, entry, &key, &state);
    return state.n;
}

static void warn_of_name(const struct asked *asked, const char *name, const char *why)
{
    unsigned kept = count_kept(asked->check, asked);

    if (kept > 0)
        report_warn(&asked->check->report, asked->server->word,
            "\"%s\" has no answer now: %s; %u %s of before %s kept", name, why, kept,
            kept == 1 ? "address" : "addresses", kept == 1 ? "is" : "are");
    else
        report_warn(&asked->check->report, asked->server->word,
            "\"%s\" has no answer now: %s; the server has no address until an answer comes%s", name,
            why,
            asked->check->known.segment.base == NULL ? ", but for former addresses of a daemon"
                                                     : "");
}

static void name_resolved(struct fb_worker *handle, const fb_names *names, void *arg)
{
    struct asked *asked = arg;

    (void)handle;
    asked->check->waits--;
    if (names->outcome != FB_NAME_FOUND)
        warn_of_name(asked, names->name, names->why);
    free(asked);
}

static void deliver_names(struct names *names, struct fb_worker *handle, names_resolved *call,
    const fb_names *what, void *arg)
{
    (void)names;
    call(handle, what, arg);
}

static void end_delivery(struct names *names)
{
    (void)names;
}

static void ask_name(struct name_check *check, const struct stream_settings *stream,
    const struct upstream *upstream, const struct upstream_server *server)
{
    const struct names_setting *setting = upstream->resolver;
    struct asked *asked = malloc(sizeof(*asked));
    char name[MESSAGE_NAME];
    const struct names_query query = {
        .name = addresses_question(server, name),
        .type = server->service != NULL ? FB_NAME_SRV : FB_NAME_ADDRESSES,
        .timeout = ASK_MS,
        .port = server->port,
        .quiet = true,
        .resolved = name_resolved,
        .arg = asked,
    };

    if (asked == NULL)
        return;
    *asked = (struct asked) { check, upstream, server };
    if (names_resolve(check->names, setting != NULL ? setting : &stream->system, &query) != NULL) {
        check->waits++;
        return;
    }
    warn_of_name(asked, query.name, "the text is no name of a host, or cannot be asked for");
    free(asked);
}

static void ask_all_names(struct name_check *check, const struct cycle *cycle)
{
    const struct upstream_server *server;
    const struct upstream *upstream;

    STAILQ_FOREACH (upstream, &cycle->stream.upstreams, link)
        STAILQ_FOREACH (server, &upstream->servers, link)
            if (server->target == NULL)
                ask_name(check, &cycle->stream, upstream, server);
    while (check->waits > 0 && check->loop.wait_error == 0) {
        int timeout = timers_wait(&check->loop.timers);

        if (loop_promote(&check->loop))
            timeout = 0;
        loop_wait(&check->loop, timeout);
        timers_run(&check->loop.timers);
        loop_run(&check->loop, QUEUE_NORMAL);
    }
}

void config_check_names(
    const struct cycle *cycle, const struct zone *known, struct log *log, int excerpts)
{
    const struct names_setting *settings = &cycle->stream.system;
    struct name_check check = { .known = { .segment = SEGMENT_CLOSED } };
    const struct loop_options options = {
        .mechanism = cycle->events.mechanism,
        .mechanism_values = cycle->events.mechanism_values,
        .slots = names_slots(settings, NAMES_OF_GROUPS),
        .stride = sizeof(struct source),
        .log = log,
    };

    if (cycle->stream.addresses == NULL || loop_init(&check.loop, &options) == -1)
        return;
    if (known != NULL && segment_open(&check.known.segment, &known->segment) != NULL)
        segment_close(&check.known.segment);
    report_init(&check.report, cycle->arena);
    check.names = names_create(&check.loop, &memory_plain, settings, NAMES_OF_GROUPS);
    if (check.names != NULL) {
        check.names->deliver = deliver_names;
        check.names->delivered = end_delivery;
        ask_all_names(&check, cycle);
        names_destroy(&check.names);
    }
    report_show(&check.report, log, excerpts);
    segment_close(&check.known.segment);
    loop_done(&check.loop);
}
