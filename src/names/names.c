/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolutions: timed, told and cancelled; and the resolvers of a worker. A source of the loop's
 * own, which has no descriptor, stands for the list of those that are due, and for questions that
 * have to be asked. A resolution is in one of two lists, and is freed when it has been told. */
#include "names/names.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

/* Resolutions that are told before other events have their turn. */
#define TOLD_A_TURN 256

/* ---- The end of a resolution ---- */

static struct names *names_of(const struct fb_resolution *resolution)
{
    return resolution->resolver->names;
}

static void post(struct names *names)
{
    loop_post(names->loop, &names->source->events[EVENT_READ], QUEUE_NEXT);
}

void names_ask_soon(struct names *names)
{
    post(names);
}

static void make_due(struct fb_resolution *resolution)
{
    struct names *names = names_of(resolution);

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(!resolution->is_due);
    timer_del(names->loop, &resolution->timer);
    TAILQ_REMOVE(&names->all, resolution, link);
    TAILQ_INSERT_TAIL(&names->due, resolution, link);
    resolution->is_due = true;
    post(names);
}

void names_part_ended(struct resolver_part *part)
{
    struct fb_resolution *resolution = part->resolution;

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(part->outcome != 0 && resolution->waits > 0);
    if (--resolution->waits == 0)
        make_due(resolution);
}

/* Gives up what has not ended, for this outcome. */
static void end_parts(struct fb_resolution *resolution, fb_name_outcome outcome, const char *why)
{
    for (unsigned i = 0; i < resolution->part_n; i++) {
        struct resolver_part *part = &resolution->parts[i];

        if (part->outcome != 0)
            continue;
        resolver_forget(resolution->resolver, part);
        part->outcome = outcome;
        part->why = why;
        assert(resolution->waits > 0);
        resolution->waits--;
    }
    assert(resolution->waits == 0);
}

void names_expired(struct loop *loop, struct timer *timer)
{
    struct fb_resolution *resolution = container_of(timer, struct fb_resolution, timer);

    (void)loop;
    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(!resolution->is_due);
    for (unsigned i = 0; i < resolution->part_n; i++)
        resolver_log_late(resolution->resolver, &resolution->parts[i], resolution->timeout);
    end_parts(resolution, FB_NAME_TIMED_OUT, "no server has answered in time");
    make_due(resolution);
}

static void free_resolution(struct fb_resolution *resolution)
{
    struct names *names = names_of(resolution);

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(names->n > 0);
    timer_del(names->loop, &resolution->timer);
    TAILQ_REMOVE(resolution->is_due ? &names->due : &names->all, resolution, link);
    if (resolution->has_owner)
        LIST_REMOVE(resolution, owned);
    for (unsigned i = 0; i < resolution->part_n; i++)
        resolver_forget(resolution->resolver, &resolution->parts[i]);
    names->n--;
    resolution->kind = 0;
    memory_release(names->memory, resolution);
}

void names_cancel(struct fb_resolution *resolution)
{
    free_resolution(resolution);
}

void names_cancel_owned(struct names_owned *owned)
{
    struct fb_resolution *resolution;

    while ((resolution = LIST_FIRST(owned)) != NULL) {
        assert(resolution->has_owner);
        free_resolution(resolution);
    }
}

/* ---- Telling ---- */

/* Memory that is lent while a protocol is told; the records' addresses stand in the same order. */
struct told {
    fb_names names;
    fb_name_record records[2 * MESSAGE_ITEMS];
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } addresses[2 * MESSAGE_ITEMS];
};

static void tell_address(struct told *told, const struct names_answer *answer,
    const struct message_item *item, in_port_t port)
{
    fb_name_record *record = &told->records[told->names.n];
    bool is_v4 = answer->type == MESSAGE_A;

    if (is_v4) {
        struct sockaddr_in *in = &told->addresses[told->names.n].in;

        *in = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(port) };
        memcpy(&in->sin_addr, item->address, sizeof(in->sin_addr));
    } else {
        struct sockaddr_in6 *in6 = &told->addresses[told->names.n].in6;

        *in6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        memcpy(&in6->sin6_addr, item->address, sizeof(in6->sin6_addr));
    }
    record->address = &told->addresses[told->names.n].any;
    record->address_n = is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void tell_answer(struct told *told, const struct names_answer *answer,
    const struct fb_resolution *resolution, uint64_t now)
{
    uint32_t left = names_answer_left(answer, answer->ttl, now);

    if (told->names.n == 0 || left < told->names.ttl)
        told->names.ttl = left;
    told->names.canonical = answer->canonical;
    for (unsigned i = 0; i < answer->n; i++) {
        const struct message_item *item = &answer->items[i];
        fb_name_record *record = &told->records[told->names.n];

        *record = (fb_name_record) {
            .type = answer->type,
            .ttl = names_answer_left(answer, item->ttl, now),
            .port = item->port,
            .priority = item->priority,
            .weight = item->weight,
        };
        if (answer->type == MESSAGE_A || answer->type == MESSAGE_AAAA)
            tell_address(told, answer, item, resolution->port);
        else
            record->name = answer->text + item->name;
        told->names.n++;
    }
}

