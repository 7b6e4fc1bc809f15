/* SPDX-License-Identifier: BSD-2-Clause */
/* `upstream {}`: a group of servers, which inherits settings from stream {} at the end. */
#include "features/upstream/upstream.h"

#include "backends/tries.h"
#include "base/number.h"
#include "features/features.h"
#include "features/resolver/resolver.h"
#include "settings/set_value.h"
#include "upstream/addresses.h"
#include "upstream/zone.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ZONE_LEAST 32768
#define ZONE_MOST (INT64_C(1) << 36)
#define QUEUE_MOST INT32_MAX
#define QUEUE_TIMEOUT_MS 60000

struct zone_member {
    struct zone_member *next;
    struct upstream *upstream;
};

/* A zone named by groups; the size stands with one group. */
struct upstream_zone_use {
    STAILQ_ENTRY(upstream_zone_use) link;
    const char *name;
    int64_t size;                  /* bytes; 0: not said yet */
    const struct conf_word *named; /* by the first of its groups */
    const struct conf_word *sized; /* place of the first size */
    struct zone_member *members;
};

static void upstream_begin(struct apply *apply)
{
    struct upstream_conf *conf = upstream_conf_of(apply);

    STAILQ_INIT(&conf->uses);
    STAILQ_INIT(&conf->zones);
}

/* Returns the zone of the word's name; NULL after a report. */
static struct upstream_zone_use *find_group_zone(struct apply *apply, const struct conf_word *word)
{
    struct upstream_conf *conf = upstream_conf_of(apply);
    struct upstream_zone_use *use;

    STAILQ_FOREACH (use, &conf->zones, link)
        if (strcmp(use->name, word->text) == 0)
            return use;
    use = apply_alloc(apply, sizeof(*use));
    if (use == NULL)
        return NULL;
    *use = (struct upstream_zone_use) { .name = word->text, .named = word };
    STAILQ_INSERT_TAIL(&conf->zones, use, link);
    return use;
}

static int set_zone(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct zone_member *member = apply_alloc(apply, sizeof(*member));
    struct upstream_zone_use *use;
    int64_t size = 0;

    if (directive->args[0].text[0] == '\0')
        return set_bad_value(apply, directive, 0, "expected the name of a zone");
    if (directive->arg_n == 2 &&
        number_parse_size(directive->args[1].text, 1, ZONE_MOST, &size) != NUMBER_OK)
        return set_bad_value(apply, directive, 1, "expected a size such as 64k or 1m");
    if (directive->arg_n == 2 && size < ZONE_LEAST)
        return set_bad_value(apply, directive, 1, "zone is too small: a zone has at least 32k");
    use = find_group_zone(apply, &directive->args[0]);
    if (use == NULL || member == NULL)
        return -1;
    if (use->size != 0 && size != 0 && use->size != size)
        return set_bad_value(apply, directive, 1,
            "the size %" PRId64 " of shared memory zone \"%s\" conflicts with already declared "
            "size %" PRId64,
            size, use->name, use->size);
    if (size != 0 && use->size == 0) {
        use->size = size;
        use->sized = &directive->args[1];
    }
    *member = (struct zone_member) {
        .next = use->members,
        .upstream = ((struct upstream_block *)field)->upstream,
    };
    use->members = member;
    return 0;
}

static int set_queue(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream *upstream = ((struct upstream_block *)field)->upstream;
    int64_t most;

    if (number_parse(directive->args[0].text, 1, QUEUE_MOST, &most) != NUMBER_OK)
        return set_bad_value(apply, directive, 0, "expected a number of sessions, at least 1");
    upstream->queue = (uint32_t)most;
    upstream->queue_timeout = QUEUE_TIMEOUT_MS;
    if (directive->arg_n == 2 && (strncmp(directive->args[1].text, "timeout=", 8) != 0 ||
                                     number_parse_msec(directive->args[1].text + 8, 1, INT64_MAX,
                                         &upstream->queue_timeout) != NUMBER_OK))
        return set_bad_value(apply, directive, 1, "expected timeout=time, such as timeout=60s");
    return 0;
}

static int upstream_set_drop(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream_drop *drop = field;
    const char *over;
    int64_t on;

    *drop = (struct upstream_drop) { .way = UPSTREAM_DROP_OFF };
    if (set_flag(apply, directive, &on) == -1)
        return -1;
    if (on)
        drop->way = UPSTREAM_DROP_ON;
    if (directive->arg_n == 1)
        return 0;
    over = directive->args[1].text;
    if (!on || strncmp(over, "over=", 5) != 0)
        return set_bad_value(apply, directive, 1, on ? "expected over=time" : "it is for \"on\"");
    if (number_parse_msec(over + 5, 0, INT64_MAX, &drop->over) != NUMBER_OK)
        return set_bad_value(apply, directive, 1, "expected a time such as 500ms, 30s or 1h 30m");
    return 0;
}

#define BLOCK(member) .offset = offsetof(struct upstream_block, member)

