/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for names in rounds: for the SRV records of a server with a `service`, and then for the
 * addresses of every target, or else for the addresses of the host. A round collects a draft, in
 * force at the end. A failed question keeps the earlier addresses; an absent name keeps none. */
#include "upstream/resolve.h"

#include "base/log.h"
#include "upstream/addresses.h"
#include "upstream/queue.h"
#include "upstream/refresh.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RESOLVE_KIND KIND('R', 's', 'l', 'U')

/* The time between two tries to claim an entry of a different process. */
#define CLAIM_MS 1000
/* The time from a failure to the next round; doubled with each further failure. */
#define RETRY_MS 1000u
#define RETRY_MOST_MS 30000u

/* A host with addresses asked for by a round. */
struct target {
    struct resolve *resolve;
    struct fb_resolution *resolution; /* NULL: no question runs */
    uint16_t priority, weight;        /* the SRV record's */
    in_port_t port;
    char name[MESSAGE_NAME];
};

/* A server's name, and the running round of questions. */
struct resolve {
    unsigned kind;
    struct upstreams *upstreams;
    struct upstream *upstream;
    const struct upstream_server *server;
    struct resolve *next; /* in the order of the group's servers */
    struct timer timer;   /* the next round's, or until the entry is claimed again */
    struct addresses_key key;
    uint32_t entry; /* claimed; ADDRESSES_NONE: a different process's, or the name is a session's */
    struct resolve_set *found;
    bool has_answered; /* a round has ended */
    unsigned failures; /* rounds in a row without addresses, or with a failed question */
    const char *why;   /* reason of the latest round's failure; NULL: none */
    char why_name[MESSAGE_NAME];
    const char *logged; /* the failure known to the error log; NULL: none */
    /* the running round */
    struct fb_resolution *service; /* NULL: no SRV records are asked for now */
    struct target *targets;
    unsigned target_n, waits; /* targets, and targets without an answer */
    struct resolve_set *draft;
    bool has_failed; /* a question has: earlier addresses may still hold */
    uint32_t ttl;    /* the least of all answers, in seconds */
};

static const struct memory *resolve_memory(const struct resolve *resolve)
{
    return resolve->upstreams->memory;
}

/* Notes an incomplete round. */
static void note_failure(struct resolve *resolve, const char *name, const char *why)
{
    if (resolve->why != NULL)
        return;
    resolve->why = why;
    snprintf(resolve->why_name, sizeof(resolve->why_name), "%s", name);
}

static void note_no_memory(struct resolve *resolve)
{
    resolve->has_failed = true;
    note_failure(resolve, resolve->server->host, "there is no memory");
}

/* Puts the draft in force, for the session's peers or for all workers; -1 without memory. */
static int take_draft(struct resolve *resolve)
{
    const struct memory *memory = resolve_memory(resolve);
    struct resolve_set *set;

    if (resolve->upstream->is_of_session)
        return refresh_replace(resolve->upstream, resolve->server, resolve->draft, &resolve->found);
    if (resolve_set_equal(resolve->found, resolve->draft))
        return 0;
    set = resolve_set_create(memory, resolve->draft);
    if (set == NULL)
        return -1;
    memory_release(memory, resolve->found);
    resolve->found = set;
    addresses_write(resolve->upstreams->writer, resolve->entry, set);
    return 0;
}

static void log_round_failure(struct resolve *resolve)
{
    const struct resolve_set *found = resolve->found;

    assert(resolve->why != NULL);
    if (resolve->upstream->is_of_session || resolve->logged == resolve->why)
        return;
    resolve->logged = resolve->why;
    log_write(resolve->upstreams->log, LEVEL_ERROR, 0,
        "\"%s\" could not be resolved: %s, server \"%s\" of upstream \"%s\" %s", resolve->why_name,
        resolve->why, resolve->server->name, resolve->upstream->name,
        found == NULL || found->n == 0 ? "is down" : "keeps its addresses");
}

static void log_found(struct resolve *resolve, size_t before)
{
    if (resolve->upstream->is_of_session)
        return;
    if (resolve->logged != NULL || before != resolve->found->n)
        log_write(resolve->upstreams->log, resolve->logged != NULL ? LEVEL_NOTICE : LEVEL_INFO, 0,
            "server \"%s\" of upstream \"%s\" has been resolved, addresses: %zu",
            resolve->server->name, resolve->upstream->name, resolve->found->n);
    if (resolve->found->is_cut && before != resolve->found->n)
        log_write(resolve->upstreams->log, LEVEL_WARN, 0,
            "server \"%s\" of upstream \"%s\" has more addresses than %d, which are used",
            resolve->server->name, resolve->upstream->name, RESOLVE_ADDRESSES);
    resolve->logged = NULL;
}

