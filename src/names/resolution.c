/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolutions: begun, timed, delivered and cancelled. Name and type decide the questions, in one or
 * two parts; an address is answered by itself, or turned into its reverse name. A resolution is in
 * one of two lists, and is freed after its delivery. */
#include "names/names.h"

#include "base/check.h"
#include "base/compiler.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- The end ---- */

static struct names *names_of_resolution(const struct fb_resolution *resolution)
{
    return container_of(resolution->resolver->host, struct names, host);
}

static void make_resolution_due(struct fb_resolution *resolution)
{
    struct names *names = names_of_resolution(resolution);

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(!resolution->is_due);
    timer_del(names->host.loop, &resolution->timer);
    TAILQ_REMOVE(&names->all, resolution, link);
    TAILQ_INSERT_TAIL(&names->due, resolution, link);
    resolution->is_due = true;
    loop_post(names->host.loop, &names->host.source->events[EVENT_READ], QUEUE_NEXT);
}

void resolution_part_ended(struct resolver_part *part)
{
    struct fb_resolution *resolution = part->resolution;

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(part->outcome != 0 && resolution->waits > 0);
    if (--resolution->waits == 0)
        make_resolution_due(resolution);
}

/* Gives up the parts without an outcome, with the given outcome. */
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

/* Gives up the parts after the time-out. */
static void resolution_expired(struct loop *loop, struct timer *timer)
{
    struct fb_resolution *resolution = container_of(timer, struct fb_resolution, timer);

    (void)loop;
    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(!resolution->is_due);
    for (unsigned i = 0; i < resolution->part_n; i++)
        resolver_log_late(resolution->resolver, &resolution->parts[i], resolution->timeout);
    end_parts(resolution, FB_NAME_TIMED_OUT, "no server has answered in time");
    make_resolution_due(resolution);
}

void names_cancel(struct fb_resolution *resolution)
{
    struct names *names = names_of_resolution(resolution);

    CHECK_KIND(resolution, RESOLUTION_KIND);
    assert(names->n > 0);
    timer_del(names->host.loop, &resolution->timer);
    TAILQ_REMOVE(resolution->is_due ? &names->due : &names->all, resolution, link);
    if (resolution->has_owner)
        LIST_REMOVE(resolution, owned);
    for (unsigned i = 0; i < resolution->part_n; i++)
        resolver_forget(resolution->resolver, &resolution->parts[i]);
    names->n--;
    resolution->kind = 0;
    memory_release(names->host.memory, resolution);
}

void resolution_give_up(struct fb_resolution *resolution)
{
    end_parts(resolution, FB_NAME_ENDED, "the worker ends");
    make_resolution_due(resolution);
}

void names_cancel_owned(struct names_owned *owned)
{
    struct fb_resolution *resolution;

    while ((resolution = LIST_FIRST(owned)) != NULL) {
        assert(resolution->has_owner);
        names_cancel(resolution);
    }
}

/* ---- Delivery ---- */

/* Memory lent for a delivery; the records' addresses stand in the same order. */
struct delivery {
    fb_names names;
    fb_name_record records[2 * MESSAGE_ITEMS];
    union {
        struct sockaddr any;
        struct sockaddr_in6 in6;
    } addresses[2 * MESSAGE_ITEMS];
};

static void add_address(struct delivery *delivery, const struct names_answer *answer,
    const struct message_item *item, in_port_t port)
{
    unsigned i = delivery->names.n;
    struct address address;

    address_make(&address, answer->type == MESSAGE_A ? AF_INET : AF_INET6, item->address, port);
    memcpy(&delivery->addresses[i], &address.any, address.length);
    delivery->records[i].address = &delivery->addresses[i].any;
    delivery->records[i].address_n = address.length;
}

static void add_answer(struct delivery *delivery, const struct names_answer *answer,
    const struct fb_resolution *resolution, uint64_t now)
{
    uint32_t left = names_answer_left(answer, answer->ttl, now);

    if (delivery->names.n == 0 || left < delivery->names.ttl)
        delivery->names.ttl = left;
    delivery->names.canonical = answer->canonical;
    for (unsigned i = 0; i < answer->n; i++) {
        const struct message_item *item = &answer->items[i];
        fb_name_record *record = &delivery->records[delivery->names.n];

        *record = (fb_name_record) {
            .type = answer->type,
            .ttl = names_answer_left(answer, item->ttl, now),
            .port = item->port,
            .priority = item->priority,
            .weight = item->weight,
        };
        if (answer->type == MESSAGE_A || answer->type == MESSAGE_AAAA)
            add_address(delivery, answer, item, resolution->port);
        else
            record->name = answer->text + item->name;
        delivery->names.n++;
    }
}

