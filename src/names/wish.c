/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning of a resolution: what its name and type say is to be asked, one part or two. An
 * address in the place of a name is answered by itself, or turned into the name of its names. */
#include "names/names.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* An answer that nobody is asked for: the address itself. -1 without memory. */
static int answer_itself(
    struct names *names, struct resolver_part *part, const struct address *address)
{
    static const uint32_t forever = MESSAGE_TTL_MOST;
    struct message message;
    bool is_v4 = address->any.sa_family == AF_INET;

    message.type = is_v4 ? MESSAGE_A : MESSAGE_AAAA;
    message.ttl = forever;
    message.n = 1;
    message.text_n = 0;
    snprintf(message.canonical, sizeof(message.canonical), "%s", part->resolution->name);
    message.items[0] = (struct message_item) { .ttl = forever };
    memcpy(message.items[0].address,
        is_v4 ? (const void *)&address->in.sin_addr : (const void *)&address->in6.sin6_addr,
        is_v4 ? sizeof(address->in.sin_addr) : sizeof(address->in6.sin6_addr));
    part->answer = names_answer_create(names->memory, &message, names->loop->clock.mono_ms, 0);
    return part->answer != NULL ? 0 : -1;
}

/* Ends a resolution of addresses whose name is one. -1 without memory. */
static int take_numeric(
    struct names *names, struct fb_resolution *resolution, const struct address *address)
{
    struct resolver_part *part = &resolution->parts[0];
    unsigned type = address->any.sa_family == AF_INET ? FB_NAME_A : FB_NAME_AAAA;

    resolution->part_n = resolution->waits = 1;
    if (resolution->type != FB_NAME_ADDRESSES && resolution->type != type) {
        part->outcome = FB_NAME_NO_DATA;
        part->why = message_why(MESSAGE_NO_DATA);
    } else if (answer_itself(names, part, address) == -1) {
        return -1;
    } else {
        part->outcome = FB_NAME_FOUND;
    }
    names_part_ended(part);
    return 0;
}

static bool parse_numeric(const char *text, struct address *out)
{
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &out->in.sin_addr) == 1) {
        out->in.sin_family = AF_INET;
        out->length = sizeof(out->in);
    } else if (inet_pton(AF_INET6, text, &out->in6.sin6_addr) == 1) {
        out->in6.sin6_family = AF_INET6;
        out->length = sizeof(out->in6);
    }
    return out->length > 0;
}

/* Writes the name under which the names of an address are found. */
static void reverse_name(const struct address *address, char name[MESSAGE_NAME])
{
    const uint8_t *p = address->any.sa_family == AF_INET ? (const void *)&address->in.sin_addr
                                                         : (const void *)&address->in6.sin6_addr;
    size_t n = 0;

    if (address->any.sa_family == AF_INET) {
        snprintf(name, MESSAGE_NAME, "%u.%u.%u.%u.in-addr.arpa", p[3], p[2], p[1], p[0]);
        return;
    }
    for (int i = 15; i >= 0; i--)
        n += (size_t)snprintf(name + n, MESSAGE_NAME - n, "%x.%x.", p[i] & 15u, p[i] >> 4);
    snprintf(name + n, MESSAGE_NAME - n, "ip6.arpa");
}

static int want(struct fb_resolution *resolution, const char *name, uint16_t type,
    const struct address *address)
{
    struct resolver_part *part = &resolution->parts[resolution->part_n];

    part->resolution = resolution;
    resolution->part_n++;
    return resolver_want(resolution->resolver, part, name, type, address);
}

/* Asks for what the type says; -1 without memory. */
static int want_all(struct fb_resolution *resolution)
{
    const struct names_setting *setting = resolution->resolver->setting;
    bool both = setting->ipv4 && setting->ipv6;

    if (resolution->type != FB_NAME_ADDRESSES) {
        resolution->waits = 1;
        return want(resolution, resolution->name, (uint16_t)resolution->type, NULL);
    }
    resolution->waits = both ? 2 : 1;
    if (setting->ipv4 && want(resolution, resolution->name, MESSAGE_A, NULL) == -1)
        return -1;
    return setting->ipv6 ? want(resolution, resolution->name, MESSAGE_AAAA, NULL) : 0;
}

/* Begins to ask; -1 without memory. */
static int begin(struct names *names, struct fb_resolution *resolution, const struct address *given)
{
    char reversed[MESSAGE_NAME];
    struct address address;
    bool numeric = given == NULL && parse_numeric(resolution->name, &address);

    if (resolution->type == FB_NAME_PTR && (given != NULL || numeric)) {
        if (given == NULL)
            given = &address;
        reverse_name(given, reversed);
        resolution->waits = 1;
        return want(resolution, reversed, MESSAGE_PTR, given);
    }
    if (numeric && resolution->type != FB_NAME_SRV)
        return take_numeric(names, resolution, &address);
    return want_all(resolution);
}

/* Returns an errno where the wish makes no sense; `text` has room for that of the address. */
static int check_wish(const struct names_wish *wish, const char **name, char text[ADDRESS_TEXT])
{
    switch (wish->type) {
    case FB_NAME_ADDRESSES:
    case FB_NAME_A:
    case FB_NAME_AAAA:
    case FB_NAME_SRV:
        *name = wish->name;
        if (wish->address != NULL)
            return EINVAL;
        break;
    case FB_NAME_PTR:
        *name = wish->name;
        if (wish->address != NULL)
            *name = address_format(wish->address, false, text);
        break;
    default:
        return EINVAL;
    }
    return *name != NULL && (wish->address != NULL || message_is_name(*name)) ? 0 : EINVAL;
}

static struct fb_resolution *create_resolution(
    struct names *names, struct resolver *resolver, const struct names_wish *wish, const char *name)
{
    size_t n = strlen(name) + 1;
    struct fb_resolution *resolution = memory_alloc(names->memory, sizeof(*resolution) + n);

    if (resolution == NULL)
        return NULL;
    *resolution = (struct fb_resolution) {
        .kind = RESOLUTION_KIND,
        .resolver = resolver,
        .timer.expired = names_expired,
        .timeout = wish->timeout,
        .quiet = wish->quiet,
        .type = wish->type,
        .port = wish->port,
        .handle = wish->handle,
        .resolved = wish->resolved,
        .arg = wish->arg,
    };
    resolution->parts[0].resolution = resolution;
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
    struct names *names, const struct names_setting *setting, const struct names_wish *wish)
{
    struct resolver *resolver = find_resolver(names, setting);
    struct fb_resolution *resolution = NULL;
    char text[ADDRESS_TEXT];
    const char *name;
    int error = check_wish(wish, &name, text);

    CHECK_KIND(names, NAMES_KIND);
    if (error == 0 && names->ending)
        error = ECANCELED;
    if (error == 0 && resolver == NULL)
        error = EPERM;
    if (error == 0 && names->n >= FB_RESOLUTIONS_MAX)
        error = EAGAIN;
    if (error == 0) {
        resolution = create_resolution(names, resolver, wish, name);
        error = resolution == NULL ? ENOMEM : 0;
    }
    if (error == 0 && begin(names, resolution, wish->address) == -1) {
        names_cancel(resolution);
        error = ENOMEM;
    }
    if (error != 0) {
        errno = error;
        return NULL;
    }
    if (!resolution->is_due && wish->timeout > 0)
        timer_set(names->loop, &resolution->timer, wish->timeout);
    if (wish->owned != NULL) {
        resolution->has_owner = true;
        LIST_INSERT_HEAD(wish->owned, resolution, owned);
    }
    return resolution;
}
