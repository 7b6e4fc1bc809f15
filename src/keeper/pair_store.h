/* SPDX-License-Identifier: BSD-2-Clause */
/* The certificates and keys that were found good, as bytes, in memory that the keepers of a
 * generation share: one keeper reads files for all, and a pair is kept while its files are bad.
 *
 * Responsible for the place of each pair's record, and for readers that never see half a record,
 * also of a writer that was killed. Only one process writes at a time. The master makes the memory
 * and never maps it, and a worker has neither mapping nor descriptor. Knows nothing of a record's
 * content. A full store keeps no record of a pair, which is then read when needed. */
#pragma once

#include "tls/engine.h"

#include <sys/uio.h>

/* Bytes of the name by which a pair is found again after a reload. */
#define PAIR_NAME 16

struct pair_slot;

struct pair_store {
    struct tls_memory memory;
    uint32_t pair_n;
};

/* Makes zeroed memory for so many pairs, of a sealed size; returns the descriptor, -1 with errno.
 * Untouched pages cost nothing. */
int pair_memory_create(uint32_t pair_n);
/* Maps the memory, for the life of the process; -1 with errno. */
int pair_memory_map(struct tls_memory *memory, int fd);
/* Maps memory of a process's own; -1 with errno. */
int pair_memory_reserve(struct tls_memory *memory, uint32_t pair_n);
/* Unmaps the memory, if there is any. */
void pair_memory_release(struct tls_memory *memory);

/* Opens the store in memory that has room for the pairs' slots; -1: it has not. */
int pair_store_open(struct pair_store *store, struct tls_memory memory, uint32_t pair_n);
/* Returns a number that changes with the pair's record; 0: no record was ever put. */
uint32_t pair_store_version(const struct pair_store *store, uint32_t number);
/* Returns a copy of the pair's record for the caller to wipe and free, its bytes and version; NULL:
 * there is no record, or no memory. */
uint8_t *pair_store_get(
    const struct pair_store *store, uint32_t number, size_t *n, uint32_t *version);
/* Copies the beginning of the pair's record, if it has as many bytes. */
bool pair_store_peek(const struct pair_store *store, uint32_t number, void *to, size_t n);
/* Returns the bytes of the memory that were ever written. */
size_t pair_store_used(const struct pair_store *store);
/* For the writer: replaces the pair's record; false: there is no room, and now no record. */
bool pair_store_put(
    struct pair_store *store, uint32_t number, const struct iovec *pieces, unsigned n);
/* Names a pair, before its first record. */
void pair_store_name(struct pair_store *store, uint32_t number, const uint8_t name[PAIR_NAME]);
/* Takes over the records of pairs of the same names, where there are none yet, from the memory of a
 * store of another generation. */
void pair_store_adopt(struct pair_store *store, const struct tls_memory *former);
