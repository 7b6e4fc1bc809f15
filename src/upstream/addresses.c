/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the table of addresses. A reader takes no lock, and reads again if a write has put the
 * second copy in force. A writer fills the copy not in force of a claimed entry, and puts it in
 * force. */
#include "upstream/addresses.h"

#include "base/compiler.h"
#include "shm/siphash.h"
#include "shm/zone_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ADDRESSES_MAGIC 0x66626b6eu
#define ADDRESSES_VERSION 1
#define READ_TRIES 4

static_assert(sizeof(struct addresses_item) == 32, "the layout is versioned");

static struct addresses_table *table_of(const struct zone *zone)
{
    return zone_memory(zone);
}

static size_t table_size(const void *shape)
{
    (void)shape;
    return sizeof(struct addresses_table);
}

static int init_table(void *memory, const void *shape)
{
    struct addresses_table *table = memory;

    (void)shape;
    table->magic = ADDRESSES_MAGIC;
    table->entries = ADDRESSES_NAMES;
    table->unit = sizeof(struct addresses_entry);
    return 0;
}

static bool is_table(const void *memory, const void *shape)
{
    const struct addresses_table *table = memory;

    (void)shape;
    return table->magic == ADDRESSES_MAGIC && table->entries == ADDRESSES_NAMES &&
           table->unit == sizeof(struct addresses_entry);
}

static struct segment_part writable_nothing(const void *shape, uint32_t slot)
{
    (void)shape;
    (void)slot;
    return (struct segment_part) { .size = 0 };
}

static const struct zone_kind addresses_kind = {
    .name = "names",
    .size = table_size,
    .init = init_table,
    .is = is_table,
    .writable = writable_nothing,
    .is_helpers = true,
};

struct zone *addresses_declare(struct zones *zones, struct arena *arena)
{
    return zone_declare(zones, arena, &addresses_kind, "names:upstreams", ADDRESSES_VERSION, NULL);
}

const char *addresses_question(const struct upstream_server *server, char text[MESSAGE_NAME])
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

/* The name of a directive's address, unlike a group's, may stand for several groups. */
struct addresses_key addresses_key_of(
    const struct upstream *upstream, const struct upstream_server *server)
{
    static const uint64_t seeds[2][2] = { { 0x6b6e6f77, 1 }, { 0x6b6e6f77, 2 } };
    const struct names_setting *resolver = upstream->is_single ? upstream->resolver : NULL;
    const char *const texts[] = { upstream->name, server->name, server->service,
        resolver != NULL ? resolver->servers : NULL };
    const uint8_t families = resolver != NULL ? (resolver->ipv4 | resolver->ipv6 << 1) : 0;
    uint64_t parts[2][countof(texts) + 1];
    struct addresses_key key;

    for (unsigned i = 0; i < 2; i++) {
        for (size_t j = 0; j < countof(texts); j++)
            parts[i][j] = texts[j] != NULL ? siphash(seeds[i], texts[j], strlen(texts[j])) : 0;
        parts[i][countof(texts)] = families;
        key.part[i] = siphash(seeds[i], parts[i], sizeof(parts[i]));
    }
    key.part[0] |= key.part[0] == 0;
    return key;
}

static bool entry_has_key(const struct zone *zone, uint32_t entry, const struct addresses_key *key)
{
    const _Atomic uint64_t *parts = table_of(zone)->keys[entry];

    assert(entry < ADDRESSES_NAMES);
    return ZONE_LOAD(parts[0]) == key->part[0] && ZONE_LOAD(parts[1]) == key->part[1];
}

uint32_t addresses_find(const struct zone *zone, const struct addresses_key *key)
{
    for (uint32_t i = 0; i < ADDRESSES_NAMES; i++)
        if (entry_has_key(zone, i, key))
            return i;
    return ADDRESSES_NONE;
}

uint32_t addresses_changes(const struct zone *zone)
{
    return ZONE_LOAD(table_of(zone)->changes);
}

static void read_item_address(struct resolve_set *set, const struct addresses_item *from)
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

