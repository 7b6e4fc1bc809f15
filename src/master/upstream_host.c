/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows groups of servers to the control socket, and sets an operator's state of a server.
 * Numbers of a zone are written by workers: shown, and never relied on. */
#include "master/upstream_host.h"

#include "base/compiler.h"
#include "master/master.h"
#include "upstream/addresses.h"
#include "upstream/balancer.h"
#include "upstream/operators.h"
#include "upstream/status.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *const operator_names[] = {
    [UPSTREAM_AUTO] = "auto",
    [UPSTREAM_UP] = "up",
    [UPSTREAM_DRAIN] = "drain",
    [UPSTREAM_DOWN] = "down",
};

/* Returns the first `upstream {}` from here on, or NULL. */
static const struct upstream *next_upstream(const struct upstream *upstream)
{
    while (upstream != NULL && upstream->is_single)
        upstream = STAILQ_NEXT(upstream, link);
    return upstream;
}

static const struct upstream_list *list_of(const void *host)
{
    const struct master *master = master_of(host);

    assert(master->pool.serving != NULL);
    return &master->pool.serving->cycle->stream.upstreams;
}

static const struct upstream *group_of(const void *group)
{
    const struct upstream *upstream = group;

    CHECK_KIND(upstream, UPSTREAM_KIND);
    assert(!upstream->is_single);
    return upstream;
}

const void *upstream_host_next(void *host, const void *before, struct control_upstream *out)
{
    const struct upstream *upstream;
    const struct balancer *balancer;

    if (before == NULL)
        upstream = next_upstream(STAILQ_FIRST(list_of(host)));
    else
        upstream = next_upstream(STAILQ_NEXT(group_of(before), link));
    if (upstream == NULL)
        return NULL;
    balancer = upstream->balance.balancer;
    *out = (struct control_upstream) {
        .name = upstream->name,
        .balancer = balancer != NULL ? balancer->name : "round_robin",
        .zone = upstream->zone != NULL ? upstream->zone->name : NULL,
    };
    return upstream;
}

void upstream_host_end(void *host)
{
    const struct upstream *upstream;

    STAILQ_FOREACH (upstream, list_of(host), link)
        if (upstream->zone != NULL)
            upstream_status_forget(upstream->zone);
}

/* Returns the state in sessions: by operator, configuration and observation, in this order;
 * NULL: unknown. */
static const char *server_state(const struct upstream_numbers *numbers)
{
    const struct upstream_server *server = numbers->server;

    if (numbers->said == UPSTREAM_DOWN || (numbers->said == UPSTREAM_AUTO && server->down))
        return "down";
    if (numbers->said == UPSTREAM_DRAIN || (numbers->said == UPSTREAM_AUTO && server->drain))
        return "draining";
    if (numbers->address[0] == '\0')
        return "unresolved";
    if (!numbers->is_used)
        return NULL;
    if (numbers->said != UPSTREAM_UP && numbers->health == PEER_HEALTH_BAD)
        return "unhealthy";
    if (numbers->said != UPSTREAM_UP && numbers->health == PEER_HEALTH_CHECKING)
        return "checking";
    if (numbers->failed)
        return "failed";
    return server->max_conns > 0 && numbers->conns >= server->max_conns ? "full" : "up";
}

static struct control_server describe_server(const struct upstream_server *server)
{
    return (struct control_server) {
        .name = server->name,
        .address = server->target != NULL ? server->target->text : NULL,
        .backup = server->backup,
        .weight = server->weight,
        .max_conns = server->max_conns,
    };
}

struct listing {
    void (*each)(void *arg, const struct control_server *server);
    void *arg;
};

static void list_numbers(void *arg, const struct upstream_numbers *numbers)
{
    const struct listing *listing = arg;
    struct control_server server = describe_server(numbers->server);

    assert((size_t)numbers->said < countof(operator_names));
    server.address = numbers->address[0] != '\0' ? numbers->address : NULL;
    server.state = server_state(numbers);
    server.set = operator_names[numbers->said];
    server.connections = numbers->conns;
    server.sessions = numbers->sessions & INT64_MAX;
    server.failures = numbers->failures & INT64_MAX;
    server.resets = numbers->troubles[PEER_RESET] & INT64_MAX;
    server.timeouts = numbers->troubles[PEER_TIMED_OUT] & INT64_MAX;
    server.refusals = numbers->troubles[PEER_REFUSED] & INT64_MAX;
    server.slow = numbers->troubles[PEER_SLOW] & INT64_MAX;
    listing->each(listing->arg, &server);
}

