/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory shared by workers, with pages overwritten by a worker: steps of three bytes: a slot, an
 * event, and a seed of the worker's writes. */
#include "fuzz/input.h"

#include "shm/shared.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 8u
#define STEP 3
#define HALF 1u

struct world {
    struct shared *shared;
    struct slot_id ids[SLOTS]; /* serial 0: free */
    uint32_t serials[SLOTS];
};

static void acquire_slot(struct world *world)
{
    struct slot_id id;
    uint32_t i;

    require(slot_acquire(world->shared, &id), "no slot is free");
    i = id.slot - HALF * SLOT_MAX;
    require(i < SLOTS && world->ids[i].serial == 0, "a slot was given twice");
    require(id.serial == world->serials[i] + 1, "a serial that is not the next");
    world->ids[i] = id;
    world->serials[i] = id.serial;
}

/* A worker writes to the own page, and to the shared page. */
static void overwrite(struct world *world, struct slot_id id, uint8_t byte)
{
    uint64_t *slot = (void *)shared_slot(world->shared, id);
    uint64_t *common = (void *)world->shared->common;

    for (size_t i = 0; i < sizeof(struct slot) / sizeof(*slot); i++)
        slot[i] = (byte * 0x9e3779b97f4a7c15u) ^ ((uint64_t)byte << (i % 57));
    common[0] = byte % 2 == 0 ? (uint64_t)id.serial << 32 | id.slot : slot[1];
}

static void step(struct world *world, const uint8_t *data)
{
    struct slot_id id = world->ids[data[0] % SLOTS];
    struct histogram_summary times;
    uint64_t totals[COUNTERS];

    if (id.serial == 0) {
        acquire_slot(world);
        return;
    }
    if (data[1] % 4 == 0) {
        slot_release(world->shared, id);
        world->ids[data[0] % SLOTS].serial = 0;
    } else if (data[1] % 4 == 1) {
        heartbeat_callback(heartbeat_now(&shared_slot(world->shared, id)->heartbeat));
        heartbeat_protocol(heartbeat_now(&shared_slot(world->shared, id)->heartbeat));
        heartbeat_summarize(&shared_slot(world->shared, id)->heartbeat.turns, &times);
        require(times.n <= INT64_MAX && times.p50 <= times.max, "a summary is out of bounds");
    } else {
        overwrite(world, id, data[2]);
    }
    shared_totals(world->shared, totals);
    require(world->shared->half == HALF, "the half has changed");
    require(world->shared->published->slot_n <= SLOTS, "slots that nobody has used");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = { .shared = shared_create(true) };

    require(world.shared != NULL, "no memory");
    shared_begin(world.shared, HALF, 0);
    for (size_t i = 0; i + STEP <= size; i += STEP)
        step(&world, data + i);
    for (uint32_t i = 0; i < SLOTS; i++)
        require(shared_serial(world.shared) >= world.serials[i], "a serial that another may get");
    shared_destroy(&world.shared);
    return 0;
}