bool addresses_read(const struct zone *zone, uint32_t i, const struct addresses_key *key,
    uint32_t *version, bool *answered, struct resolve_set *set)
{
    const struct addresses_entry *entry = addresses_entry_of(zone, i);
    const struct addresses_copy *copy;

    assert(set->room >= RESOLVE_ADDRESSES);
    for (int tries = 0; tries < READ_TRIES; tries++) {
        /* a reader of a round's end finds the round's addresses, too */
        bool has_ended = ZONE_LOAD(entry->answered) != 0;
        uint32_t now = ZONE_LOAD(entry->version);

        if (!entry_has_key(zone, i, key))
            return false;
        *answered = has_ended;
        if (now == *version)
            return false;
        copy = &entry->copies[now & 1];
        set->n = 0;
        set->is_cut = copy->is_cut != 0;
        for (uint32_t j = 0, n = copy->n; j < n && j < RESOLVE_ADDRESSES; j++)
            read_item_address(set, &copy->list[j]);
        atomic_thread_fence(memory_order_acquire);
        if (ZONE_LOAD(entry->version) == now && entry_has_key(zone, i, key)) {
            *version = now;
            return true;
        }
    }
    return false;
}

bool addresses_read_state(const struct zone *zone, uint32_t i, const struct addresses_key *key,
    struct addresses_state *state)
{
    const struct addresses_entry *entry = addresses_entry_of(zone, i);

