/* SPDX-License-Identifier: BSD-2-Clause */
/* Refreshes peers by the table of addresses: on a message, and, while a first answer is missing, by
 * a timer, because the asking process may be of a different binary. */
#include "upstream/refresh.h"

#include "base/compiler.h"
#include "upstream/addresses.h"
#include "upstream/peers.h"
#include "upstream/queue.h"

#include <string.h>

#define REFRESH_KIND KIND('F', 'l', 'l', 'w')
/* The version of no entry, but in centuries. */
#define NO_VERSION UINT32_MAX
/* Between two looks for a first answer. */
#define LOOK_MS 1000

/* A server's name. */
struct refresh {
    unsigned kind;
    const struct upstream_server *server;
    struct refresh *next; /* in the order of the group's servers */
    struct addresses_key key;
    uint32_t entry;   /* ADDRESSES_NONE: no process has asked yet */
    uint32_t version; /* version of the addresses read last */
    bool answered;
    struct resolve_set *found;
};

int refresh_replace(struct upstream *upstream, const struct upstream_server *server,
    const struct resolve_set *set, struct resolve_set **found)
{
    const struct memory *memory = upstream->peers->upstreams->memory;
    struct resolve_set *copy;

    assert(server->target == NULL && set->n <= RESOLVE_ADDRESSES);
    if (resolve_set_equal(*found, set))
        return 0;
    copy = resolve_set_create(memory, set);
    if (copy == NULL)
        return -1;
    if (peers_replace(upstream->peers, server, copy->list, copy->n) == -1) {
        memory_release(memory, copy);
        return -1;
    }
    memory_release(memory, *found);
    *found = copy;
    return 0;
}

static int refresh_name(struct upstream *upstream, struct refresh *refresh, struct resolve_set *set)
{
    const struct upstream_server *server = refresh->server;
    const struct zone *zone = upstream->peers->upstreams->addresses;
    uint32_t entry = addresses_find(zone, &refresh->key);
    /* the old entry was perhaps given to a different name */
    uint32_t version = entry == refresh->entry ? refresh->version : NO_VERSION;
    bool answered = refresh->answered;

    CHECK_KIND(refresh, REFRESH_KIND);
    assert(zone != NULL && server->target == NULL);
    if (entry == ADDRESSES_NONE)
        return 0;
    if (addresses_read(zone, entry, &refresh->key, &version, &answered, set)) {
        for (size_t i = 0; i < set->n; i++)
            if (server->weight != 1) /* goes before the record's */
                set->list[i].weight = 0;
        resolve_set_sort(set, server->backup);
        if (refresh_replace(upstream, server, set, &refresh->found) == -1)
            return -1;
    }
    refresh->entry = entry;
    refresh->version = version;
    if (answered && !refresh->answered) {
        refresh->answered = true;
        assert(upstream->unanswered > 0);
        upstream->unanswered--;
    }
    return 0;
}

void refresh_group(struct upstreams *upstreams, struct upstream *upstream)
{
    uint32_t changes = addresses_changes(upstreams->addresses);
    struct resolve_set *set;

    assert(upstream->refreshes != NULL && upstream->peers != NULL);
    if (likely(changes == upstream->refreshed))
        return;
    set = resolve_set_create(upstreams->memory, NULL);
    if (set == NULL)
        return; /* the next choice tries again */
    upstream->refreshed = changes;
    for (struct refresh *refresh = upstream->refreshes; refresh != NULL; refresh = refresh->next)
        if (refresh_name(upstream, refresh, set) == -1)
            upstream->refreshed = changes - 1;
    memory_release(upstreams->memory, set);
    queue_wake(upstream);
}

void refresh_all(struct upstreams *upstreams)
{
    struct upstream *upstream;
    uint32_t unanswered = 0;

    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->refreshes != NULL) {
            refresh_group(upstreams, upstream);
            unanswered += upstream->unanswered;
        }
    if (unanswered > 0)
        timer_set(upstreams->loop, &upstreams->names_due, LOOK_MS);
    else
        timer_del(upstreams->loop, &upstreams->names_due);
}

void refresh_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    refresh_all(container_of(timer, struct upstreams, names_due));
}

int refresh_open(struct upstreams *upstreams, struct upstream *upstream)
{
    struct refresh **next = &upstream->refreshes;
    const struct upstream_server *server;

    assert(upstream->refreshes == NULL && upstream->unanswered == 0 && !upstream->is_of_session);
    if (upstreams->addresses == NULL)
        return 0;
    STAILQ_FOREACH (server, &upstream->servers, link) {
        struct refresh *refresh;

        if (server->target != NULL)
            continue;
        refresh = memory_alloc(upstreams->memory, sizeof(*refresh));
        if (refresh == NULL) {
            refresh_close(upstream);
            return -1;
        }
        *refresh = (struct refresh) {
            .kind = REFRESH_KIND,
            .server = server,
            .key = addresses_key_of(upstream, server),
            .entry = ADDRESSES_NONE,
        };
        upstream->unanswered++;
        *next = refresh;
        next = &refresh->next;
    }
    if (upstream->refreshes == NULL)
        return 0;
    upstream->refreshed = addresses_changes(upstreams->addresses) - 1;
    refresh_group(upstreams, upstream);
    if (upstream->unanswered > 0 && !timer_is_set(&upstreams->names_due))
        timer_set(upstreams->loop, &upstreams->names_due, LOOK_MS);
    return 0;
}

void refresh_close(struct upstream *upstream)
{
    struct refresh *refresh;

    while ((refresh = upstream->refreshes) != NULL) {
        const struct memory *memory = upstream->peers->upstreams->memory;

        CHECK_KIND(refresh, REFRESH_KIND);
        upstream->refreshes = refresh->next;
        memory_release(memory, refresh->found);
        refresh->kind = 0;
        memory_release(memory, refresh);
    }
    upstream->unanswered = 0;
}
