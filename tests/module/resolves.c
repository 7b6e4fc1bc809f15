/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves names: each line of a client is a type and a name, "A host.test", and is answered by a
 * line with the outcome and what was found. In front of the type may stand flags: "w" has the
 * worker ask, "t" shows times to live, "c" cancels at once, "p" gives port 80, "s" allows 50 ms. */
#include <forkbeard/forkbeard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_N 400

/* In the client's memory, because it is not told when the client has gone; or the worker's. */
struct request {
    fb_ref client;
    int shows_ttl, is_own;
};

static const char *outcome_name(fb_name_outcome outcome)
{
    static const char *const names[] = {
        [FB_NAME_FOUND] = "found",
        [FB_NAME_ABSENT] = "absent",
        [FB_NAME_NO_DATA] = "no data",
        [FB_NAME_TIMED_OUT] = "timed out",
        [FB_NAME_FAILED] = "failed",
        [FB_NAME_BROKEN] = "broken",
        [FB_NAME_NO_MEMORY] = "no memory",
        [FB_NAME_ENDED] = "ended",
    };

    return names[outcome];
}

static void append(char *text, size_t size, const char *more)
{
    size_t n = strlen(text);

    snprintf(text + n, size - n, " %s", more);
}

static void append_record(char *text, size_t size, const fb_name_record *record, int shows_ttl)
{
    struct sockaddr_storage address;
    char one[400], where[120];

    if (record->address != NULL) {
        memset(&address, 0, sizeof(address));
        memcpy(&address, record->address, record->address_n);
        append(text, size, fb_address_text(&address, where, sizeof(where)));
    } else if (record->type == FB_NAME_SRV) {
        snprintf(one, sizeof(one), "%u/%u/%u/%s", record->priority, record->weight, record->port,
            record->name);
        append(text, size, one);
    } else {
        append(text, size, record->name);
    }
    if (shows_ttl) {
        snprintf(one, sizeof(one), "(%u)", record->ttl);
        append(text, size, one);
    }
}

static void resolved(fb_worker *worker, const fb_names *names, void *arg)
{
    struct request *request = arg;
    fb_conn *client = fb_find(worker, request->client);
    char text[8192];

    if (client != NULL) {
        snprintf(text, sizeof(text), "%s", outcome_name(names->outcome));
        if (names->canonical != NULL && strcasecmp(names->canonical, names->name) != 0) {
            append(text, sizeof(text), "as");
            append(text, sizeof(text), names->canonical);
        }
        for (size_t i = 0; i < names->n; i++)
            append_record(text, sizeof(text), &names->records[i], request->shows_ttl);
        append(text, sizeof(text), "\n");
        fb_write(client, text, strlen(text));
    }
    if (request->is_own)
        free(request);
}

static fb_name_type type_of(const char *text)
{
    if (strcmp(text, "A") == 0)
        return FB_NAME_A;
    if (strcmp(text, "AAAA") == 0)
        return FB_NAME_AAAA;
    if (strcmp(text, "SRV") == 0)
        return FB_NAME_SRV;
    return strcmp(text, "PTR") == 0 ? FB_NAME_PTR : FB_NAME_ADDRESSES;
}

/* Takes the flags, and returns the type behind them. */
static const char *read_flags(
    const char *line, struct request *request, fb_resolve_options *options, int *cancels)
{
    for (; *line >= 'a' && *line <= 'z'; line++) {
        request->is_own |= *line == 'w';
        request->shows_ttl |= *line == 't';
        *cancels |= *line == 'c';
        options->port = *line == 'p' ? 80 : options->port;
        options->timeout = *line == 's' ? 50 : options->timeout;
    }
    return line;
}

static void ask(fb_conn *conn, const char *line, const char *name)
{
    struct request read = { .client = fb_ref_of(conn) }, *request;
    fb_resolve_options options = { .size = sizeof(options) };
    int cancels = 0;
    const char *type = read_flags(line, &read, &options, &cancels);
    fb_resolution *resolution;

    request = read.is_own ? malloc(sizeof(*request)) : fb_alloc(conn, sizeof(*request));
    if (request == NULL) {
        fb_abort(conn);
        return;
    }
    *request = read;
    options.owner = read.is_own ? NULL : conn;
    resolution = fb_resolve(fb_worker_of(conn), name, type_of(type), &options, resolved, request);
    if (resolution != NULL && cancels)
        fb_resolve_cancel(resolution);
    if (resolution != NULL && !cancels)
        return;
    if (read.is_own)
        free(request);
    fb_write(conn, resolution == NULL ? "refused\n" : "cancelled\n", resolution == NULL ? 8 : 10);
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    const uint8_t *end;
    size_t used = 0;

    (void)state;
    while ((end = memchr(in.p + used, '\n', in.n - used)) != NULL) {
        size_t n = (size_t)(end - in.p) - used;
        char line[LINE_MAX_N + 1] = "", *name;

        memcpy(line, in.p + used, n < LINE_MAX_N ? n : LINE_MAX_N);
        used += n + 1;
        name = strchr(line, ' ');
        if (name != NULL)
            *name++ = '\0';
        ask(conn, line, name);
    }
    return used;
}

#ifdef RESOLVES_NOT
#define NAME "resolves_not"
#define NEEDS 0
#else
#define NAME "resolves"
#define NEEDS FB_NEEDS_RESOLVER
#endif

static const fb_directive directives[] = {
    { .name = NAME, .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = client_data };

FB_PROTOCOL(resolves) = {
    FB_PROTOCOL_HEADER,
    .name = NAME,
    FB_PROTOCOL_DIRECTIVES(directives),
    .needs = NEEDS,
    .ops = &ops,
};
