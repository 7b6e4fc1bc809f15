/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of a slot are read and written one by one, by any number of processes at once: the checksum
 * tells a whole session from a mixture, which is none. A key has a few slots, chosen by its first
 * bytes. */
#include "keeper/session_table.h"

#include "shm/siphash.h"
#include "tls/engine.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

/* Slots of a key, and keys' first bytes that are told apart. */
#define SLOTS_OF_KEY 4
#define SLOT_SETS 128
/* The keys of tickets lie before the slots. */
#define SLOTS_AT 4096

/* A session in its slot. */
struct session_entry {
    uint64_t sum; /* checksum of all behind, up to the last byte */
    uint8_t key[SESSION_KEY];
    uint64_t written_ms, ends_ms;
    uint64_t n; /* 0: none */
    uint8_t bytes[SESSION_MOST];
};

#define HEADER_WORDS (offsetof(struct session_entry, bytes) / sizeof(uint64_t))

/* The layout is shared with other binaries: TLS_TICKETS_LAYOUT changes with it. */
struct session_slot {
    _Atomic uint64_t words[sizeof(struct session_entry) / sizeof(uint64_t)];
};

_Static_assert(offsetof(struct session_entry, bytes) == 64, "part of the layout");
_Static_assert(sizeof(struct session_slot) == 8192, "part of the layout");
_Static_assert(
    SLOTS_AT + SLOT_SETS * SLOTS_OF_KEY * sizeof(struct session_slot) == TLS_TICKETS_SIZE,
    "the memory is large enough");

void session_table_init(struct session_table *table, void *memory)
{
    assert(memory != NULL && (uintptr_t)memory % _Alignof(struct session_slot) == 0);
    table->slots = (struct session_slot *)((uint8_t *)memory + SLOTS_AT);
}

/* Returns the first slot of a key. */
static struct session_slot *slots_of_key(const struct session_table *table, const uint8_t *key)
{
    assert(table->slots != NULL);
    return &table->slots[(size_t)(key[0] % SLOT_SETS) * SLOTS_OF_KEY];
}

static void read_slot_words(
    const struct session_slot *slot, struct session_entry *entry, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint64_t word = atomic_load_explicit(&slot->words[i], memory_order_relaxed);

        memcpy((uint8_t *)entry + i * sizeof(word), &word, sizeof(word));
    }
}

static size_t entry_words(const struct session_entry *entry)
{
    assert(entry->n <= SESSION_MOST);
    return HEADER_WORDS + (entry->n + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static uint64_t session_sum(const struct session_entry *entry)
{
    static const uint64_t key[2] = { TLS_TICKETS_LAYOUT, 1 };
    const size_t from = sizeof(entry->sum);

    return siphash(key, (const uint8_t *)entry + from,
        offsetof(struct session_entry, bytes) - from + entry->n);
}

/* Reads the header alone; whether it is of a session that lives. */
static bool read_session_header(
    const struct session_slot *slot, struct session_entry *entry, uint64_t now_ms)
{
    read_slot_words(slot, entry, 0, HEADER_WORDS);
    return entry->n > 0 && entry->n <= SESSION_MOST && entry->written_ms <= now_ms &&
           entry->ends_ms > now_ms;
}

size_t session_table_find(const struct session_table *table, const uint8_t key[SESSION_KEY],
    uint64_t now_ms, uint8_t out[SESSION_MOST], struct session_found *found)
{
    const struct session_slot *slots = slots_of_key(table, key);
    struct session_entry entry;
    size_t n = 0;

    *found = (struct session_found) { 0, 0 };
    for (unsigned i = 0; i < SLOTS_OF_KEY && n == 0; i++) {
        if (!read_session_header(&slots[i], &entry, now_ms) ||
            memcmp(entry.key, key, SESSION_KEY) != 0)
            continue;
        read_slot_words(&slots[i], &entry, HEADER_WORDS, entry_words(&entry));
        if (entry.sum == session_sum(&entry)) {
            n = entry.n;
            *found = (struct session_found) { entry.sum, entry.ends_ms };
            memcpy(out, entry.bytes, n);
        }
        OPENSSL_cleanse(entry.bytes, entry.n);
    }
    return n;
}

/* Overwrites the words of a slot from here to the end of its session. */
static void wipe_slot(struct session_slot *slot, const struct session_entry *former, size_t from)
{
    size_t n = former->n < SESSION_MOST ? former->n : SESSION_MOST;

    for (size_t i = from; i * sizeof(uint64_t) < offsetof(struct session_entry, bytes) + n; i++)
        atomic_store_explicit(&slot->words[i], 0, memory_order_relaxed);
}

/* Returns the slot to write to: the key's, else one without a session that lives, else that written
 * longest ago. */
static struct session_slot *choose_slot(
    const struct session_table *table, const uint8_t *key, uint64_t now_ms)
{
    struct session_slot *slots = slots_of_key(table, key), *chosen = NULL;
    uint64_t oldest = UINT64_MAX;

    for (unsigned i = 0; i < SLOTS_OF_KEY; i++) {
        struct session_entry entry;
        bool lives = read_session_header(&slots[i], &entry, now_ms);
        uint64_t written = lives ? entry.written_ms : 0;

        if (lives && memcmp(entry.key, key, SESSION_KEY) == 0)
            return &slots[i];
        if (chosen == NULL || written < oldest) {
            chosen = &slots[i];
            oldest = written;
        }
    }
    return chosen;
}

void session_table_put(const struct session_table *table, const uint8_t key[SESSION_KEY],
    uint64_t now_ms, uint64_t ends_ms, const uint8_t *p, size_t n)
{
    struct session_slot *slot = choose_slot(table, key, now_ms);
    struct session_entry entry = { .written_ms = now_ms, .ends_ms = ends_ms, .n = n };
    size_t words = entry_words(&entry);
    struct session_entry former;

    assert(n > 0 && n <= SESSION_MOST);
    memcpy(entry.key, key, SESSION_KEY);
    memcpy(entry.bytes, p, n);
    entry.sum = session_sum(&entry);
    read_slot_words(slot, &former, 0, HEADER_WORDS);
    for (size_t i = 0; i < words; i++) {
        uint64_t word;

        memcpy(&word, (const uint8_t *)&entry + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&slot->words[i], word, memory_order_relaxed);
    }
    wipe_slot(slot, &former, words);
    OPENSSL_cleanse(entry.bytes, n);
}

void session_table_drop(const struct session_table *table, const uint8_t key[SESSION_KEY],
    const struct session_found *found)
{
    struct session_slot *slots = slots_of_key(table, key);
    struct session_entry entry;

    for (unsigned i = 0; i < SLOTS_OF_KEY; i++) {
        read_slot_words(&slots[i], &entry, 0, HEADER_WORDS);
        if (entry.sum == found->sum && memcmp(entry.key, key, SESSION_KEY) == 0)
            wipe_slot(&slots[i], &entry, 0);
    }
}