    if (!entry_has_key(zone, i, key))
        return false;
    state->n = entry->copies[ZONE_LOAD(entry->version) & 1].n;
    if (state->n > RESOLVE_ADDRESSES)
        state->n = RESOLVE_ADDRESSES;
    state->answered_ms = ZONE_LOAD(entry->answered_ms);
    state->failed_ms = ZONE_LOAD(entry->failed_ms);
    memcpy(state->why, entry->why, ADDRESSES_WHY);
    state->why[ADDRESSES_WHY - 1] = '\0';
    for (char *c = state->why; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}

/* Locks (F_WRLCK) the table (0) or an entry (1 and more) by a POSIX lock, which ends with the
 * process, or unlocks (F_UNLCK); false: a different process has the lock. */
static bool set_range_lock(const struct zone *zone, uint32_t at, short type)
{
    struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

    return zone->segment.fd == -1 || fcntl(zone->segment.fd, F_SETLK, &range) == 0;
}

static bool is_claimed(const struct addresses_writer *writer, uint32_t i)
{
    return (writer->claimed[i / 64] >> i % 64 & 1) != 0;
}

static void note_table_change(const struct addresses_writer *writer)
{
    atomic_fetch_add_explicit(&table_of(writer->zone)->changes, 1, memory_order_release);
}

/* Finds and locks a free entry, or else the oldest answered entry without a writer. */
static uint32_t lock_unused(const struct addresses_writer *writer)
{
    uint32_t oldest = ADDRESSES_NONE;

    for (uint32_t i = 0; i < ADDRESSES_NAMES; i++) {
        bool is_free = ZONE_LOAD(table_of(writer->zone)->keys[i][0]) == 0;
        uint32_t unlocked = oldest;

        if (is_claimed(writer, i) || !set_range_lock(writer->zone, i + 1, F_WRLCK))
            continue;
        if (is_free || oldest == ADDRESSES_NONE ||
            ZONE_LOAD(addresses_entry_of(writer->zone, i)->answered_ms) <
                ZONE_LOAD(addresses_entry_of(writer->zone, oldest)->answered_ms))
            oldest = i;
        else
            unlocked = i;
        if (unlocked != ADDRESSES_NONE)
            set_range_lock(writer->zone, unlocked + 1, F_UNLCK);
        if (is_free)
            break;
    }
    return oldest;
}

/* Resets a locked entry for the key. */
static void begin_entry(
    const struct addresses_writer *writer, uint32_t i, const struct addresses_key *key)
{
    _Atomic uint64_t *parts = table_of(writer->zone)->keys[i];
    struct addresses_entry *entry = addresses_entry_of(writer->zone, i);
    uint32_t version = ZONE_LOAD(entry->version);

    ZONE_STORE(parts[0], 0);
    atomic_thread_fence(memory_order_release); /* a reader of the later stores finds no key */
    for (unsigned copy = 0; copy < 2; copy++)
        entry->copies[copy].n = entry->copies[copy].is_cut = 0;
    entry->why[0] = '\0';
    ZONE_STORE(entry->answered, 0);
    ZONE_STORE(entry->answered_ms, 0);
    ZONE_STORE(entry->failed_ms, 0);
    ZONE_STORE(entry->version, version + 1);
    ZONE_STORE(parts[1], key->part[1]);
    ZONE_STORE(parts[0], key->part[0]);
}

uint32_t addresses_claim(struct addresses_writer *writer, const struct addresses_key *key)
{
    const struct zone *zone = writer->zone;
    uint32_t i = addresses_find(zone, key);

    if (i == ADDRESSES_NONE) {
        if (!set_range_lock(zone, 0, F_WRLCK))
            return ADDRESSES_NONE; /* a process is just making an entry */
        i = addresses_find(zone, key);
        if (i == ADDRESSES_NONE && (i = lock_unused(writer)) != ADDRESSES_NONE)
            begin_entry(writer, i, key);
        set_range_lock(zone, 0, F_UNLCK);
    }
    if (i == ADDRESSES_NONE || !set_range_lock(zone, i + 1, F_WRLCK))
        return ADDRESSES_NONE;
    if (!entry_has_key(zone, i, key)) { /* a process was faster */
        set_range_lock(zone, i + 1, F_UNLCK);
        return ADDRESSES_NONE;
    }
    writer->claimed[i / 64] |= UINT64_C(1) << i % 64;
    return i;
}

static void write_item(struct addresses_item *to, const struct resolve_found *found)
{
    const struct address *address = &found->address;

    *to = (struct addresses_item) {
        .weight = found->weight,
        .port = address_port(address),
        .priority = found->priority,
        .is_in6 = address->any.sa_family == AF_INET6,
    };
    if (to->is_in6) {
        memcpy(to->bytes, &address->in6.sin6_addr, 16);
        to->scope = address->in6.sin6_scope_id;
    } else {
        memcpy(to->bytes, &address->in.sin_addr, 4);
    }
}

void addresses_write(struct addresses_writer *writer, uint32_t i, const struct resolve_set *set)
{
    struct addresses_entry *entry = addresses_entry_of(writer->zone, i);
    uint32_t version = ZONE_LOAD(entry->version) + 1;
    struct addresses_copy *copy = &entry->copies[version & 1];

    assert(is_claimed(writer, i) && set->n <= RESOLVE_ADDRESSES);
    /* readers of the copy find the newer version */
    atomic_thread_fence(memory_order_release);
    copy->is_cut = set->is_cut;
    copy->n = (uint32_t)set->n;
    for (size_t j = 0; j < set->n; j++)
        write_item(&copy->list[j], &set->list[j]);
    ZONE_STORE(entry->version, version);
    note_table_change(writer);
}

void addresses_note(
    struct addresses_writer *writer, uint32_t i, uint64_t now_ms, const char *name, const char *why)
{
    struct addresses_entry *entry = addresses_entry_of(writer->zone, i);
    char text[ADDRESSES_WHY] = "";

    assert(is_claimed(writer, i) && (name == NULL) == (why == NULL));
    if (why == NULL) {
        ZONE_STORE(entry->answered_ms, now_ms);
        ZONE_STORE(entry->failed_ms, 0);
    } else {
        snprintf(text, sizeof(text), "%s: %s", name, why);
        if (ZONE_LOAD(entry->failed_ms) == 0)
            ZONE_STORE(entry->failed_ms, now_ms);
    }
    memcpy(entry->why, text, sizeof(text));
    if (atomic_exchange_explicit(&entry->answered, 1, memory_order_release) == 0)
        note_table_change(writer);
}