/* Decides the outcome: a found answer before a temporary failure, and before an absence. */
static const struct resolver_part *deciding_part(const struct fb_resolution *resolution)
{
    const struct resolver_part *a = &resolution->parts[0], *b = &resolution->parts[1];

    if (resolution->part_n == 1 || a->outcome == FB_NAME_FOUND)
        return a;
    if (b->outcome == FB_NAME_FOUND || a->outcome == FB_NAME_NO_DATA)
        return b;
    return a->outcome == FB_NAME_ABSENT && b->outcome > FB_NAME_NO_DATA ? b : a;
}

void resolution_deliver(struct names *names, struct fb_resolution *resolution)
{
    const struct resolver_part *part = deciding_part(resolution);
    uint64_t now = names->host.loop->clock.mono_ms;
    struct delivery delivery;

    assert(resolution->is_due && resolution->waits == 0);
    delivery.names = (fb_names) {
        .outcome = part->outcome,
        .type = resolution->type,
        .name = resolution->name,
        .why = part->why,
        .records = delivery.records,
    };
    for (unsigned i = 0; i < resolution->part_n; i++)
        if (resolution->parts[i].answer != NULL)
            add_answer(&delivery, resolution->parts[i].answer, resolution, now);
    if (resolution->has_owner)
        LIST_REMOVE(resolution, owned);
    resolution->has_owner = false;
    resolution->kind = 0; /* the handle is good for nothing any more */
    names->deliver(
        names, resolution->handle, resolution->resolved, &delivery.names, resolution->arg);
    resolution->kind = RESOLUTION_KIND;
    names_cancel(resolution);
}

/* ---- The beginning ---- */

static const void *resolution_bytes(const struct address *address)
{
    return address->any.sa_family == AF_INET ? (const void *)&address->in.sin_addr
                                             : (const void *)&address->in6.sin6_addr;
}

/* Ends a resolution of an address in place of a name. -1 without memory. */
static int take_numeric(
    struct names *names, struct fb_resolution *resolution, const struct address *address)
{
    struct resolver_part *part = &resolution->parts[0];
    unsigned type = address->any.sa_family == AF_INET ? FB_NAME_A : FB_NAME_AAAA;
    struct message message;

    resolution->part_n = resolution->waits = 1;
    if (resolution->type != FB_NAME_ADDRESSES && resolution->type != type) {
        part->outcome = FB_NAME_NO_DATA;
        part->why = message_why(MESSAGE_NO_DATA);
    } else {
        message_begin(&message, (uint16_t)type, MESSAGE_TTL_MOST, resolution->name);
        message_add_address(&message, resolution_bytes(address));
        part->outcome = FB_NAME_FOUND;
        part->answer =
            names_answer_create(names->host.memory, &message, names->host.loop->clock.mono_ms, 0);
        if (part->answer == NULL)
            return -1;
    }
    resolution_part_ended(part);
    return 0;
}

static bool parse_numeric(const char *text, struct address *out)
{
    uint8_t host[16];
    bool is_v4 = inet_pton(AF_INET, text, host) == 1;

    if (!is_v4 && inet_pton(AF_INET6, text, host) != 1)
        return false;
    address_make(out, is_v4 ? AF_INET : AF_INET6, host, 0);
    return true;
}

/* Writes the name under which the names of an address are found. */
static void reverse_name(const struct address *address, char name[MESSAGE_NAME])
{
    const uint8_t *p = resolution_bytes(address);
    size_t n = 0;

    if (address->any.sa_family == AF_INET) {
        snprintf(name, MESSAGE_NAME, "%u.%u.%u.%u.in-addr.arpa", p[3], p[2], p[1], p[0]);
        return;
    }
    for (int i = 15; i >= 0; i--)
        n += (size_t)snprintf(name + n, MESSAGE_NAME - n, "%x.%x.", p[i] & 15u, p[i] >> 4);
    snprintf(name + n, MESSAGE_NAME - n, "ip6.arpa");
}

static int want_part(struct fb_resolution *resolution, const char *name, uint16_t type,
    const struct address *address)
{
    return resolver_want(
        resolution->resolver, &resolution->parts[resolution->part_n++], name, type, address);
}

