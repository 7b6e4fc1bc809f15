/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes to the table of known addresses: claims entries, fills the copy that is not in force, and
 * puts it in force. */
#include "upstream/addresses_write.h"

#include "upstream/addresses_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Locks the table (0) or an entry (1 and more) for this process; false: another one has it. The
 * lock is POSIX's, which a process has, and loses with its last descriptor: a helper has one. */
static bool lock(const struct zone *zone, uint32_t at)
{
    struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

    return zone->segment.fd == -1 || fcntl(zone->segment.fd, F_SETLK, &range) == 0;
}

static void unlock(const struct zone *zone, uint32_t at)
{
    struct flock range = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

    if (zone->segment.fd != -1)
        fcntl(zone->segment.fd, F_SETLK, &range);
}

static bool is_claimed(const struct known_writer *writer, uint32_t i)
{
    return (writer->claimed[i / 64] >> i % 64 & 1) != 0;
}

static void note_change(const struct known_writer *writer)
{
    atomic_fetch_add_explicit(&known_table_of(writer->zone)->changes, 1, memory_order_release);
}

static bool is_older(const struct known_entry *a, const struct known_entry *b)
{
    return atomic_load_explicit(&a->answered_ms, memory_order_relaxed) <
           atomic_load_explicit(&b->answered_ms, memory_order_relaxed);
}

/* Finds an entry that is free, or else the one of those that nobody writes to that was answered
 * the longest time ago, and locks it. */
static uint32_t lock_unused(const struct known_writer *writer)
{
    uint32_t oldest = KNOWN_NONE;

    for (uint32_t i = 0; i < KNOWN_NAMES; i++) {
        const _Atomic uint64_t *key = known_table_of(writer->zone)->keys[i];

        if (is_claimed(writer, i) || !lock(writer->zone, i + 1))
            continue;
        if (atomic_load_explicit(key, memory_order_relaxed) == 0) {
            if (oldest != KNOWN_NONE)
                unlock(writer->zone, oldest + 1);
            return i;
        }
        if (oldest != KNOWN_NONE &&
            !is_older(known_entry_of(writer->zone, i), known_entry_of(writer->zone, oldest))) {
            unlock(writer->zone, i + 1);
            continue;
        }
        if (oldest != KNOWN_NONE)
            unlock(writer->zone, oldest + 1);
        oldest = i;
    }
    return oldest;
}

/* Makes a locked entry the key's, of which nothing is known. */
static void begin_entry(const struct known_writer *writer, uint32_t i, const struct known_key *key)
{
    _Atomic uint64_t *parts = known_table_of(writer->zone)->keys[i];
    struct known_entry *entry = known_entry_of(writer->zone, i);
    uint32_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);

    atomic_store_explicit(&parts[0], 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader of what follows finds no key */
    for (unsigned copy = 0; copy < 2; copy++)
        entry->copies[copy].n = entry->copies[copy].is_cut = 0;
    entry->why[0] = '\0';
    atomic_store_explicit(&entry->answered, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->answered_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->failed_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&parts[1], key->part[1], memory_order_relaxed);
    atomic_store_explicit(&parts[0], key->part[0], memory_order_release);
}

/* Makes an entry for the key, unless another process is just making one. */
static uint32_t make_entry(struct known_writer *writer, const struct known_key *key)
{
    uint32_t i;

    if (!lock(writer->zone, 0))
        return KNOWN_NONE;
    i = known_find(writer->zone, key);
    if (i != KNOWN_NONE) {
        unlock(writer->zone, 0);
        return lock(writer->zone, i + 1) ? i : KNOWN_NONE;
    }
    i = lock_unused(writer);
    if (i != KNOWN_NONE)
        begin_entry(writer, i, key);
    unlock(writer->zone, 0);
    return i;
}

uint32_t known_claim(struct known_writer *writer, const struct known_key *key)
{
    uint32_t i = known_find(writer->zone, key);

    if (i == KNOWN_NONE)
        i = make_entry(writer, key);
    else if (!lock(writer->zone, i + 1))
        return KNOWN_NONE;
    if (i == KNOWN_NONE)
        return KNOWN_NONE;
    if (!known_has_key(writer->zone, i, key)) { /* another process was faster */
        unlock(writer->zone, i + 1);
        return KNOWN_NONE;
    }
    writer->claimed[i / 64] |= UINT64_C(1) << i % 64;
    return i;
}

static void put_address(struct known_address *to, const struct resolve_found *found)
{
    const struct address *address = &found->address;

    *to = (struct known_address) {
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

void known_write(struct known_writer *writer, uint32_t i, const struct resolve_set *set)
{
    struct known_entry *entry = known_entry_of(writer->zone, i);
    uint32_t version = atomic_load_explicit(&entry->version, memory_order_relaxed) + 1;
    struct known_copy *copy = &entry->copies[version & 1];

    assert(is_claimed(writer, i) && set->n <= RESOLVE_ADDRESSES);
    /* readers of the copy find that another one is in force */
    atomic_thread_fence(memory_order_release);
    copy->is_cut = set->is_cut;
    copy->n = (uint32_t)set->n;
    for (size_t j = 0; j < set->n; j++)
        put_address(&copy->list[j], &set->list[j]);
    atomic_store_explicit(&entry->version, version, memory_order_release);
    note_change(writer);
}

void known_note(
    struct known_writer *writer, uint32_t i, uint64_t now_ms, const char *name, const char *why)
{
    struct known_entry *entry = known_entry_of(writer->zone, i);
    char text[KNOWN_WHY] = "";

    assert(is_claimed(writer, i) && (name == NULL) == (why == NULL));
    if (why == NULL)
        atomic_store_explicit(&entry->answered_ms, now_ms, memory_order_relaxed);
    else if (snprintf(text, sizeof(text), "%s: %s", name, why) < 0)
        text[0] = '\0';
    if (why == NULL)
        atomic_store_explicit(&entry->failed_ms, 0, memory_order_relaxed);
    else if (atomic_load_explicit(&entry->failed_ms, memory_order_relaxed) == 0)
        atomic_store_explicit(&entry->failed_ms, now_ms, memory_order_relaxed);
    memcpy(entry->why, text, sizeof(text));
    if (atomic_exchange_explicit(&entry->answered, 1, memory_order_release) == 0)
        note_change(writer);
}