const struct setting upstream_table[] = {
    { "hash", CONTEXT_UPSTREAM, 1, 2, .set = upstream_balance_set_hash, .repeats = true,
        .unset = "none" },
    { "least_conn", CONTEXT_UPSTREAM, 0, 0, .set = upstream_balance_set_least_conn, .repeats = true,
        .unset = "none" },
    { "least_time", CONTEXT_UPSTREAM, 1, 2, .set = upstream_balance_set_least_time, .repeats = true,
        .unset = "none" },
    { "proxy_session_drop", CONTEXT_UPSTREAM, 1, 2, .set = upstream_set_drop, BLOCK(drop),
        .unset = "the server's" },
    { "queue", CONTEXT_UPSTREAM, 1, 2, .set = set_queue, .unset = "none" },
    { "random", CONTEXT_UPSTREAM, 0, 2, .set = upstream_balance_set_random, .repeats = true,
        .unset = "none" },
    { "resolver", CONTEXT_UPSTREAM, 1, UCHAR_MAX, .set = resolver_set, BLOCK(resolver),
        .unset = "stream's" },
    { "resolver_timeout", CONTEXT_UPSTREAM, 1, 1, .set = set_msec, BLOCK(resolver_timeout),
        .least_value = 1, .greatest_value = INT64_MAX, .unset = "stream's" },
    { "server", CONTEXT_UPSTREAM, 1, UCHAR_MAX, .set = upstream_server_set, .repeats = true,
        .unset = "none" },
    { "zone", CONTEXT_UPSTREAM, 1, 2, .set = set_zone, .unset = "none" },
    { .name = NULL },
};

/* Checks combinations of the directives of a block. */
static void check_block(
    struct apply *apply, struct scope *scope, const struct upstream_block *block)
{
    const struct conf_word *name = &scope->directive->name;

    CHECK_KIND(block->upstream, UPSTREAM_KIND);
    upstream_balance_check(apply, block);
    if (!apply_is_whole(apply, scope))
        return;
    if (block->upstream->server_n == 0)
        report_error(apply->report, name, "no servers are inside upstream");
    else if (!block->has_primary)
        report_error(apply->report, name, "no servers in upstream \"%s\": each is a \"backup\"",
            block->upstream->name);
}

static int upstream_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct upstream *upstream = apply_alloc(apply, sizeof(*upstream));
    struct upstream_block block = { .upstream = upstream };
    const struct conf_word *name = &directive->args[0];
    unsigned errors = apply->report->error_n;
    struct scope scope;

    (void)field;
    if (upstream == NULL)
        return -1;
    if (*name->text == '\0')
        return set_bad_value(apply, directive, 0, "expected a name");
    upstream->kind = UPSTREAM_KIND;
    upstream->name = name->text;
    upstream->word = name;
    STAILQ_INIT(&upstream->servers);
    if (upstream_add(apply, upstream) == -1 && apply->report->error_n == errors)
        report_error(apply->report, name, "duplicate upstream \"%s\"", name->text);

    memset(&scope, 0, sizeof(scope));
    scope.own = &block;
    apply_scope(apply, &scope, CONTEXT_UPSTREAM, directive);
    check_block(apply, &scope, &block);
    upstream->drop = block.drop;
    upstream->resolver = block.resolver;
    upstream->resolver_timeout = block.resolver_timeout;
    return 0;
}

/* Declares the memory for the addresses of n servers' names. */
static void declare_known(struct apply *apply, unsigned n)
{
    struct cycle *cycle = apply->cycle;

    if (n > ADDRESSES_NAMES)
        report_error(apply->report, NULL, "%u servers have names, and there is room for %d", n,
            ADDRESSES_NAMES);
    cycle->stream.addresses = addresses_declare(&cycle->zones, cycle->arena);
    if (cycle->stream.addresses == NULL)
        report_error(apply->report, NULL, "out of memory");
}

/* Gives the groups the defaults of stream {}, and marks the resolvers of names as used. */
static void finish_resolvers(struct apply *apply)
{
    const struct stream_settings *stream = &apply->cycle->stream;
    const struct upstream_server *server;
    struct upstream *upstream;
    unsigned n = 0;

    STAILQ_FOREACH (upstream, &stream->upstreams, link) {
        if (upstream->resolver == NULL)
            upstream->resolver = stream->resolver;
        if (upstream->resolver_timeout == 0)
            upstream->resolver_timeout = stream->resolver_timeout;
        STAILQ_FOREACH (server, &upstream->servers, link)
            if (server->host != NULL) {
                resolver_use(apply, upstream->resolver, NAMES_OF_GROUPS);
                n++;
            }
    }
    if (n > 0)
        declare_known(apply, n);
}

/* Reports a zone without room for the servers of the groups. */
static void check_size(struct apply *apply, const struct upstream_zone_use *use)
{
    uint64_t servers = 0, size;

    assert(use->size > 0 && use->sized != NULL);
    for (const struct zone_member *member = use->members; member != NULL; member = member->next)
        servers += member->upstream->server_n;
    size = servers * UPSTREAM_ZONE_UNIT;
    if (servers > UPSTREAM_ZONE_ENTRIES)
        report_error(apply->report, use->sized,
            "zone \"%s\" has %" PRIu64 " servers, and no zone has room for more than %u", use->name,
            servers, UPSTREAM_ZONE_ENTRIES);
    else if (size > (uint64_t)use->size)
        report_error(apply->report, use->sized,
            "zone \"%s\" is too small: %" PRIu64 " servers need at least %" PRIu64 "k", use->name,
            servers, (size + 1023) / 1024);
}

