/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of pairs in shared memory: see pair_store.h. A record that has grown beyond its room
 * gets another; the rest lies idle until a reload makes a new store. */
#include "keeper/pair_store.h"

#include "os/memory.h"
#include "os/memory_file.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Room for the records of a pair, on average, and in addition for a long one. */
#define ROOM_A_PAIR 16384
#define ROOM_MORE (1024 * 1024)
/* Places of records are multiples. */
#define PLACE_UNIT 16
/* Attempts to read a record that is written meanwhile. */
#define READ_TRIES 64

/* The first of the memory. */
struct store_head {
    _Atomic uint64_t used; /* bytes from the begin of the memory; 0: no writer was there */
    uint64_t pair_n;
};

struct pair_slot {
    _Atomic uint32_t version; /* odd: is being written, or its writer was killed */
    _Atomic uint32_t n;       /* bytes of the record; 0: none */
    _Atomic uint32_t place;   /* the record's, in units */
    uint32_t room;            /* units */
    uint8_t name[PAIR_NAME];
};

static size_t slots_end(uint32_t pair_n)
{
    return sizeof(struct store_head) + (size_t)pair_n * sizeof(struct pair_slot);
}

static size_t memory_size(uint32_t pair_n)
{
    return slots_end(pair_n) + (size_t)pair_n * ROOM_A_PAIR + ROOM_MORE;
}

int pair_memory_create(uint32_t pair_n)
{
    return memory_file_make("forkbeard-pairs", memory_size(pair_n));
}

int pair_memory_map(struct tls_memory *memory, int fd)
{
    struct stat status;
    void *p;

    if (fstat(fd, &status) == -1)
        return -1;
    p = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    *memory = (struct tls_memory) { .p = p, .size = (size_t)status.st_size };
    return 0;
}

int pair_memory_reserve(struct tls_memory *memory, uint32_t pair_n)
{
    *memory = (struct tls_memory) { .size = memory_size(pair_n) };
    memory->p = os_memory_reserve(memory->size);
    return memory->p != NULL ? 0 : -1;
}

void pair_memory_release(struct tls_memory *memory)
{
    if (memory->p != NULL)
        munmap(memory->p, memory->size);
    *memory = (struct tls_memory) { .p = NULL };
}

static struct store_head *store_head_of(const struct pair_store *store)
{
    return store->memory.p;
}

static struct pair_slot *slot_of(const struct pair_store *store, uint32_t number)
{
    assert(number < store->pair_n);
    return (struct pair_slot *)((uint8_t *)store->memory.p + sizeof(struct store_head)) + number;
}

int pair_store_open(struct pair_store *store, struct tls_memory memory, uint32_t pair_n)
{
    *store = (struct pair_store) { .memory = memory, .pair_n = pair_n };
    return memory.p != NULL && memory.size >= slots_end(pair_n) ? 0 : -1;
}

uint32_t pair_store_version(const struct pair_store *store, uint32_t number)
{
    return atomic_load_explicit(&slot_of(store, number)->version, memory_order_acquire);
}

/* Returns a record of `length` bytes at a place; NULL: not all of it lies in the memory. */
static uint8_t *record_at(const struct pair_store *store, uint32_t place, uint32_t length)
{
    size_t from = (size_t)place * PLACE_UNIT;

    if (from < slots_end(store->pair_n) || from > store->memory.size ||
        length > store->memory.size - from)
        return NULL;
    return (uint8_t *)store->memory.p + from;
}

/* Copies n bytes of such a record; false: there is none. */
static bool copy_record(
    const struct pair_store *store, uint32_t place, uint32_t length, void *to, size_t n)
{
    const uint8_t *record = n <= length ? record_at(store, place, length) : NULL;

    if (record != NULL)
        memcpy(to, record, n);
    return record != NULL;
}

/* Whether what was read since the version was read is of that version. */
static bool is_still_version(const struct pair_slot *slot, uint32_t version)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->version, memory_order_relaxed) == version;
}

bool pair_store_peek(const struct pair_store *store, uint32_t number, void *to, size_t n)
{
    const struct pair_slot *slot = slot_of(store, number);

    for (unsigned i = 0; i < READ_TRIES; i++) {
        uint32_t version = pair_store_version(store, number);
        uint32_t length = atomic_load(&slot->n), place = atomic_load(&slot->place);
        bool copied = (version & 1) == 0 && copy_record(store, place, length, to, n);

        if (is_still_version(slot, version))
            return copied;
    }
    return false;
}

uint8_t *pair_store_get(
    const struct pair_store *store, uint32_t number, size_t *n, uint32_t *version)
{
    const struct pair_slot *slot = slot_of(store, number);

    for (unsigned i = 0; i < READ_TRIES; i++) {
        uint32_t length = atomic_load(&slot->n), place;
        uint8_t *copy;

        *version = pair_store_version(store, number);
        if ((*version & 1) != 0 || length == 0 || length > store->memory.size)
            return NULL;
        place = atomic_load(&slot->place);
        copy = malloc(length);
        if (copy == NULL)
            return NULL;
        *n = length;
        if (copy_record(store, place, length, copy, length) && is_still_version(slot, *version) &&
            atomic_load(&slot->n) == length)
            return copy;
        explicit_bzero(copy, length);
        free(copy);
    }
    return NULL;
}

