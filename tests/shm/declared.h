/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones declared by a test, as by a configuration. */
#pragma once

#include "shm/zone.h"

#include "support/memory_log.h"
#include "support/test.h"

/* A configuration's, with a readable log. */
struct declared {
    struct arena *arena;
    struct zones zones;
    struct memory_log log;
};

static void declared_start(struct declared *declared)
{
    declared->arena = arena_create();
    ck_assert_ptr_nonnull(declared->arena);
    zones_init(&declared->zones);
    memory_log_open(&declared->log, LEVEL_DEBUG);
}

static void declared_stop(struct declared *declared)
{
    zones_close(&declared->zones);
    arena_destroy(&declared->arena);
    memory_log_take(&declared->log);
    memory_log_close(&declared->log);
}