/* Sets the next round's time, if any: a growing time after a failure; else the answer's time. */
static void schedule_round(struct resolve *resolve)
{
    struct upstreams *upstreams = resolve->upstreams;
    unsigned doubled = resolve->failures < 6 ? resolve->failures : 6;
    uint64_t ms = (uint64_t)(resolve->ttl > 0 ? resolve->ttl : 1) * 1000 + 1;

    if (resolve->upstream->is_of_session || (doubled == 0 && !resolve->server->resolve))
        return;
    if (doubled > 0) {
        ms = RETRY_MS << (doubled - 1);
        if (ms > RETRY_MOST_MS)
            ms = RETRY_MOST_MS;
        ms -= upstreams->random(upstreams, (uint32_t)ms / 4);
    } else {
        ms += upstreams->random(upstreams, 250);
    }
    timer_set(upstreams->loop, &resolve->timer, ms);
}

static void free_round(struct resolve *resolve)
{
    assert(resolve->service == NULL && resolve->waits == 0);
    memory_release(resolve_memory(resolve), resolve->targets);
    memory_release(resolve_memory(resolve), resolve->draft);
    resolve->targets = NULL;
    resolve->draft = NULL;
    resolve->target_n = 0;
}

/* Reports the end of a round to waiting sessions, or to all workers. */
static void note_answered(struct resolve *resolve)
{
    struct upstreams *upstreams = resolve->upstreams;
    struct upstream *upstream = resolve->upstream;

    if (upstream->is_of_session) {
        assert(resolve->has_answered || upstream->unanswered > 0);
        upstream->unresolved = resolve->why;
        upstream->unanswered -= !resolve->has_answered;
        resolve->has_answered = true;
        queue_wake(upstream);
        return;
    }
    addresses_note(upstreams->writer, resolve->entry, upstreams->loop->clock.mono_ms,
        resolve->why != NULL ? resolve->why_name : NULL, resolve->why);
    if (addresses_changes(upstreams->addresses) != upstreams->published_changes)
        upstreams->published(upstreams);
    upstreams->published_changes = addresses_changes(upstreams->addresses);
}

static void end_round(struct resolve *resolve)
{
    size_t before = resolve->found != NULL ? resolve->found->n : 0;

    CHECK_KIND(resolve, RESOLVE_KIND);
    assert(resolve->waits == 0 && resolve->service == NULL);
    if (resolve->draft != NULL) {
        if (resolve->has_failed && resolve->found != NULL)
            resolve_set_join(resolve->draft, resolve->found);
        resolve_set_sort(resolve->draft, false);
        if (take_draft(resolve) == -1)
            note_no_memory(resolve);
    }
    if (resolve->has_failed || resolve->found == NULL || resolve->found->n == 0)
        resolve->failures++;
    else
        resolve->failures = 0;
    if (resolve->why != NULL)
        log_round_failure(resolve);
    else
        log_found(resolve, before);
    free_round(resolve);
    schedule_round(resolve);
    note_answered(resolve);
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
    note_failure(resolve, name, names->why);
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
    for (size_t i = 0, n = take_outcome(resolve, target->name, names) ? names->n : 0; i < n; i++) {
        struct resolve_found found = {
            .priority = target->priority,
            .weight = resolve->server->service != NULL ? target->weight : 0,
        };

        if (address_from(&found.address, names->records[i].address))
            resolve_set_add(resolve->draft, &found);
    }
    if (resolve->waits == 0)
        end_round(resolve);
}

/* Says in words why a question could not be asked. */
static const char *why_not_asked(int error)
{
    switch (error) {
    case EINVAL:
        return "the text is no name of a host";
    case ENOMEM:
        return "there is no memory";
    case EAGAIN:
        return "too many names are being resolved";
    default:
        return "there is no resolver";
    }
}

/* Asks for records; NULL with the failure noted. */
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
    struct fb_resolution *resolution = NULL;

    errno = ENOSYS;
    if (upstreams->names != NULL)
        resolution =
            names_resolve(upstreams->names, setting != NULL ? setting : upstreams->system, &query);
    if (resolution == NULL) {
        resolve->has_failed |= errno != EINVAL || type == FB_NAME_SRV;
        note_failure(resolve, name, why_not_asked(errno));
    }
    return resolution;
}

/* Makes room for the round's targets, and for the draft; -1 without memory. */
static int make_round(struct resolve *resolve, size_t n)
{
    const struct memory *memory = resolve_memory(resolve);

    assert(resolve->targets == NULL && resolve->draft == NULL && n > 0);
    resolve->targets = memory_alloc(memory, n * sizeof(*resolve->targets));
    resolve->draft = resolve_set_create(memory, NULL);
    if (resolve->targets == NULL || resolve->draft == NULL) {
        note_no_memory(resolve);
        free_round(resolve);
        return -1;
    }
    return 0;
}