void upstream_host_servers(void *host, const void *group,
    void (*each)(void *arg, const struct control_server *server), void *arg)
{
    uint64_t now_ms = master_of(host)->clock.mono_ms;
    const struct upstream *upstream = group_of(group);
    struct listing listing = { each, arg };
    const struct upstream_server *server;

    if (upstream_status_read(upstream, now_ms, list_numbers, &listing) == 0)
        return;
    STAILQ_FOREACH (server, &upstream->servers, link) {
        struct control_server shown = describe_server(server);

        each(arg, &shown);
    }
}

/* Reads the known state of a server's name. */
static struct control_name read_server_name(const struct zone *known,
    const struct upstream *upstream, const struct upstream_server *server, uint64_t now_ms,
    struct addresses_state *state)
{
    const struct addresses_key key = addresses_key_of(upstream, server);
    struct control_name name = { .server = server->name, .age_ms = -1, .failed_ms = -1 };
    uint32_t entry = addresses_find(known, &key);

    if (entry == ADDRESSES_NONE || !addresses_read_state(known, entry, &key, state))
        return name;
    name.addresses = state->n;
    if (state->answered_ms != 0)
        name.age_ms = (int64_t)(now_ms - state->answered_ms) & INT64_MAX;
    if (state->failed_ms != 0)
        name.failed_ms = (int64_t)(now_ms - state->failed_ms) & INT64_MAX;
    name.error = state->why[0] != '\0' ? state->why : NULL;
    return name;
}

void upstream_host_names(void *host, const void *group,
    void (*each)(void *arg, const struct control_name *name), void *arg)
{
    const struct master *master = master_of(host);
    const struct zone *known = master->pool.serving->cycle->stream.addresses;
    const struct upstream *upstream = group_of(group);
    const struct upstream_server *server;
    struct addresses_state state;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (server->target == NULL) {
            struct control_name name =
                read_server_name(known, upstream, server, master->clock.mono_ms, &state);

            each(arg, &name);
        }
}

/* A search for a server by name or address. */
struct search {
    const char *text;
    const char *name; /* NULL: not found */
};

static void match_address(void *arg, const struct upstream_numbers *numbers)
{
    struct search *search = arg;

    if (search->name == NULL && strcmp(numbers->address, search->text) == 0)
        search->name = numbers->server->target != NULL ? numbers->server->name : search->text;
}

/* Returns the key of a server's state: the name, or an address among several; NULL: no such
 * server. */
static const char *find_server_name(
    const struct upstream *upstream, const char *text, uint64_t now_ms)
{
    struct search search = { .text = text };
    const struct upstream_server *server;
    uint64_t since_ms;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (strcmp(server->name, text) == 0)
            return server->name;
    if (upstream_status_read(upstream, now_ms, match_address, &search) == 0 &&
        search.name == NULL &&
        upstream_operator_said(upstream->zone,
            &(struct upstream_place) { upstream->name, text, text }, &since_ms) != UPSTREAM_AUTO)
        return text; /* gone by now, but for its state */
    return search.name;
}

enum control_set upstream_host_set(
    void *host, const void *group, const char *server, const char *state)
{
    uint64_t now_ms = master_of(host)->clock.mono_ms;
    const struct upstream *upstream = group_of(group);
    const char *name;
    unsigned to = 0;

    while (to < countof(operator_names) && strcmp(operator_names[to], state) != 0)
        to++;
    if (to == countof(operator_names))
        return CONTROL_SET_NO_STATE;
    if (upstream->zone == NULL)
        return CONTROL_SET_NO_ZONE;
    name = find_server_name(upstream, server, now_ms);
    if (name == NULL)
        return CONTROL_SET_NO_SERVER;
    if (upstream_operator_set(upstream, name, (enum upstream_operator)to, now_ms) == 0)
        return CONTROL_SET_DONE;
    return errno == ENOTSUP ? CONTROL_SET_NO_ZONE : CONTROL_SET_NO_ROOM;
}
