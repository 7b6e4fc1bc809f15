/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory shared by master and workers: made before the first fork, kept over every reload. A worker
 * writes only the page of its own slot, without locked instructions, and the common page; the rest
 * is mapped read-only. Only the master assigns slots, by private records, and folds the counters of
 * a dead worker into the totals. */
#pragma once

#include "shm/segment.h"
#include "shm/zone_lock.h"

/* The first pages, published by the master, which itself trusts only its records. */
struct shared_published {
    uint32_t magic, version; /* the layout's */
    _Atomic uint32_t slot_n; /* no slot beyond has ever been used */
    _Atomic uint32_t folds;  /* odd while the master moves counters: readers try again */
    struct counters folded;
    struct {
        _Atomic uint32_t serial; /* the incarnation's that has the slot; 0: free */
        _Atomic uint32_t place;  /* slot_place() of its worker, or PLACE_NONE */
    } slots[SLOT_MAX];
    _Atomic uint32_t log_override; /* of the logs of all processes (base/log.h) */
};

/* Chains of connections from workers to listeners of their own daemon: the worker that accepts a
 * connection finds out the listeners of the chain so far. An entry lasts from the connect() to the
 * accept(), two seconds at most, and gives way to a new entry of equal place: a lost chain begins
 * anew. A chain may end a session, and is trusted for no other purpose. */
#define CHAINS_N 128

struct chains {
    struct {
        _Atomic uint64_t sum;   /* mixed of the key and the value; 0: empty */
        _Atomic uint64_t value; /* chain, tag and time */
    } entries[CHAINS_N];
    _Atomic uint32_t used; /* 0: no worker has ever noted a chain */
};

/* The next page, writable for all workers, and so untrusted. The slots' pages follow. */
struct shared_common {
    alignas(CACHE_LINE) struct shm_lock accept_mutex;
    /* connections that workers have taken numbers for, in blocks; read as a name of log lines */
    alignas(CACHE_LINE) _Atomic uint64_t connection_numbers;
    alignas(CACHE_LINE) struct chains chains; /* chains of connections to our own listeners */
};

/* Private memory of the process. A worker has the records as of its fork. */
struct shared {
    struct shared_published *published;
    struct shared_common *common;
    struct segment segment;
    struct ticks_mark created; /* begin of measuring the tick rate */
    size_t page;               /* bytes of a page */
    uint32_t half;             /* slot numbers begin at half * SLOT_MAX */
    uint32_t serial;           /* a slot begins with the next serial */
    uint32_t other_serial;     /* the greatest noted from another master process */
    uint32_t slot_n;           /* no slot beyond has ever been used */
    struct slot_record records[SLOT_MAX];
};

#define SHARED_MAGIC 0x6662656bu
#define SHARED_VERSION 9u

/* Makes the memory, mapped in children by shared_enter(), or (single) inherited. NULL with
 * errno. */
struct shared *shared_create(bool is_single);
void shared_destroy(struct shared **shared);
/* A forked child: maps the memory for the worker of the slot, and closes the descriptor; NULL, or
 * the failed call's name, with errno. */
const char *shared_enter(struct shared *shared, struct slot_id id);
/* Sets the half of the slot numbers and the first serial, before the first slot is acquired. A slot
 * and serial that a zone, older than the master, remembers must never name another worker. */
void shared_begin(struct shared *shared, uint32_t half, uint32_t serial);
/* Returns the next master process's first serial: the greatest of all slots and noted ones. */
uint32_t shared_serial(const struct shared *shared);
/* Notes a serial used by a second master process. */
void shared_note_serial(struct shared *shared, uint32_t serial);

/* Returns page i of this half, with or without a worker, for any process to read as input. */
static inline struct slot *shared_slot_at(const struct shared *shared, uint32_t i)
{
    assert(i < SLOT_MAX);
    return (struct slot *)(void *)((char *)shared->common + (1 + i) * shared->page);
}

/* Returns the slot's page in this half. */
static inline struct slot *shared_slot(struct shared *shared, struct slot_id id)
{
    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    return shared_slot_at(shared, id.slot % SLOT_MAX);
}

/* Sums the counters of the living workers and the dead. */
void shared_totals(struct shared *shared, uint64_t totals[COUNTERS]);
/* Notes the chain of a connection, not 0, by a key known to both ends, for readers of the tag. */
void shared_put_chain(
    struct chains *chains, uint64_t key, uint16_t tag, uint32_t chain, uint64_t now_ms);
/* Returns and forgets the chain of a connection; 0: unknown. */
uint32_t shared_take_chain(struct chains *chains, uint64_t key, uint16_t tag, uint64_t now_ms);
/* Asserts invariants of memory without writing workers: in tests, and without a master. */
void shared_check(struct shared *shared);
