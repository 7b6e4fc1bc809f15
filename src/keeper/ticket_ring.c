/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of a slot are read and written one by one, by any number of processes at once: the checksum
 * tells a whole key from a mixture. A writer claims the ring for a time; whoever is killed or
 * stopped in that time leaves at worst a slot without a key, and a later writer takes the claim. */
#include "keeper/ticket_ring.h"

#include "shm/siphash.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <string.h>

#define KEYS 3
/* The time to write a key in: some microseconds are needed. */
#define CLAIM_MS 100

/* A key in its slot. */
struct ticket_entry {
    uint64_t number;  /* from 1; 0: none */
    uint64_t made_ms; /* by the monotonic clock */
    uint8_t name[TICKET_NAME];
    uint8_t cipher[TICKET_SECRET_MOST];
    uint8_t mac[TICKET_SECRET_MOST];
    uint64_t sum; /* of all before */
};

#define ENTRY_WORDS (sizeof(struct ticket_entry) / sizeof(uint64_t))

/* The layout is shared with other binaries: TLS_TICKETS_LAYOUT changes with it. */
struct ticket_memory {
    _Atomic uint64_t claim; /* when the claim of a writer ends; 0: there is none */
    uint64_t unused[15];
    _Atomic uint64_t slots[KEYS][16];
};

_Static_assert(sizeof(struct ticket_entry) == 104, "part of the layout");
_Static_assert(sizeof(struct ticket_entry) <= 16 * sizeof(uint64_t), "an entry fits into a slot");
_Static_assert(sizeof(struct ticket_memory) <= 4096, "sessions lie behind the keys");

void ticket_ring_init(struct ticket_ring *ring, void *memory, uint64_t lifetime_ms)
{
    assert(memory != NULL && (uintptr_t)memory % _Alignof(struct ticket_memory) == 0);
    assert(lifetime_ms > 0);
    *ring = (struct ticket_ring) { .memory = memory, .lifetime_ms = lifetime_ms };
}

static uint64_t entry_sum(const struct ticket_entry *entry)
{
    static const uint64_t key[2] = { TLS_TICKETS_LAYOUT, 0 };

    return siphash(key, entry, offsetof(struct ticket_entry, sum));
}

/* Copies the key of a slot; false: there is none, or not a whole one. */
static bool read_ticket_slot(
    const struct ticket_ring *ring, unsigned slot, struct ticket_entry *entry)
{
    uint64_t words[ENTRY_WORDS];

    for (unsigned i = 0; i < ENTRY_WORDS; i++)
        words[i] = atomic_load_explicit(&ring->memory->slots[slot][i], memory_order_relaxed);
    memcpy(entry, words, sizeof(*entry));
    OPENSSL_cleanse(words, sizeof(words));
    return entry->number > 0 && entry->number % KEYS == slot && entry->sum == entry_sum(entry);
}

static void write_ticket_slot(const struct ticket_ring *ring, const struct ticket_entry *entry)
{
    uint64_t words[ENTRY_WORDS];

    memcpy(words, entry, sizeof(*entry));
    for (unsigned i = 0; i < ENTRY_WORDS; i++)
        atomic_store_explicit(
            &ring->memory->slots[entry->number % KEYS][i], words[i], memory_order_relaxed);
    OPENSSL_cleanse(words, sizeof(words));
}

/* Copies the newest key; false, with number 0: there is none. */
static bool read_newest(const struct ticket_ring *ring, struct ticket_entry *newest)
{
    struct ticket_entry entry;

    newest->number = 0;
    for (unsigned slot = 0; slot < KEYS; slot++)
        if (read_ticket_slot(ring, slot, &entry) && entry.number > newest->number)
            *newest = entry;
    OPENSSL_cleanse(&entry, sizeof(entry));
    return newest->number > 0;
}

