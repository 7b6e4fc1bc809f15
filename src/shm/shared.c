/* SPDX-License-Identifier: BSD-2-Clause */
#include "shm/shared.h"

#include <assert.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOOKS 1000 /* at a fold that does not go on */

static_assert(sizeof(struct fb_slot) == FB_CACHE_LINE, "a slot is a line of its own");
static_assert(offsetof(struct fb_shared, accept_mutex) % FB_CACHE_LINE == 0, "so is the mutex");
static_assert(FB_SLOT_SIDES * FB_SLOT_MAX == 1 << FB_SLOT_BITS, "a slot fits into its bits");
static_assert(offsetof(struct fb_shared, slots) == 2 * FB_CACHE_LINE, "the layout is versioned");

struct fb_shared *fb_shared_create(void)
{
    struct fb_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    shared->magic = FB_SHARED_MAGIC;
    shared->version = FB_SHARED_VERSION;
    return shared;
}

void fb_shared_destroy(struct fb_shared **shared)
{
    if (*shared == NULL)
        return;
    munmap(*shared, sizeof(**shared));
    *shared = NULL;
}

void fb_shared_begin(struct fb_shared *shared, uint32_t side, uint32_t serial)
{
    assert(shared->slot_n == 0 && side < FB_SLOT_SIDES);
    shared->side = side;
    shared->serial = serial;
}

uint32_t fb_shared_serial(const struct fb_shared *shared)
{
    uint32_t greatest = shared->serial;

    for (uint32_t i = 0; i < shared->slot_n; i++)
        if (shared->slots[i].serial > greatest)
            greatest = shared->slots[i].serial;
    return greatest;
}

bool fb_slot_take(struct fb_shared *shared, struct fb_slot_id *id)
{
    for (uint32_t i = 0; i < FB_SLOT_MAX; i++) {
        struct fb_slot *slot = &shared->slots[i];

        if (slot->pid != 0)
            continue;
        if (i >= shared->slot_n) {
            slot->serial = shared->serial;
            shared->slot_n = i + 1;
        }
        slot->serial++;
        if (slot->serial == 0)
            slot->serial = 1;
        slot->heartbeat.now = FB_CALLBACK_NONE;
        slot->pid = (uint32_t)getpid(); /* ours until the worker writes its own */
        *id =
            (struct fb_slot_id) { .slot = shared->side * FB_SLOT_MAX + i, .serial = slot->serial };
        return true;
    }
    return false;
}

bool fb_slot_bury(struct fb_shared *shared, struct fb_slot_id id)
{
    struct fb_slot *slot = fb_shared_slot(shared, id);
    bool held = fb_shm_lock_reclaim(&shared->accept_mutex, id);

    assert(slot->serial == id.serial);
    shared->folds++;
    for (int i = 0; i < FB_COUNTERS; i++) {
        if (i < FB_GAUGES)
            shared->folded.n[i] += slot->counters.n[i];
        slot->counters.n[i] = 0;
    }
    slot->pid = 0;
    shared->folds++;
    return held;
}

static void add_up(struct fb_shared *shared, uint64_t totals[FB_COUNTERS])
{
    for (int i = 0; i < FB_COUNTERS; i++)
        totals[i] = shared->folded.n[i];
    for (uint32_t s = 0; s < shared->slot_n; s++)
        for (int i = 0; i < FB_COUNTERS; i++)
            totals[i] += shared->slots[s].counters.n[i];
}

void fb_shared_totals(struct fb_shared *shared, uint64_t totals[FB_COUNTERS])
{
    uint32_t folds;

    /* a master that dies within a fold leaves the number odd: looks at the same one are bounded; one
     * that only waits for a processor may need ours */
    for (int looks = 0; looks < LOOKS;) {
        folds = shared->folds;
        add_up(shared, totals);
        if (folds != shared->folds) {
            looks = 0;
        } else if (folds % 2 == 0) {
            return;
        } else {
            looks++;
            sched_yield();
        }
    }
}
