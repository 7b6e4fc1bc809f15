/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits for tests: in memory that children share, used as the masters' workers do. */
#pragma once

#include "shm/limit_checks.h"
#include "shm/memory.h"
#include "support/test.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SECOND UINT64_C(1000000000)

/* Notes that the worker of a slot lives, as the master does. */
static inline void limit_born(void *memory, const struct shm_limit_shape *shape, struct slot_id id)
{
    shm_limit_kind.slot_acquired(memory, shape, id);
}

static inline void limit_died(void *memory, const struct shm_limit_shape *shape, struct slot_id id)
{
    shm_limit_kind.slot_released(memory, shape, id);
}

static inline void *limit_memory(const struct shm_limit_shape *shape)
{
    void *memory = shared_memory(shm_limit_kind.size(shape));

    shm_limit_kind.init(memory, shape);
    return memory;
}

static inline void limit_unmap(void *memory, const struct shm_limit_shape *shape)
{
    ck_assert_int_eq(munmap(memory, shm_limit_kind.size(shape)), 0);
}

/* Makes a handle of a living worker. */
static inline struct shm_limit *limit_open(
    void *memory, const struct shm_limit_shape *shape, uint32_t slot, uint32_t serial)
{
    struct shm_limit *limit = malloc(sizeof(*limit));
    struct slot_id id = { .slot = slot, .serial = serial };

    ck_assert_ptr_nonnull(limit);
    limit_born(memory, shape, id);
    shm_limit_open(limit, memory, shape, id);
    return limit;
}

static inline void limit_close(struct shm_limit **limit)
{
    shm_limit_close(*limit);
    free(*limit);
    *limit = NULL;
}
