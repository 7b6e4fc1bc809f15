/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for names in rounds: a round asks for the SRV records of a server with a `service`, and then
 * for the addresses of every target, or else for the addresses of the server's host alone. A round
 * collects a draft. A failed question keeps the earlier addresses; an absent name keeps none. */
#include "upstream/resolve.h"

#include "upstream/resolve_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Between two tries to claim an entry of a different process. */
#define CLAIM_MS 1000

/* ---- Hosts ---- */

static void take_addresses(const struct target *target, const fb_names *names)
{
    struct resolve *resolve = target->resolve;

    for (size_t i = 0; i < names->n; i++) {
        struct resolve_found found = {
            .priority = target->priority,
            .weight = resolve->server->service != NULL ? target->weight : 0,
        };

        if (address_from(&found.address, names->records[i].address))
            resolve_set_add(resolve->draft, &found);
    }
}

/* Takes a question's outcome; false: no addresses, with the reason noted. */
static bool take_outcome(struct resolve *resolve, const char *name, const fb_names *names)
{
    assert((names->outcome == FB_NAME_FOUND) == (names->why == NULL));
    if (names->ttl < resolve->ttl)
        resolve->ttl = names->ttl;
    if (names->outcome == FB_NAME_FOUND)
        return true;
    if (names->outcome != FB_NAME_ABSENT && names->outcome != FB_NAME_NO_DATA)
        resolve->has_failed = true;
    resolve_note_failure(resolve, name, names->why);
    return false;
}

static void target_resolved(struct fb_worker *handle, const fb_names *names, void *arg)
{
    struct target *target = arg;
    struct resolve *resolve = target->resolve;

    (void)handle;
    CHECK_KIND(resolve, RESOLVE_KIND);
    assert(target->resolution != NULL && resolve->waits > 0);
    target->resolution = NULL;
    resolve->waits--;
    if (names->outcome == FB_NAME_ENDED)
        return;
    if (take_outcome(resolve, target->name, names))
        take_addresses(target, names);
    if (resolve->waits == 0)
        resolve_end_round(resolve);
}

/* Asks for records; NULL with errno. */
static struct fb_resolution *ask_for(struct resolve *resolve, const char *name, fb_name_type type,
    in_port_t port, names_resolved *resolved, void *arg)
{
    struct upstreams *upstreams = resolve->upstreams;
    const struct names_setting *setting = resolve->upstream->resolver;
    const struct names_query query = {
        .name = name,
        .type = type,
        .timeout = (uint64_t)resolve->upstream->resolver_timeout,
        .port = port,
        .quiet = true,
        .resolved = resolved,
        .arg = arg,
    };

    if (upstreams->names == NULL) {
        errno = ENOSYS;
        return NULL;
    }
    return names_resolve(upstreams->names, setting != NULL ? setting : upstreams->system, &query);
}

/* Says in words why a question could not be asked. */
static const char *why_not_asked(int error)
{
    switch (error) {
    case EINVAL:
        return "it is no name of a host";
    case ENOMEM:
        return "there is no memory";
    case EAGAIN:
        return "too many names are being resolved";
    default:
        return "there is no resolver";
    }
}

static void ask_target(struct resolve *resolve, struct target *target)
{
    target->resolution =
        ask_for(resolve, target->name, FB_NAME_ADDRESSES, target->port, target_resolved, target);
    if (target->resolution != NULL) {
        resolve->waits++;
        return;
    }
    resolve->has_failed = resolve->has_failed || errno != EINVAL;
    resolve_note_failure(resolve, target->name, why_not_asked(errno));
}

/* Makes room for the round's targets, and for the draft; -1 without memory. */
static int make_round(struct resolve *resolve, size_t n)
{
    const struct memory *memory = resolve_memory(resolve);

    assert(resolve->targets == NULL && resolve->draft == NULL && n > 0);
    resolve->targets = memory_alloc(memory, n * sizeof(*resolve->targets));
    resolve->draft = resolve_set_create(memory);
    if (resolve->targets == NULL || resolve->draft == NULL) {
        resolve_note_memory(resolve);
        resolve_free_round(resolve);
        return -1;
    }
    return 0;
}

static void ask_targets(struct resolve *resolve)
{
    for (unsigned i = 0; i < resolve->target_n; i++)
        ask_target(resolve, &resolve->targets[i]);
}

/* ---- Services ---- */

/* Takes a record as a target; a record without a port, or of an absent service, is left out. */
static void add_srv_target(struct resolve *resolve, const fb_name_record *record)
{
    struct target *target = &resolve->targets[resolve->target_n];

    if (strcmp(record->name, ".") == 0)
        return;
    if (record->port == 0) {
        resolve_note_failure(resolve, record->name, "its port is 0");
        return;
    }
    *target = (struct target) {
        .resolve = resolve,
        .priority = record->priority,
        .weight = record->weight,
        .port = record->port,
    };
    snprintf(target->name, sizeof(target->name), "%s", record->name);
    resolve->target_n++;
}

static void service_resolved(struct fb_worker *handle, const fb_names *names, void *arg)
{
    struct resolve *resolve = arg;

    (void)handle;
    CHECK_KIND(resolve, RESOLVE_KIND);
    assert(resolve->service != NULL && resolve->waits == 0);
    resolve->service = NULL;
    if (names->outcome == FB_NAME_ENDED)
        return;
    if (make_round(resolve, names->n + 1) == 0 && take_outcome(resolve, names->name, names)) {
        for (size_t i = 0; i < names->n; i++)
            add_srv_target(resolve, &names->records[i]);
        if (resolve->target_n == 0)
            resolve_note_failure(resolve, names->name, "there is no such service");
        ask_targets(resolve);
    }
    if (resolve->waits == 0)
        resolve_end_round(resolve);
}

