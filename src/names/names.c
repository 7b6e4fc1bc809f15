/* SPDX-License-Identifier: BSD-2-Clause */
/* The resolvers of a worker. A source of the loop without a descriptor stands for due resolutions,
 * and for waiting questions. */
#include "names/names.h"

#include <assert.h>
#include <errno.h>

/* Most resolutions delivered in a turn of the loop. */
#define DELIVERED_A_TURN 256

static void run_due_resolutions(struct loop *loop, struct source *source)
{
    struct names *names = container_of((struct source_ops *)source->ops, struct names, ops);

    CHECK_KIND(names, NAMES_KIND);
    for (struct resolver *resolver = names->first; resolver != NULL; resolver = resolver->next)
        resolver_ask(resolver);
    for (unsigned n = 0; n < DELIVERED_A_TURN && !TAILQ_EMPTY(&names->due); n++)
        resolution_deliver(names, TAILQ_FIRST(&names->due));
    names->delivered(names);
    if (!TAILQ_EMPTY(&names->due))
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

/* Sockets of a resolver: equal shares, so that no resolver starves. */
static unsigned sockets_each(const struct names_setting *settings, unsigned users)
{
    unsigned n = 0;

    for (; settings != NULL; settings = settings->next)
        n += (settings->users & users) != 0;
    return n == 0 ? 0 : n < NAMES_SOCKETS ? NAMES_SOCKETS / n : 1;
}

unsigned names_slots(const struct names_setting *settings, unsigned users)
{
    unsigned n = 0, sockets = sockets_each(settings, users);

    for (; settings != NULL; settings = settings->next)
        n += (settings->users & users) != 0 ? sockets : 0;
    return n > 0 ? n + 1 : 0;
}

static int create_resolvers(
    struct names *names, const struct names_setting *settings, unsigned users)
{
    struct resolver **next = &names->first;
    unsigned sockets = sockets_each(settings, users);

    for (; settings != NULL; settings = settings->next) {
        if ((settings->users & users) == 0)
            continue;
        *next = resolver_create(&names->host, settings, sockets);
        if (*next == NULL)
            return -1;
        next = &(*next)->next;
    }
    return 0;
}

struct names *names_create(struct loop *loop, const struct memory *memory,
    const struct names_setting *settings, unsigned users)
{
    struct names *names = memory_alloc(memory, sizeof(*names));

    if (names == NULL) {
        log_write(loop->log, LEVEL_EMERG, errno, "no memory for resolvers");
        return NULL;
    }
    *names = (struct names) { .kind = NAMES_KIND,
        .host = { loop, memory, NULL, resolution_part_ended } };
    names->ops = (struct source_ops) { .run = { [EVENT_READ] = run_due_resolutions } };
    TAILQ_INIT(&names->all);
    TAILQ_INIT(&names->due);
    names->host.source = loop_make_own(loop, QUEUE_NORMAL, &names->ops);
    if (names->host.source == NULL || create_resolvers(names, settings, users) == -1)
        names_destroy(&names);
    return names;
}

void names_end(struct names *names)
{
    struct fb_resolution *resolution, *next;

    CHECK_KIND(names, NAMES_KIND);
    names->ending = true;
    TAILQ_FOREACH_SAFE (resolution, &names->all, link, next) {
        if (!resolution->has_owner)
            resolution_give_up(resolution);
    }
    while ((resolution = TAILQ_FIRST(&names->due)) != NULL)
        if (resolution->has_owner)
            names_cancel(resolution);
        else
            resolution_deliver(names, resolution);
    names->delivered(names);
}

void names_destroy(struct names **namesp)
{
    struct names *names = *namesp;
    struct fb_resolution *resolution;
    struct resolver *resolver;

    if (names == NULL)
        return;
    *namesp = NULL;
    CHECK_KIND(names, NAMES_KIND);
    while ((resolution = TAILQ_FIRST(&names->all)) != NULL)
        names_cancel(resolution);
    while ((resolution = TAILQ_FIRST(&names->due)) != NULL)
        names_cancel(resolution);
    assert(names->n == 0);
    while ((resolver = names->first) != NULL) {
        names->first = resolver->next;
        resolver_destroy(&resolver);
    }
    if (names->host.source != NULL)
        source_close(names->host.loop, names->host.source, false);
    names->kind = 0;
    memory_release(names->host.memory, names);
}

void names_check(const struct names *names)
{
    const struct fb_resolution *resolution;
    unsigned n = 0;

    CHECK_KIND(names, NAMES_KIND);
    TAILQ_FOREACH (resolution, &names->all, link) {
        assert(resolution->kind == RESOLUTION_KIND && !resolution->is_due && resolution->waits > 0);
        n++;
    }
    TAILQ_FOREACH (resolution, &names->due, link) {
        assert(resolution->kind == RESOLUTION_KIND && resolution->is_due && resolution->waits == 0);
        n++;
    }
    assert(n == names->n);
    for (struct resolver *resolver = names->first; resolver != NULL; resolver = resolver->next)
        resolver_check(resolver);
}
