/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows names. A worker is told of each change, and looks once more in a while where it still
 * waits for a first answer, because the process that asks may be another binary's. */
#include "upstream/refresh.h"

#include "base/compiler.h"
#include "upstream/addresses.h"
#include "upstream/peers.h"
#include "upstream/queue.h"

#include <string.h>

#define FOLLOW_KIND KIND('F', 'l', 'l', 'w')
/* The version of no entry, but in centuries. */
#define NO_VERSION UINT32_MAX
/* Between two looks for a first answer. */
#define LOOK_MS 1000

/* A server's name. */
struct follow {
    unsigned kind;
    const struct upstream_server *server;
    struct follow *next; /* in the order of the group's servers */
    struct known_key key;
    uint32_t entry;   /* KNOWN_NONE: nobody has asked yet */
    uint32_t version; /* the one whose addresses were read */
    bool answered;
    struct resolve_set *found;
};

/* ---- Addresses ---- */

/* Gives the group's server these addresses; -1 without memory. */
static int replace_peers(
    struct upstream *upstream, const struct upstream_server *server, const struct resolve_set *set)
{
    const struct memory *memory = upstream->peers->upstreams->memory;
    struct peer_address *all = memory_alloc(memory, (set->n + 1) * sizeof(*all));
    int result;

    if (all == NULL)
        return -1;
    for (size_t i = 0; i < set->n; i++) {
        const struct resolve_found *found = &set->list[i];

        all[i] = (struct peer_address) { .weight = found->weight, .backup = found->backup };
        all[i].target.address = found->address;
        address_format(&found->address, true, all[i].target.text);
    }
    result = peers_replace(upstream->peers, server, all, (unsigned)set->n);
    memory_release(memory, all);
    return result;
}

int follow_take(struct upstream *upstream, const struct upstream_server *server,
    const struct resolve_set *set, struct resolve_set **found)
{
    const struct memory *memory = upstream->peers->upstreams->memory;
    struct resolve_set *copy;

    assert(server->target == NULL && set->n <= RESOLVE_ADDRESSES);
    if (resolve_set_equal(*found, set))
        return 0;
    copy = resolve_set_copy(memory, set);
    if (copy == NULL)
        return -1;
    if (replace_peers(upstream, server, copy) == -1) {
        memory_release(memory, copy);
        return -1;
    }
    memory_release(memory, *found);
    *found = copy;
    return 0;
}

/* ---- Following ---- */

/* Takes what is known, with the order and the weights that the server has for it. */
static int take_known(struct upstream *upstream, struct follow *follow, struct resolve_set *set)
{
    const struct upstream_server *server = follow->server;

    for (size_t i = 0; i < set->n; i++)
        if (server->weight != 1)
            set->list[i].weight = 0;
    resolve_set_sort(set, server->backup);
    return follow_take(upstream, server, set, &follow->found);
}

/* Looks at one name; -1 without memory. */
static int look(struct upstream *upstream, struct follow *follow, struct resolve_set *set)
{
    const struct zone *zone = upstream->peers->upstreams->known;
    uint32_t version = follow->version, entry = known_find(zone, &follow->key);
    bool answered = follow->answered;

    CHECK_KIND(follow, FOLLOW_KIND);
    assert(zone != NULL && follow->server->target == NULL);
    if (entry == KNOWN_NONE)
        return 0;
    if (entry != follow->entry) /* the first, or another one after it made room for other names */
        version = NO_VERSION;
    if (known_read(zone, entry, &follow->key, &version, &answered, set) &&
        take_known(upstream, follow, set) == -1)
        return -1;
    follow->entry = entry;
    follow->version = version;
    if (answered && !follow->answered) {
        follow->answered = true;
        assert(upstream->unanswered > 0);
        upstream->unanswered--;
    }
    return 0;
}

void follow_heed(struct upstreams *upstreams, struct upstream *upstream)
{
    uint32_t changes = known_changes(upstreams->known);
    struct resolve_set *set;

    assert(upstream->follows != NULL && upstream->peers != NULL);
    if (likely(changes == upstream->heeded))
        return;
    set = resolve_set_create(upstreams->memory);
    if (set == NULL)
        return; /* the next choice tries again */
    upstream->heeded = changes;
    for (struct follow *follow = upstream->follows; follow != NULL; follow = follow->next)
        if (look(upstream, follow, set) == -1)
            upstream->heeded = changes - 1;
    memory_release(upstreams->memory, set);
    queue_wake(upstream);
}

/* Looks again soon, while a first answer is missing. */
static void set_timer(struct upstreams *upstreams)
{
    const struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->follows != NULL && upstream->unanswered > 0) {
            timer_set(upstreams->loop, &upstreams->names_due, LOOK_MS);
            return;
        }
    timer_del(upstreams->loop, &upstreams->names_due);
}

void follow_heed_all(struct upstreams *upstreams)
{
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->follows != NULL)
            follow_heed(upstreams, upstream);
    set_timer(upstreams);
}

void follow_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    follow_heed_all(container_of(timer, struct upstreams, names_due));
}

/* ---- The group ---- */

int follow_open(struct upstreams *upstreams, struct upstream *upstream)
{
    struct follow **next = &upstream->follows;
    const struct upstream_server *server;

    assert(upstream->follows == NULL && upstream->unanswered == 0 && !upstream->is_of_session);
    if (upstreams->known == NULL)
        return 0;
    STAILQ_FOREACH (server, &upstream->servers, link) {
        struct follow *follow;

        if (server->target != NULL)
            continue;
        follow = memory_alloc(upstreams->memory, sizeof(*follow));
        if (follow == NULL) {
            follow_close(upstream);
            return -1;
        }
        *follow = (struct follow) {
            .kind = FOLLOW_KIND,
            .server = server,
            .key = known_key_of(upstream, server),
            .entry = KNOWN_NONE,
        };
        upstream->unanswered++;
        *next = follow;
        next = &follow->next;
    }
    if (upstream->follows == NULL)
        return 0;
    upstream->heeded = known_changes(upstreams->known) - 1;
    follow_heed(upstreams, upstream);
    if (upstream->unanswered > 0 && !timer_is_set(&upstreams->names_due))
        timer_set(upstreams->loop, &upstreams->names_due, LOOK_MS);
    return 0;
}

void follow_close(struct upstream *upstream)
{
    struct follow *follow;

    while ((follow = upstream->follows) != NULL) {
        const struct memory *memory = upstream->peers->upstreams->memory;

        CHECK_KIND(follow, FOLLOW_KIND);
        upstream->follows = follow->next;
        memory_release(memory, follow->found);
        follow->kind = 0;
        memory_release(memory, follow);
    }
    upstream->unanswered = 0;
}