/* Declares the zone, and hands the zone to its groups. */
static void finish_zone(struct apply *apply, const struct upstream_zone_use *use)
{
    struct cycle *cycle = apply->cycle;
    struct upstream_zone *zone;

    if (use->size == 0) {
        report_error(apply->report, use->named,
            "zero size shared memory zone \"%s\": no group of the zone gives the size", use->name);
        return;
    }
    check_size(apply, use);
    zone = upstream_zone_declare(&cycle->zones, cycle->arena, use->name, (uint64_t)use->size);
    if (zone == NULL)
        report_error(apply->report, use->named, "zone \"%s\" cannot be declared: %s", use->name,
            strerror(errno));
    for (struct zone_member *member = use->members; member != NULL; member = member->next)
        member->upstream->zone = zone;
}

static void upstream_finish(struct apply *apply, struct scope *stream)
{
    const struct upstream_zone_use *use;

    upstream_finish_uses(apply, stream);
    finish_resolvers(apply);
    if (!apply_is_whole(apply, stream))
        return;
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->zones, link)
        finish_zone(apply, use);
}

static int compare_server_names(const void *a, const void *b)
{
    const struct upstream_server *const *first = a, *const *second = b;

    return strcmp((*first)->name, (*second)->name);
}

static void warn_of_twins(struct apply *apply, const struct upstream *upstream)
{
    const struct upstream_server **servers =
        apply_alloc(apply, upstream->server_n * sizeof(struct upstream_server *));
    const struct upstream_server *server;
    unsigned n = 0;

    if (servers == NULL)
        return;
    STAILQ_FOREACH (server, &upstream->servers, link)
        servers[n++] = server;
    assert(n == upstream->server_n);
    qsort(servers, n, sizeof(*servers), compare_server_names);
    for (unsigned i = 1; i < n; i++)
        if (strcmp(servers[i - 1]->name, servers[i]->name) == 0)
            report_warn(apply->report, upstream->word,
                "server %s stands twice in upstream \"%s\": \"weight=\" gives the server more "
                "sessions",
                servers[i]->name, upstream->name);
}

/* Sessions wait for room, for an address, and for one of several failed or unhealthy servers. */
static void warn_of_queue(struct apply *apply, const struct upstream *upstream)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (server->max_conns > 0 || server->host != NULL || server->is_checked ||
            (server->max_fails > 0 && upstream->server_n > 1))
            return;
    if (upstream->queue > 0)
        report_warn(apply->report, upstream->word,
            "no session ever waits in the \"queue\" of upstream \"%s\": no server has "
            "\"max_conns=\", a name or a health check",
            upstream->name);
}

/* Returns a parameter that the servers of a group share by their zone alone, or NULL. */
static const char *shared_parameter(const struct upstream *upstream)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (server->max_conns > 0 || server->max_fails > 1)
            return server->max_conns > 0 ? "max_conns=" : "max_fails=";
    return NULL;
}

static void warn_of_workers(struct apply *apply, const struct upstream *upstream)
{
    int64_t workers = apply->cycle->sizing.workers;
    const char *parameter = shared_parameter(upstream);

    if (workers == 1 || upstream->zone != NULL || parameter == NULL)
        return;
    report_warn(apply->report, upstream->word,
        "\"%s\" in upstream \"%s\" is counted by %" PRId64 " workers separately: a \"zone\" has "
        "all workers count together",
        parameter, upstream->name, workers);
}

static void upstream_warn(struct apply *apply, const struct scope *stream)
{
    const struct upstream *upstream;

    (void)stream;
    STAILQ_FOREACH (upstream, &apply->cycle->stream.upstreams, link) {
        if (upstream->is_single)
            continue;
        if (!upstream->is_used)
            report_warn(
                apply->report, upstream->word, "nothing leads to upstream \"%s\"", upstream->name);
        warn_of_twins(apply, upstream);
        warn_of_queue(apply, upstream);
    }
    STAILQ_FOREACH (upstream, &apply->cycle->stream.upstreams, link)
        warn_of_workers(apply, upstream);
}

static const struct setting rows[] = {
    { "proxy_session_drop", CONTEXT_SERVERS, 1, 2, .set = upstream_set_drop,
        SETTING_FIELD(struct server_settings, drop), .initial = "off" },
    { "upstream", CONTEXT_STREAM, 1, 1, .set = upstream_set, .block = true, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

const struct feature upstream_feature = {
    .name = "upstream",
    .rows = rows,
    .conf_size = sizeof(struct upstream_conf),
    .variables = variables_upstream,
    .begin = upstream_begin,
    .finish = upstream_finish,
    .warn = upstream_warn,
};