/* ---- Rounds ---- */

static void ask_service(struct resolve *resolve)
{
    char name[MESSAGE_NAME];

    resolve->service = ask_for(resolve, addresses_question(resolve->server, name), FB_NAME_SRV, 0,
        service_resolved, resolve);
    if (resolve->service != NULL)
        return;
    resolve->has_failed = true;
    resolve_note_failure(resolve, name, why_not_asked(errno));
}

static void ask_host(struct resolve *resolve)
{
    struct target *target;

    if (make_round(resolve, 1) == -1)
        return;
    target = &resolve->targets[resolve->target_n++];
    *target = (struct target) { .resolve = resolve, .port = resolve->server->port };
    snprintf(target->name, sizeof(target->name), "%s", resolve->server->host);
    ask_targets(resolve);
}

static void begin_round(struct resolve *resolve)
{
    assert(resolve->service == NULL && resolve->waits == 0 && resolve->draft == NULL);
    resolve->why = NULL;
    resolve->has_failed = false;
    resolve->ttl = MESSAGE_TTL_MOST;
    if (resolve->server->service != NULL)
        ask_service(resolve);
    else
        ask_host(resolve);
    if (resolve->service == NULL && resolve->waits == 0)
        resolve_end_round(resolve);
}

/* Begins with an earlier process's addresses; there is memory, or the addresses are read as
 * none. */
static void read_found(struct resolve *resolve)
{
    struct resolve_set *set = resolve_set_create(resolve_memory(resolve));
    uint32_t version = UINT32_MAX;
    bool answered;

    if (set != NULL && addresses_read(resolve->upstreams->addresses, resolve->entry, &resolve->key,
                           &version, &answered, set))
        resolve->found = resolve_set_copy(resolve_memory(resolve), set);
    memory_release(resolve_memory(resolve), set);
}

/* Claims the server's entry, and begins with the entry's addresses; or tries again in a while. */
static void claim_entry(struct resolve *resolve)
{
    struct upstreams *upstreams = resolve->upstreams;

    assert(resolve->entry == ADDRESSES_NONE && resolve->found == NULL && upstreams->writer != NULL);
    assert(!resolve->upstream->is_of_session);
    resolve->entry = addresses_claim(upstreams->writer, &resolve->key);
    if (resolve->entry == ADDRESSES_NONE) {
        timer_set(upstreams->loop, &resolve->timer, CLAIM_MS);
        return;
    }
    read_found(resolve);
    begin_round(resolve);
}

static void round_due(struct loop *loop, struct timer *timer)
{
    struct resolve *resolve = container_of(timer, struct resolve, timer);

    (void)loop;
    CHECK_KIND(resolve, RESOLVE_KIND);
    if (resolve->entry == ADDRESSES_NONE && !resolve->upstream->is_of_session)
        claim_entry(resolve);
    else
        begin_round(resolve);
}

/* ---- The group ---- */

static struct resolve *create_resolve(
    struct upstreams *upstreams, struct upstream *upstream, const struct upstream_server *server)
{
    struct resolve *resolve = memory_alloc(upstreams->memory, sizeof(*resolve));

    if (resolve == NULL)
        return NULL;
    *resolve = (struct resolve) {
        .kind = RESOLVE_KIND,
        .upstreams = upstreams,
        .upstream = upstream,
        .server = server,
        .timer.expired = round_due,
        .entry = ADDRESSES_NONE,
    };
    if (upstream->is_of_session)
        upstream->unanswered++;
    else
        resolve->key = addresses_key_of(upstream, server);
    return resolve;
}

int resolve_open(struct upstreams *upstreams, struct upstream *upstream)
{
    const struct upstream_server *server;
    struct resolve **next = &upstream->resolves, *resolve;

    assert(upstream->resolves == NULL);
    STAILQ_FOREACH (server, &upstream->servers, link) {
        if (server->target != NULL)
            continue;
        *next = create_resolve(upstreams, upstream, server);
        if (*next == NULL) {
            resolve_close(upstream);
            return -1;
        }
        next = &(*next)->next;
    }
    for (resolve = upstream->resolves; resolve != NULL; resolve = resolve->next)
        if (upstream->is_of_session)
            begin_round(resolve);
        else
            claim_entry(resolve);
    return 0;
}

/* Gives up the round that runs. */
static void cancel_round(struct resolve *resolve)
{
    if (resolve->service != NULL)
        names_cancel(resolve->service);
    resolve->service = NULL;
    for (unsigned i = 0; i < resolve->target_n; i++)
        if (resolve->targets[i].resolution != NULL)
            names_cancel(resolve->targets[i].resolution);
    resolve->waits = 0;
    resolve_free_round(resolve);
}

void resolve_close(struct upstream *upstream)
{
    struct resolve *resolve;

    while ((resolve = upstream->resolves) != NULL) {
        const struct memory *memory = resolve_memory(resolve);

        CHECK_KIND(resolve, RESOLVE_KIND);
        upstream->resolves = resolve->next;
        timer_del(resolve->upstreams->loop, &resolve->timer);
        cancel_round(resolve);
        memory_release(memory, resolve->found);
        resolve->kind = 0;
        memory_release(memory, resolve);
    }
    if (upstream->is_of_session)
        upstream->unanswered = 0;
}