/* The part whose outcome is that of all: what was found, else what may be found later, else that
 * there is nothing. */
static const struct resolver_part *deciding_part(const struct fb_resolution *resolution)
{
    const struct resolver_part *a = &resolution->parts[0], *b = &resolution->parts[1];

    if (resolution->part_n == 1 || a->outcome == FB_NAME_FOUND)
        return a;
    if (b->outcome == FB_NAME_FOUND || a->outcome == FB_NAME_NO_DATA)
        return b;
    return a->outcome == FB_NAME_ABSENT && b->outcome > FB_NAME_NO_DATA ? b : a;
}

static void tell(struct names *names, struct fb_resolution *resolution)
{
    const struct resolver_part *part = deciding_part(resolution);
    uint64_t now = names->loop->clock.mono_ms;
    struct told told;

    assert(resolution->is_due && resolution->waits == 0);
    told.names = (fb_names) {
        .outcome = part->outcome,
        .type = resolution->type,
        .name = resolution->name,
        .why = part->why,
        .records = told.records,
    };
    for (unsigned i = 0; i < resolution->part_n; i++)
        if (resolution->parts[i].answer != NULL)
            tell_answer(&told, resolution->parts[i].answer, resolution, now);
    if (resolution->has_owner)
        LIST_REMOVE(resolution, owned);
    resolution->has_owner = false;
    resolution->kind = 0; /* the handle is good for nothing any more */
    names->tell(names, resolution->handle, resolution->resolved, &told.names, resolution->arg);
    resolution->kind = RESOLUTION_KIND;
    free_resolution(resolution);
}

static void run_due(struct loop *loop, struct source *source)
{
    struct names *names = container_of((struct source_ops *)source->ops, struct names, ops);

    (void)loop;
    CHECK_KIND(names, NAMES_KIND);
    for (struct resolver *resolver = names->first; resolver != NULL; resolver = resolver->next)
        resolver_ask(resolver);
    for (unsigned n = 0; n < TOLD_A_TURN && !TAILQ_EMPTY(&names->due); n++)
        tell(names, TAILQ_FIRST(&names->due));
    names->told(names);
    if (!TAILQ_EMPTY(&names->due))
        post(names);
}

/* ---- All resolvers ---- */

/* Sockets of each resolver: an equal part, so that none can keep another waiting. */
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
        *next = resolver_create(names, settings, sockets);
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
    *names = (struct names) { .kind = NAMES_KIND, .loop = loop, .memory = memory };
    names->ops = (struct source_ops) { .run = { [EVENT_READ] = run_due } };
    TAILQ_INIT(&names->all);
    TAILQ_INIT(&names->due);
    names->source = loop_make_own(loop, QUEUE_NORMAL, &names->ops);
    if (names->source == NULL || create_resolvers(names, settings, users) == -1)
        names_destroy(&names);
    return names;
}

void names_end(struct names *names)
{
    struct fb_resolution *resolution, *next;

    CHECK_KIND(names, NAMES_KIND);
    names->ending = true;
    TAILQ_FOREACH_SAFE (resolution, &names->all, link, next) {
        if (resolution->has_owner)
            continue;
        end_parts(resolution, FB_NAME_ENDED, "the worker ends");
        make_due(resolution);
    }
    while ((resolution = TAILQ_FIRST(&names->due)) != NULL)
        if (resolution->has_owner)
            names_cancel(resolution);
        else
            tell(names, resolution);
    names->told(names);
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
        free_resolution(resolution);
    while ((resolution = TAILQ_FIRST(&names->due)) != NULL)
        free_resolution(resolution);
    assert(names->n == 0);
    while ((resolver = names->first) != NULL) {
        names->first = resolver->next;
        resolver_destroy(&resolver);
    }
    if (names->source != NULL)
        source_close(names->loop, names->source, false);
    names->kind = 0;
    memory_release(names->memory, names);
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
