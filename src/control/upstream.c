/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies to the command "upstream" with the groups of the configuration in force; to a change of
 * an operator's state of a server with the changed group. A reply has at most SERVERS_MAX servers.
 * Numbers of a zone are written by workers: shown, and never relied on. */
#include "control/upstream.h"

#include "base/compiler.h"
#include "upstream/addresses.h"
#include "upstream/balancer.h"
#include "upstream/status.h"
#include "upstream/zone.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SERVERS_MAX 4096
/* Bytes of a name in a request, with the NUL. */
#define NAME_SIZE 512
/* Limits of names in an error, and of bytes of a name. */
#define NAMES_LISTED 8
#define NAME_SHOWN 80

static const char *const operator_names[] = {
    [UPSTREAM_AUTO] = "auto",
    [UPSTREAM_UP] = "up",
    [UPSTREAM_DRAIN] = "drain",
    [UPSTREAM_DOWN] = "down",
};

#define OPERATOR_UNKNOWN ((enum upstream_operator)countof(operator_names)) /* without a zone */

/* Returns the first `upstream {}` from here on, or NULL. */
static const struct upstream *next_group(const struct upstream *upstream)
{
    while (upstream != NULL && upstream->is_single)
        upstream = STAILQ_NEXT(upstream, link);
    return upstream;
}

static const struct upstream *first_group(const struct control *control)
{
    assert(control->pool->serving != NULL);
    return next_group(STAILQ_FIRST(&control->pool->serving->cycle->stream.upstreams));
}

#define GROUP_FOREACH(group, control)                                                              \
    for ((group) = first_group(control); (group); (group) = next_group(STAILQ_NEXT(group, link)))

/* Calls `each` for the group's servers, at all addresses. */
static void visit_servers(const struct control *control, const struct upstream *group,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    const struct upstream_server *server;

    if (upstream_status_read(group, control->pool->clock->mono_ms, each, arg) == 0)
        return;
    STAILQ_FOREACH (server, &group->servers, link) {
        struct upstream_numbers numbers = { .server = server, .said = OPERATOR_UNKNOWN };

        if (server->target != NULL)
            snprintf(numbers.address, sizeof(numbers.address), "%s", server->target->text);
        each(arg, &numbers);
    }
}

struct listing {
    struct json *json;
    uint32_t n, left_out;
};

/* Counts a server or a name; false: no room in the reply. */
static bool count_listed(struct listing *listing)
{
    bool has_room = listing->n < SERVERS_MAX;

    listing->n += has_room;
    listing->left_out += !has_room;
    return has_room;
}