static bool is_key_due(
    const struct ticket_ring *ring, const struct ticket_entry *entry, uint64_t now)
{
    return entry->number == 0 || (int64_t)(now - entry->made_ms) >= (int64_t)ring->lifetime_ms;
}

/* Claims the ring for writing until the returned time; 0: another writer has it. A time that no
 * writer can have set is damage. */
static uint64_t claim_ring(const struct ticket_ring *ring, uint64_t now)
{
    uint64_t before = atomic_load(&ring->memory->claim);

    if (before > now && before <= now + CLAIM_MS)
        return 0;
    return atomic_compare_exchange_strong(&ring->memory->claim, &before, now + CLAIM_MS)
               ? now + CLAIM_MS
               : 0;
}

/* Gives the claim back, unless another writer has taken it. */
static void release_ring(const struct ticket_ring *ring, uint64_t claim)
{
    atomic_compare_exchange_strong(&ring->memory->claim, &claim, 0);
}

/* Makes the entry behind the newest. */
static int make_ticket_entry(struct ticket_entry *entry, uint64_t newest, uint64_t now)
{
    *entry = (struct ticket_entry) { .number = newest + 1, .made_ms = now };
    if (RAND_priv_bytes(entry->name, sizeof(entry->name)) != 1 ||
        RAND_priv_bytes(entry->cipher, sizeof(entry->cipher)) != 1 ||
        RAND_priv_bytes(entry->mac, sizeof(entry->mac)) != 1)
        return -1;
    entry->sum = entry_sum(entry);
    return 0;
}

/* Makes a new key under a claim, if it is still due. */
static void renew_ring(const struct ticket_ring *ring, uint64_t now, uint64_t claim)
{
    struct ticket_entry newest, entry;

    read_newest(ring, &newest);
    /* a writer that was stopped for long has lost its claim */
    if (is_key_due(ring, &newest, now) && make_ticket_entry(&entry, newest.number, now) == 0 &&
        atomic_load(&ring->memory->claim) == claim)
        write_ticket_slot(ring, &entry);
    OPENSSL_cleanse(&newest, sizeof(newest));
    OPENSSL_cleanse(&entry, sizeof(entry));
}

static void copy_key(struct ticket_key *key, const struct ticket_entry *entry)
{
    key->size = TICKET_SECRET_MOST;
    memcpy(key->name, entry->name, sizeof(key->name));
    memcpy(key->cipher, entry->cipher, sizeof(key->cipher));
    memcpy(key->mac, entry->mac, sizeof(key->mac));
}

int ticket_ring_take(const struct ticket_ring *ring, uint64_t now_ms, struct ticket_key *key)
{
    struct ticket_entry newest;
    uint64_t claim;
    bool found = read_newest(ring, &newest);

    if (is_key_due(ring, &newest, now_ms) && (claim = claim_ring(ring, now_ms)) != 0) {
        renew_ring(ring, now_ms, claim);
        release_ring(ring, claim);
        found = read_newest(ring, &newest);
    }
    if (found)
        copy_key(key, &newest);
    OPENSSL_cleanse(&newest, sizeof(newest));
    return found ? 0 : -1;
}

enum ticket_age ticket_ring_find(
    const struct ticket_ring *ring, const uint8_t name[TICKET_NAME], struct ticket_key *key)
{
    struct ticket_entry entry;
    uint64_t newest = 0, number = 0;

    for (unsigned slot = 0; slot < KEYS; slot++) {
        if (!read_ticket_slot(ring, slot, &entry))
            continue;
        if (entry.number > newest)
            newest = entry.number;
        if (CRYPTO_memcmp(entry.name, name, TICKET_NAME) == 0) {
            number = entry.number;
            copy_key(key, &entry);
        }
    }
    OPENSSL_cleanse(&entry, sizeof(entry));
    if (number == 0)
        return TICKET_UNKNOWN;
    return number == newest ? TICKET_NEWEST : TICKET_OLDER;
}
