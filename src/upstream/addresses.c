/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the table of known addresses. A reader takes no lock: it reads the copy that is in force,
 * and reads again if another one has come into force meanwhile. */
#include "upstream/addresses_private.h"

#include "base/compiler.h"
#include "shm/siphash.h"

#include <stdio.h>
#include <string.h>

#define KNOWN_MAGIC 0x66626b6eu
#define KNOWN_VERSION 1
#define READ_TRIES 4

static_assert(sizeof(struct known_address) == 32, "the layout is versioned");

/* ---- The zone ---- */

static size_t table_size(const void *shape)
{
    (void)shape;
    return sizeof(struct known_table);
}

static int init_table(void *memory, const void *shape)
{
    struct known_table *table = memory;

    (void)shape;
    table->magic = KNOWN_MAGIC;
    table->entries = KNOWN_NAMES;
    table->unit = sizeof(struct known_entry);
    return 0;
}

static bool is_table(const void *memory, const void *shape)
{
    const struct known_table *table = memory;

    (void)shape;
    return table->magic == KNOWN_MAGIC && table->entries == KNOWN_NAMES &&
           table->unit == sizeof(struct known_entry);
}

/* No worker writes there. */
static struct segment_part writable_part(const void *shape, uint32_t slot)
{
    (void)shape;
    (void)slot;
    return (struct segment_part) { .size = 0 };
}

static const struct zone_kind known_kind = {
    .name = "names",
    .size = table_size,
    .init = init_table,
    .is = is_table,
    .writable = writable_part,
    .is_helpers = true,
};

struct zone *known_declare(struct zones *zones, struct arena *arena)
{
    return zone_declare(zones, arena, &known_kind, "names:upstreams", KNOWN_VERSION, NULL);
}

/* ---- Keys ---- */

const char *known_question(const struct upstream_server *server, char text[MESSAGE_NAME])
{
    const char *service = server->service;
    int n;

    if (service == NULL)
        n = snprintf(text, MESSAGE_NAME, "%s", server->host);
    else if (strchr(service, '.') != NULL)
        n = snprintf(text, MESSAGE_NAME, "%s.%s", service, server->host);
    else
        n = snprintf(text, MESSAGE_NAME, "_%s._tcp.%s", service, server->host);
    return n < MESSAGE_NAME ? text : "";
}

/* The group's name is enough, but that of a directive's address may stand for several. */
struct known_key known_key_of(const struct upstream *upstream, const struct upstream_server *server)
{
    static const uint64_t seeds[2][2] = { { 0x6b6e6f77, 1 }, { 0x6b6e6f77, 2 } };
    const struct names_setting *resolver = upstream->is_single ? upstream->resolver : NULL;
    const char *const texts[] = { upstream->name, server->name, server->service,
        resolver != NULL ? resolver->servers : NULL };
    const uint8_t families = resolver != NULL ? (resolver->ipv4 | resolver->ipv6 << 1) : 0;
    uint64_t parts[2][countof(texts) + 1];
    struct known_key key;

    for (unsigned i = 0; i < 2; i++) {
        for (size_t j = 0; j < countof(texts); j++)
            parts[i][j] = texts[j] != NULL ? siphash(seeds[i], texts[j], strlen(texts[j])) : 0;
        parts[i][countof(texts)] = families;
        key.part[i] = siphash(seeds[i], parts[i], sizeof(parts[i]));
    }
    key.part[0] |= key.part[0] == 0;
    return key;
}

uint32_t known_find(const struct zone *zone, const struct known_key *key)
{
    for (uint32_t i = 0; i < KNOWN_NAMES; i++)
        if (known_has_key(zone, i, key))
            return i;
    return KNOWN_NONE;
}

/* ---- Reading ---- */

uint32_t known_changes(const struct zone *zone)
{
    return atomic_load_explicit(&known_table_of(zone)->changes, memory_order_acquire);
}

static void add_address(struct resolve_set *set, const struct known_address *from)
{
    struct resolve_found found = { .priority = from->priority, .weight = from->weight };

    memset(&found.address, 0, sizeof(found.address));
    if (from->is_in6) {
        found.address.length = sizeof(found.address.in6);
        found.address.in6.sin6_family = AF_INET6;
        found.address.in6.sin6_port = htons(from->port);
        found.address.in6.sin6_scope_id = from->scope;
        memcpy(&found.address.in6.sin6_addr, from->bytes, 16);
    } else {
        found.address.length = sizeof(found.address.in);
        found.address.in.sin_family = AF_INET;
        found.address.in.sin_port = htons(from->port);
        memcpy(&found.address.in.sin_addr, from->bytes, 4);
    }
    resolve_set_add(set, &found);
}

static void read_copy(const struct known_copy *copy, struct resolve_set *set)
{
    uint32_t n = copy->n < RESOLVE_ADDRESSES ? copy->n : RESOLVE_ADDRESSES;

    set->n = 0;
    set->is_cut = copy->is_cut != 0;
    for (uint32_t i = 0; i < n; i++)
        add_address(set, &copy->list[i]);
}

bool known_read(const struct zone *zone, uint32_t i, const struct known_key *key, uint32_t *version,
    bool *answered, struct resolve_set *set)
{
    const struct known_entry *entry = known_entry_of(zone, i);

    assert(set->room >= RESOLVE_ADDRESSES);
    for (int tries = 0; tries < READ_TRIES; tries++) {
        /* whoever finds that a round has ended finds its addresses, too */
        bool has_ended = atomic_load_explicit(&entry->answered, memory_order_acquire) != 0;
        uint32_t now = atomic_load_explicit(&entry->version, memory_order_acquire);

        if (!known_has_key(zone, i, key))
            return false;
        *answered = has_ended;
        if (now == *version)
            return false;
        read_copy(&entry->copies[now & 1], set);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&entry->version, memory_order_relaxed) == now &&
            known_has_key(zone, i, key)) {
            *version = now;
            return true;
        }
    }
    return false;
}

bool known_read_state(
    const struct zone *zone, uint32_t i, const struct known_key *key, struct known_state *state)
{
    const struct known_entry *entry = known_entry_of(zone, i);

    if (!known_has_key(zone, i, key))
        return false;
    state->n = entry->copies[atomic_load_explicit(&entry->version, memory_order_acquire) & 1].n;
    if (state->n > RESOLVE_ADDRESSES)
        state->n = RESOLVE_ADDRESSES;
    state->answered_ms = atomic_load_explicit(&entry->answered_ms, memory_order_relaxed);
    state->failed_ms = atomic_load_explicit(&entry->failed_ms, memory_order_relaxed);
    memcpy(state->why, entry->why, KNOWN_WHY);
    state->why[KNOWN_WHY - 1] = '\0';
    for (char *c = state->why; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}
