/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a test: copied from a caller that may be built for another version of the header,
 * and kept for as long as the test lives. */
#include "kit/kit.h"

#include <string.h>

unsigned kit_options_servers(const fb_test_options *options)
{
    unsigned n = 1;

    while (options->servers != NULL && options->servers[n - 1] != NULL)
        n++;
    return n;
}

fb_test_options kit_options(const fb_test_options *options)
{
    fb_test_options own = { .size = sizeof(own) };

    memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    if (own.server == NULL)
        kit_misused("the options have no server directives");
    if (own.workers > KIT_WORKERS_MAX)
        kit_misused("the options have more than %d workers", KIT_WORKERS_MAX);
    if (kit_options_servers(&own) > KIT_SERVERS_MAX)
        kit_misused("the options have more than %d servers", KIT_SERVERS_MAX);
    return own;
}

static const char *keep(struct arena *arena, const char *text)
{
    const char *copy = text != NULL ? arena_strdup(arena, text) : NULL;

    if (text != NULL && copy == NULL)
        kit_misused("no memory for the options");
    return copy;
}

void kit_options_keep(fb_test_options *options, struct arena *arena)
{
    unsigned n = kit_options_servers(options);
    const char **servers = arena_alloc(arena, n * sizeof(*servers));

    if (servers == NULL)
        kit_misused("no memory for the options");
    for (unsigned i = 0; i + 1 < n; i++)
        servers[i] = keep(arena, options->servers[i]);
    options->servers = servers;
    options->server = keep(arena, options->server);
    options->stream = keep(arena, options->stream);
    options->main = keep(arena, options->main);
    options->listen = keep(arena, options->listen);
    options->excuse = keep(arena, options->excuse);
    options->log_format = keep(arena, options->log_format);
}