/* Asks the questions of the type; -1 without memory. */
static int want_all(struct fb_resolution *resolution)
{
    const struct names_setting *setting = resolution->resolver->setting;
    bool both = setting->ipv4 && setting->ipv6;

    if (resolution->type != FB_NAME_ADDRESSES) {
        resolution->waits = 1;
        return want_part(resolution, resolution->name, (uint16_t)resolution->type, NULL);
    }
    resolution->waits = both ? 2 : 1;
    if (setting->ipv4 && want_part(resolution, resolution->name, MESSAGE_A, NULL) == -1)
        return -1;
    return setting->ipv6 ? want_part(resolution, resolution->name, MESSAGE_AAAA, NULL) : 0;
}

/* Begins to ask; -1 without memory. */
static int begin_resolution(
    struct names *names, struct fb_resolution *resolution, const struct address *given)
{
    char reversed[MESSAGE_NAME];
    struct address address;
    bool numeric = given == NULL && parse_numeric(resolution->name, &address);

    if (resolution->type == FB_NAME_PTR && (given != NULL || numeric)) {
        if (given == NULL)
            given = &address;
        reverse_name(given, reversed);
        resolution->waits = 1;
        return want_part(resolution, reversed, MESSAGE_PTR, given);
    }
    if (numeric && resolution->type != FB_NAME_SRV)
        return take_numeric(names, resolution, &address);
    return want_all(resolution);
}

/* Returns the name of a query, an address in the text; NULL: the query makes no sense. */
static const char *name_of_query(const struct names_query *query, char text[ADDRESS_TEXT])
{
    uint32_t type = query->type;

    if (type == FB_NAME_PTR && query->address != NULL)
        return address_format(query->address, false, text);
    if (type != FB_NAME_ADDRESSES && type != FB_NAME_A && type != FB_NAME_AAAA &&
        type != FB_NAME_SRV && type != FB_NAME_PTR)
        return NULL;
    if (query->address != NULL || query->name == NULL || !message_is_name(query->name))
        return NULL;
    return query->name;
}

static struct fb_resolution *create_resolution(struct names *names, struct resolver *resolver,
    const struct names_query *query, const char *name)
{
    size_t n = strlen(name) + 1;
    struct fb_resolution *resolution = memory_alloc(names->host.memory, sizeof(*resolution) + n);

    if (resolution == NULL)
        return NULL;
    *resolution = (struct fb_resolution) {
        .kind = RESOLUTION_KIND,
        .resolver = resolver,
        .timer.expired = resolution_expired,
        .timeout = query->timeout,
        .type = query->type,
        .port = query->port,
        .handle = query->handle,
        .resolved = query->resolved,
        .arg = query->arg,
    };
    for (unsigned i = 0; i < countof(resolution->parts); i++)
        resolution->parts[i] =
            (struct resolver_part) { .resolution = resolution, .quiet = query->quiet };
    memcpy(resolution->name, name, n);
    TAILQ_INSERT_TAIL(&names->all, resolution, link);
    names->n++;
    return resolution;
}

static struct resolver *find_resolver(struct names *names, const struct names_setting *setting)
{
    struct resolver *resolver = names->first;

    while (resolver != NULL && resolver->setting != setting)
        resolver = resolver->next;
    return resolver;
}

struct fb_resolution *names_resolve(
    struct names *names, const struct names_setting *setting, const struct names_query *query)
{
    struct resolver *resolver = find_resolver(names, setting);
    struct fb_resolution *resolution = NULL;
    char text[ADDRESS_TEXT];
    const char *name = name_of_query(query, text);
    int error = name == NULL                     ? EINVAL
                : names->ending                  ? ECANCELED
                : resolver == NULL               ? EPERM
                : names->n >= FB_RESOLUTIONS_MAX ? EAGAIN
                                                 : 0;

    CHECK_KIND(names, NAMES_KIND);
    if (error == 0 && (resolution = create_resolution(names, resolver, query, name)) == NULL)
        error = ENOMEM;
    else if (error == 0 && begin_resolution(names, resolution, query->address) == -1) {
        names_cancel(resolution);
        error = ENOMEM;
    }
    if (error != 0) {
        errno = error;
        return NULL;
    }
    if (!resolution->is_due && query->timeout > 0)
        timer_set(names->host.loop, &resolution->timer, query->timeout);
    if (query->owned != NULL) {
        resolution->has_owner = true;
        LIST_INSERT_HEAD(query->owned, resolution, owned);
    }
    return resolution;
}
