/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies to the command "upstream" with the host's groups; to a change with the changed group. A
 * reply has at most SERVERS_MAX servers. */
#include "control/upstream.h"

#include "base/compiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SERVERS_MAX 4096
/* Bytes of a name in a request, with the NUL. */
#define NAME_SIZE 512
/* Limits of names in an error, and of bytes of a name. */
#define NAMES_LISTED 8
#define NAME_SHOWN 80

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

static void write_server(void *arg, const struct control_server *server)
{
    struct listing *listing = arg;
    struct json *json = listing->json;

    if (!count_listed(listing))
        return;
    json_object(json, NULL);
    json_string(json, "server", server->name);
    json_string(json, "address", server->address);
    json_string(json, "state", server->state);
    json_string(json, "set", server->set);
    json_bool(json, "backup", server->backup);
    json_number(json, "weight", server->weight);
    json_number(json, "max_conns", server->max_conns);
    json_number(json, "connections", (int64_t)server->connections);
    json_number(json, "sessions", (int64_t)server->sessions);
    json_number(json, "failures", (int64_t)server->failures);
    json_number(json, "resets", (int64_t)server->resets);
    json_number(json, "timeouts", (int64_t)server->timeouts);
    json_number(json, "refusals", (int64_t)server->refusals);
    json_number(json, "slow", (int64_t)server->slow);
    json_close(json);
}

static void write_name(void *arg, const struct control_name *name)
{
    struct listing *listing = arg;
    struct json *json = listing->json;

    if (!count_listed(listing))
        return;
    json_object(json, NULL);
    json_string(json, "server", name->server);
    json_number(json, "addresses", name->addresses);
    if (name->age_ms >= 0)
        json_number(json, "age_ms", name->age_ms);
    if (name->failed_ms >= 0)
        json_number(json, "failed_ms", name->failed_ms);
    json_string(json, "error", name->error);
    json_close(json);
}

/* Writes all groups, or the named group. */
static void write_upstreams(const struct control *control, const char *name, struct json *json)
{
    const struct control_ops *ops = control->ops;
    struct listing listing = { .json = json };
    struct control_upstream upstream;
    const void *group = NULL;

    json_array(json, "upstreams");
    while ((group = ops->upstream(control->host, group, &upstream)) != NULL) {
        assert(upstream.name != NULL && upstream.balancer != NULL);
        if (name != NULL && strcmp(name, upstream.name) != 0)
            continue;
        json_object(json, NULL);
        json_string(json, "name", upstream.name);
        json_string(json, "balancer", upstream.balancer);
        json_string(json, "zone", upstream.zone);
        json_array(json, "servers");
        ops->upstream_servers(control->host, group, write_server, &listing);
        json_close(json);
        json_array(json, "names");
        ops->upstream_names(control->host, group, write_name, &listing);
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

static void add_refusal_server(void *arg, const struct control_server *server)
{
    add_refusal_name(arg, server->name);
}

static void refuse_upstream(
    const struct control *control, const char *name, struct refusal *refusal)
{
    struct control_upstream upstream;
    const void *group = control->ops->upstream(control->host, NULL, &upstream);

    add_refusal_text(refusal, "unknown upstream \"%.*s\"", NAME_SHOWN, name);
    if (group == NULL) {
        add_refusal_text(refusal, ": the configuration in force has none");
        return;
    }
    add_refusal_text(refusal, ", the configuration in force has");
    while (group != NULL) {
        add_refusal_name(refusal, upstream.name);
        group = control->ops->upstream(control->host, group, &upstream);
    }
}

/* Returns the named group; NULL: unknown. */
static const void *find_upstream(const struct control *control, const char *name)
{
    struct control_upstream upstream;
    const void *group = NULL;

    while ((group = control->ops->upstream(control->host, group, &upstream)) != NULL)
        if (strcmp(upstream.name, name) == 0)
            break;
    return group;
}

/* A request for a change. */
struct change {
    const void *group;
    char upstream[NAME_SIZE], server[NAME_SIZE], state[16];
};

/* Describes the host's refusal of a change. */
static void refuse_change(const struct control *control, const struct change *change,
    enum control_set why, struct refusal *refusal)
{
    switch (why) {
    case CONTROL_SET_NO_STATE:
        add_refusal_text(
            refusal, "unknown state \"%s\", expected up, drain, down or auto", change->state);
        break;
    case CONTROL_SET_NO_ZONE:
        add_refusal_text(refusal,
            "upstream \"%s\" has no zone, without which workers cannot be told of a state: add "
            "\"zone %s 64k;\" to it and reload",
            change->upstream, change->upstream);
        break;
    case CONTROL_SET_NO_SERVER:
        add_refusal_text(refusal, "upstream \"%s\" has no server \"%.*s\", it has",
            change->upstream, NAME_SHOWN, change->server);
        control->ops->upstream_servers(control->host, change->group, add_refusal_server, refusal);
        break;
    default:
        add_refusal_text(refusal,
            "the zone of upstream \"%s\" has no room for another state: make it larger and reload",
            change->upstream);
    }
}

/* Makes the requested change; false if refused. */
static bool change_state(
    struct control_client *client, struct json_value request, struct refusal *refusal)
{
    const struct control *control = client->control;
    struct change change;
    enum control_set set;

    if (!json_text(json_member(request, "upstream"), change.upstream, NAME_SIZE) ||
        !json_text(json_member(request, "server"), change.server, NAME_SIZE) ||
        !json_text(json_member(request, "state"), change.state, sizeof(change.state))) {
        add_refusal_text(
            refusal, "the request has no \"upstream\", \"server\" and \"state\" of text");
        return false;
    }
    change.group = find_upstream(control, change.upstream);
    if (change.group == NULL) {
        refuse_upstream(control, change.upstream, refusal);
        return false;
    }
    set = control->ops->upstream_set(control->host, change.group, change.server, change.state);
    if (set != CONTROL_SET_DONE) {
        refuse_change(control, &change, set, refusal);
        return false;
    }
    log_write(control->log, LEVEL_NOTICE, 0,
        "\"upstream %s %s %s\" received from %d by the control socket", change.upstream,
        change.state, change.server, (int)client->pid);
    return true;
}

/* Carries out the request, and writes the reply unless it is an error. */
static bool carry_out(
    struct control_client *client, struct json_value request, struct refusal *refusal)
{
    const struct control *control = client->control;
    char name[NAME_SIZE];
    bool named = json_text(json_member(request, "upstream"), name, sizeof(name));
    struct json json;

    if (json_member(request, "state").text != NULL || json_member(request, "server").text != NULL) {
        if (!change_state(client, request, refusal))
            return false;
    } else if (named && find_upstream(control, name) == NULL) {
        refuse_upstream(control, name, refusal);
        return false;
    }
    control_reply_begin(&json, true);
    write_upstreams(control, named ? name : NULL, &json);
    control_reply_end(&json, client);
    return true;
}

void control_upstream_handle(struct control_client *client, struct json_value request)
{
    struct refusal refusal = { .n = 0 };
    bool ok;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    ok = carry_out(client, request, &refusal);
    client->control->ops->upstreams_end(client->control->host);
    if (!ok)
        control_reply_error(client, refusal.text, false);
}