/* Finds a place for a record of so many bytes; false: there is none. */
static bool give_room(struct pair_store *store, struct pair_slot *slot, size_t n)
{
    struct store_head *head = store_head_of(store);
    size_t units = (n + n / 16) / PLACE_UNIT + 1, used = atomic_load(&head->used);

    if (n <= (size_t)slot->room * PLACE_UNIT)
        return true;
    if (used == 0)
        used = (slots_end(store->pair_n) + PLACE_UNIT - 1) / PLACE_UNIT * PLACE_UNIT;
    if (used > store->memory.size || units > (store->memory.size - used) / PLACE_UNIT)
        return false;
    /* a writer that is killed between two of these wastes room, and no more */
    atomic_store(&head->used, used + units * PLACE_UNIT);
    slot->room = 0;
    atomic_store(&slot->place, (uint32_t)(used / PLACE_UNIT));
    slot->room = (uint32_t)units;
    return true;
}

/* Overwrites the record, which has a private key. */
static void wipe_record(struct pair_store *store, struct pair_slot *slot)
{
    uint32_t length = atomic_load(&slot->n);
    uint8_t *record = record_at(store, atomic_load(&slot->place), length);

    if (record != NULL)
        explicit_bzero(record, length);
}

size_t pair_store_used(const struct pair_store *store)
{
    size_t used = atomic_load(&store_head_of(store)->used);

    return used > slots_end(store->pair_n) ? used : slots_end(store->pair_n);
}

bool pair_store_put(
    struct pair_store *store, uint32_t number, const struct iovec *pieces, unsigned n)
{
    struct pair_slot *slot = slot_of(store, number);
    uint32_t writing = pair_store_version(store, number) | 1;
    size_t length = 0, at = 0;
    bool fits;

    store_head_of(store)->pair_n = store->pair_n;
    for (unsigned i = 0; i < n; i++)
        length += pieces[i].iov_len;
    assert(length > 0);
    atomic_store_explicit(&slot->version, writing, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    wipe_record(store, slot);
    fits = length <= UINT32_MAX && give_room(store, slot, length);
    for (unsigned i = 0; fits && i < n; at += pieces[i++].iov_len)
        memcpy((uint8_t *)store->memory.p + (size_t)atomic_load(&slot->place) * PLACE_UNIT + at,
            pieces[i].iov_base, pieces[i].iov_len);
    atomic_store(&slot->n, fits ? (uint32_t)length : 0);
    atomic_store_explicit(&slot->version, writing + 1, memory_order_release);
    return fits;
}

void pair_store_name(struct pair_store *store, uint32_t number, const uint8_t name[PAIR_NAME])
{
    memcpy(slot_of(store, number)->name, name, PAIR_NAME);
}

/* ---- The records of another generation ---- */

/* The numbers of named pairs, by name; 0 is free, else a number + 1. */
struct name_table {
    uint32_t *numbers;
    uint32_t mask;
};

static int fill_table(struct name_table *table, const struct pair_store *store)
{
    uint32_t size = 2;

    while (size < UINT32_MAX / 4 && size < 2 * store->pair_n)
        size *= 2;
    *table = (struct name_table) { .numbers = calloc(size, sizeof(uint32_t)), .mask = size - 1 };
    if (table->numbers == NULL)
        return -1;
    for (uint32_t i = 0; i < store->pair_n; i++) {
        uint32_t at;

        memcpy(&at, slot_of(store, i)->name, sizeof(at));
        while (table->numbers[at & table->mask] != 0)
            at++;
        table->numbers[at & table->mask] = i + 1;
    }
    return 0;
}

/* Returns the number of the pair with the name; UINT32_MAX: none. */
static uint32_t find_named(
    const struct name_table *table, const struct pair_store *store, const uint8_t name[PAIR_NAME])
{
    uint32_t at, number;

    memcpy(&at, name, sizeof(at));
    while ((number = table->numbers[at++ & table->mask]) != 0)
        if (memcmp(slot_of(store, number - 1)->name, name, PAIR_NAME) == 0)
            return number - 1;
    return UINT32_MAX;
}

static void adopt_record(
    struct pair_store *store, uint32_t number, const struct pair_store *from, uint32_t other)
{
    struct iovec piece;
    uint32_t version;

    piece.iov_base = pair_store_get(from, other, &piece.iov_len, &version);
    if (piece.iov_base == NULL)
        return;
    pair_store_put(store, number, &piece, 1);
    explicit_bzero(piece.iov_base, piece.iov_len);
    free(piece.iov_base);
}

void pair_store_adopt(struct pair_store *store, const struct tls_memory *former)
{
    struct pair_store from = { .pair_n = 0 };
    struct name_table table;

    if (former->p == NULL || former->size < sizeof(struct store_head) ||
        ((const struct store_head *)former->p)->pair_n > UINT32_MAX ||
        pair_store_open(&from, *former, (uint32_t)((const struct store_head *)former->p)->pair_n) ==
            -1 ||
        from.pair_n == 0 || fill_table(&table, &from) == -1)
        return;
    for (uint32_t i = 0; i < store->pair_n; i++) {
        uint32_t other = pair_store_version(store, i) == 0
                             ? find_named(&table, &from, slot_of(store, i)->name)
                             : UINT32_MAX;

        if (other != UINT32_MAX)
            adopt_record(store, i, &from, other);
    }
    free(table.numbers);
}