static void ask_targets(struct resolve *resolve)
{
    for (unsigned i = 0; i < resolve->target_n; i++) {
        struct target *target = &resolve->targets[i];

        target->resolution = ask_for(
            resolve, target->name, FB_NAME_ADDRESSES, target->port, target_resolved, target);
        resolve->waits += target->resolution != NULL;
    }
}

/* Takes a record as a target; a record without a port, or of an absent service, is left out. */
static void add_srv_target(struct resolve *resolve, const fb_name_record *record)
{
    struct target *target = &resolve->targets[resolve->target_n];

    if (strcmp(record->name, ".") == 0)
        return;
    if (record->port == 0) {
        note_failure(resolve, record->name, "its port is 0");
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
            note_failure(resolve, names->name, "the service does not exist");
        ask_targets(resolve);
    }
    if (resolve->waits == 0)
        end_round(resolve);
}

static void ask_host(struct resolve *resolve)
{
    if (make_round(resolve, 1) == -1)
        return;
    resolve->targets[resolve->target_n++] =
        (struct target) { .resolve = resolve, .port = resolve->server->port };
    snprintf(resolve->targets->name, MESSAGE_NAME, "%s", resolve->server->host);
    ask_targets(resolve);
}

static void begin_round(struct resolve *resolve)
{
    char text[MESSAGE_NAME];
    const char *name;

    assert(resolve->service == NULL && resolve->waits == 0 && resolve->draft == NULL);
    resolve->why = NULL;
    resolve->has_failed = false;
    resolve->ttl = MESSAGE_TTL_MOST;
    if (resolve->server->service != NULL) {
        name = addresses_question(resolve->server, text);
        if (name[0] == '\0')
            note_failure(resolve, text, why_not_asked(EINVAL));
        resolve->service = ask_for(resolve, name, FB_NAME_SRV, 0, service_resolved, resolve);
    } else {
        ask_host(resolve);
    }
    if (resolve->service == NULL && resolve->waits == 0)
        end_round(resolve);
}

/* Claims the server's entry, and begins with the entry's addresses; or tries again in a while. */
static void claim_entry(struct resolve *resolve)
{
    struct upstreams *upstreams = resolve->upstreams;
    uint32_t version = UINT32_MAX;
    struct resolve_set *set;
    bool answered;

    assert(resolve->entry == ADDRESSES_NONE && resolve->found == NULL && upstreams->writer != NULL);
    assert(!resolve->upstream->is_of_session);
    resolve->entry = addresses_claim(upstreams->writer, &resolve->key);
    if (resolve->entry == ADDRESSES_NONE) {
        timer_set(upstreams->loop, &resolve->timer, CLAIM_MS);
        return;
    }
    set = resolve_set_create(upstreams->memory, NULL); /* without memory there are no addresses */
    if (set != NULL && addresses_read(upstreams->addresses, resolve->entry, &resolve->key, &version,
                           &answered, set))
        resolve->found = resolve_set_create(upstreams->memory, set);
    memory_release(upstreams->memory, set);
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

int resolve_open(struct upstreams *upstreams, struct upstream *upstream)
{
    const struct upstream_server *server;
    struct resolve **next = &upstream->resolves, *resolve;

    assert(upstream->resolves == NULL);
    STAILQ_FOREACH (server, &upstream->servers, link) {
        if (server->target != NULL)
            continue;
        *next = resolve = memory_alloc(upstreams->memory, sizeof(*resolve));
        if (resolve == NULL) {
            resolve_close(upstream);
            return -1;
        }
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
        next = &resolve->next;
    }
    for (resolve = upstream->resolves; resolve != NULL; resolve = resolve->next)
        if (upstream->is_of_session)
            begin_round(resolve);
        else
            claim_entry(resolve);
    return 0;
}

void resolve_close(struct upstream *upstream)
{
    struct resolve *resolve;

    while ((resolve = upstream->resolves) != NULL) {
        const struct memory *memory = resolve_memory(resolve);

        CHECK_KIND(resolve, RESOLVE_KIND);
        upstream->resolves = resolve->next;
        timer_del(resolve->upstreams->loop, &resolve->timer);
        if (resolve->service != NULL)
            names_cancel(resolve->service);
        for (unsigned i = 0; i < resolve->target_n; i++)
            if (resolve->targets[i].resolution != NULL)
                names_cancel(resolve->targets[i].resolution);
        resolve->service = NULL;
        resolve->waits = 0;
        free_round(resolve);
        memory_release(memory, resolve->found);
        resolve->kind = 0;
        memory_release(memory, resolve);
    }
    if (upstream->is_of_session)
        upstream->unanswered = 0;
}