/* Returns the state by operator, configuration and observation, in this order; NULL: unknown. */
static const char *server_state(const struct upstream_numbers *numbers)
{
    const struct upstream_server *server = numbers->server;

    if (numbers->said == OPERATOR_UNKNOWN)
        return NULL;
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

static void write_server(void *arg, const struct upstream_numbers *numbers)
{
    const struct upstream_server *server = numbers->server;
    bool has_zone = numbers->said != OPERATOR_UNKNOWN;
    struct listing *listing = arg;
    struct json *json = listing->json;

    assert((size_t)numbers->said <= countof(operator_names));
    if (!count_listed(listing))
        return;
    json_object(json, NULL);
    json_string(json, "server", server->name);
    json_string(json, "address", numbers->address[0] != '\0' ? numbers->address : NULL);
    json_string(json, "state", server_state(numbers));
    json_string(json, "set", has_zone ? operator_names[numbers->said] : NULL);
    json_bool(json, "backup", server->backup);
    json_number(json, "weight", server->weight);
    json_number(json, "max_conns", server->max_conns);
    json_number(json, "connections", numbers->conns);
    json_number(json, "sessions", numbers->sessions & INT64_MAX);
    json_number(json, "failures", numbers->failures & INT64_MAX);
    json_number(json, "resets", numbers->troubles[PEER_RESET] & INT64_MAX);
    json_number(json, "timeouts", numbers->troubles[PEER_TIMED_OUT] & INT64_MAX);
    json_number(json, "refusals", numbers->troubles[PEER_REFUSED] & INT64_MAX);
    json_number(json, "slow", numbers->troubles[PEER_SLOW] & INT64_MAX);
    json_close(json);
}

/* Writes the age of a time in the zone, unless 0. */
static void write_age(struct json *json, const char *key, uint64_t now_ms, uint64_t ms)
{
    if (ms != 0)
        json_number(json, key, (int64_t)(now_ms - ms) & INT64_MAX);
}

/* Reads what the resolver process has recorded of a server's name. */
static void read_name(const struct control *control, const struct upstream *group,
    const struct upstream_server *server, struct addresses_state *state)
{
    const struct zone *known = control->pool->serving->cycle->stream.addresses;
    const struct addresses_key key = addresses_key_of(group, server);
    uint32_t entry = addresses_find(known, &key);

    if (entry == ADDRESSES_NONE || !addresses_read_state(known, entry, &key, state))
        *state = (struct addresses_state) { .n = 0 };
}

static void write_name(const struct control *control, const struct upstream *group,
    const struct upstream_server *server, struct json *json)
{
    struct addresses_state state;

    read_name(control, group, server, &state);
    json_object(json, NULL);
    json_string(json, "server", server->name);
    json_number(json, "addresses", state.n);
    write_age(json, "age_ms", control->pool->clock->mono_ms, state.answered_ms);
    write_age(json, "failed_ms", control->pool->clock->mono_ms, state.failed_ms);
    json_string(json, "error", state.why[0] != '\0' ? state.why : NULL);
    json_close(json);
}

/* Writes all groups, or the named group. */
static void write_upstreams(const struct control *control, const char *name, struct json *json)
{
    struct listing listing = { .json = json };
    const struct upstream_server *server;
    const struct upstream *group;

    json_array(json, "upstreams");
    GROUP_FOREACH(group, control)
    {
        const struct balancer *balancer = group->balance.balancer;

        if (name != NULL && strcmp(name, group->name) != 0)
            continue;
        json_object(json, NULL);
        json_string(json, "name", group->name);
        json_string(json, "balancer", balancer != NULL ? balancer->name : "round_robin");
        json_string(json, "zone", group->zone != NULL ? group->zone->name : NULL);
        json_array(json, "servers");
        visit_servers(control, group, write_server, &listing);
        json_close(json);
        json_array(json, "names");
        STAILQ_FOREACH (server, &group->servers, link)
            if (server->target == NULL && count_listed(&listing))
                write_name(control, group, server, json);
        json_close(json);
        json_close(json);
    }
    json_close(json);
    json_number(json, "left_out", listing.left_out);
}

/* An error with a list of names. */
struct refusal {
    char text[1024];
    size_t n;
    unsigned names;
    char last[NAME_SHOWN];
};

static PRINTF_FORMAT(2, 3) void add_refusal_text(struct refusal *refusal, const char *format, ...)
{
    size_t left = sizeof(refusal->text) - refusal->n;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(refusal->text + refusal->n, left, format, args);
    va_end(args);
    if (n > 0)
        refusal->n += (size_t)n < left ? (size_t)n : left - 1;
}

/* Adds a name, unless a repetition of the latest: a server has a line for each address. */
static void add_refusal_name(struct refusal *refusal, const char *name)
{
    if (refusal->names > 0 && strncmp(refusal->last, name, NAME_SHOWN - 1) == 0)
        return;
    if (refusal->names++ > NAMES_LISTED)
        return;
    if (refusal->names > NAMES_LISTED)
        add_refusal_text(refusal, ", ...");
    else
        add_refusal_text(refusal, "%s \"%.*s\"", refusal->names > 1 ? "," : "", NAME_SHOWN, name);
    snprintf(refusal->last, sizeof(refusal->last), "%s", name);
}

static void add_refusal_server(void *arg, const struct upstream_numbers *numbers)
{
    add_refusal_name(arg, numbers->server->name);
}

/* Returns the named group; NULL, with a refusal: unknown. */
static const struct upstream *find_upstream(
    const struct control *control, const char *name, struct refusal *refusal)
{
    const struct upstream *group;

    GROUP_FOREACH(group, control)
    if (strcmp(group->name, name) == 0)
        return group;
    add_refusal_text(refusal, "unknown upstream \"%.*s\"%s", NAME_SHOWN, name,
        first_group(control) != NULL ? ", the configuration in force has"
                                     : ": the configuration in force has none");
    GROUP_FOREACH(group, control)
    add_refusal_name(refusal, group->name);
    return NULL;
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

/* Returns the key of a state: the name, or one of several addresses; NULL: no such server. */
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

/* A request for a change. */
struct change {
    char upstream[NAME_SIZE], server[NAME_SIZE], state[16];
};

/* Sets the requested state; false if refused. */
static bool set_server_state(const struct control *control, const struct upstream *group,
    const struct change *change, struct refusal *refusal)
{
    uint64_t now_ms = control->pool->clock->mono_ms;
    const char *name = NULL;
    unsigned to = 0;

    while (to < countof(operator_names) && strcmp(operator_names[to], change->state) != 0)
        to++;
    if (to < countof(operator_names) && group->zone != NULL)
        name = find_server_name(group, change->server, now_ms);
    errno = 0;
    if (name != NULL && upstream_operator_set(group, name, (enum upstream_operator)to, now_ms) == 0)
        return true;
    if (to == countof(operator_names)) {
        add_refusal_text(
            refusal, "unknown state \"%s\", expected up, drain, down or auto", change->state);
    } else if (group->zone == NULL || errno == ENOTSUP) {
        add_refusal_text(refusal,
            "upstream \"%s\" has no zone, and without a zone workers cannot be told of a state: "
            "add "
            "\"zone %s 64k;\" to the block and reload",
            change->upstream, change->upstream);
    } else if (name == NULL) {
        add_refusal_text(refusal, "upstream \"%s\" has no server \"%.*s\", only", change->upstream,
            NAME_SHOWN, change->server);
        visit_servers(control, group, add_refusal_server, refusal);
    } else {
        add_refusal_text(refusal,
            "the zone of upstream \"%s\" has no room for a further state: make the zone larger and "
            "reload",
            change->upstream);
    }
    return false;
}

/* Makes the requested change; false if refused. */
static bool change_state(
    struct control_client *client, struct json_value request, struct refusal *refusal)
{
    const struct control *control = client->control;
    const struct upstream *group;
    struct change change;

    if (!json_text(json_member(request, "upstream"), change.upstream, NAME_SIZE) ||
        !json_text(json_member(request, "server"), change.server, NAME_SIZE) ||
        !json_text(json_member(request, "state"), change.state, sizeof(change.state))) {
        add_refusal_text(
            refusal, "the request has no \"upstream\", \"server\" and \"state\" of text");
        return false;
    }
    group = find_upstream(control, change.upstream, refusal);
    if (group == NULL || !set_server_state(control, group, &change, refusal))
        return false;
    log_event(control->pool->log, "upstream_set", LEVEL_NOTICE, 0,
        "\"upstream %s %s %s\" received from %d by the control socket", change.upstream,
        change.state, change.server, (int)client->pid);
    return true;
}

static void forget_zones(const struct control *control)
{
    const struct upstream *group;

    GROUP_FOREACH(group, control)
    if (group->zone != NULL)
        upstream_status_forget(group->zone);
}

void control_upstream_handle(struct control_client *client, struct json_value request)
{
    const struct control *control = client->control;
    struct refusal refusal = { .n = 0 };
    char name[NAME_SIZE];
    bool named = json_text(json_member(request, "upstream"), name, sizeof(name)), ok = true;
    struct json json;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    if (json_member(request, "state").text != NULL || json_member(request, "server").text != NULL)
        ok = change_state(client, request, &refusal);
    else if (named)
        ok = find_upstream(control, name, &refusal) != NULL;
    if (ok) {
        control_reply_begin(&json, true);
        write_upstreams(control, named ? name : NULL, &json);
        control_reply_end(&json, client, false);
    } else {
        control_reply_error(client, refusal.text, false);
    }
    forget_zones(control);
}

/* The servers of a group, at all addresses. */
struct group_look {
    struct problems *problems;
    const char *name, *advice;
    unsigned in_use; /* get sessions, or have an unknown state */
};

static void look_at_server(void *arg, const struct upstream_numbers *numbers)
{
    struct group_look *look = arg;
    const char *state = server_state(numbers), *name = numbers->server->name;
    const char *address = strcmp(numbers->address, name) != 0 ? numbers->address : "";

    if (state == NULL || strcmp(state, "up") == 0 || strcmp(state, "full") == 0)
        look->in_use++;
    else if (strcmp(state, "unhealthy") == 0 || strcmp(state, "failed") == 0 ||
             strcmp(state, "unresolved") == 0)
        problem_add(look->problems, PROBLEM_WARNING, look->advice,
            "server %s%s%s of upstream \"%s\" is %s", numbers->server->name,
            address[0] != '\0' ? " " : "", address, look->name, state);
}

/* Adds servers whose names are asked for in vain: old addresses may be wrong by now. */
static void add_unanswered_names(const struct control *control, const struct upstream *group,
    const char *advice, struct problems *problems)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &group->servers, link) {
        struct addresses_state state;
        uint64_t ms;

        if (server->target != NULL)
            continue;
        read_name(control, group, server, &state);
        ms = (control->pool->clock->mono_ms - state.failed_ms) & INT64_MAX;
        if (state.failed_ms != 0)
            problem_add(problems, PROBLEM_WARNING, advice,
                "server %s of upstream \"%s\" %s, without a good answer for %" PRIu64 " s (%s)",
                server->name, group->name, state.n > 0 ? "keeps its addresses" : "has no address",
                ms / 1000, state.why);
    }
}

void control_upstream_problems(const struct control *control, struct problems *problems)
{
    const struct upstream *group;

    GROUP_FOREACH(group, control)
    {
        struct group_look look = { .problems = problems, .name = group->name };
        char advice[NAME_SIZE];

        snprintf(advice, sizeof(advice), "forkbeard upstream %s", group->name);
        look.advice = advice;
        visit_servers(control, group, look_at_server, &look);
        add_unanswered_names(control, group, advice, problems);
        if (look.in_use == 0)
            problem_add(problems, PROBLEM_CRITICAL, advice,
                "upstream \"%s\" has no server that is up", group->name);
    }
    forget_zones(control);
}
