/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells protocols of the changes of maps, on the loop, a part a turn, and never within a call. A
 * wish is renewed before the log is read, so that later changes ring again. */
#include "worker/map_watch.h"

#include "settings/calls.h"
#include "worker/worker.h"

#include <assert.h>
#include <string.h>

#define LOOK_MS 200
#define CHANGES_A_TURN 256
/* Parts of a map, among 64, swept in one look. */
#define SWEEPS_A_LOOK 16

static_assert((int)FB_MAP_WAS_SET == (int)SHM_MAP_WAS_SET, "changes are the log's");
static_assert((int)FB_MAP_WAS_DELETED == (int)SHM_MAP_WAS_DELETED, "changes are the log's");
static_assert((int)FB_MAP_LOST == (int)SHM_MAP_LOST, "changes are the log's");
static_assert((int)FB_MAP_WAS_EXPIRED == (int)SHM_MAP_WAS_EXPIRED, "changes are the log's");

struct map_watch {
    STAILQ_ENTRY(map_watch) link;
    struct fb_worker *handle;
    struct fb_map *map; /* NULL: ended, and removed by the next look */
    struct shm_map_reader reader;
    uint32_t swept;       /* the part to be swept next */
    unsigned char room[]; /* for a key */
};

void map_watch_look(struct worker *worker)
{
    struct source *source = worker->map_watches.source;

    if (source != NULL)
        loop_post(&worker->stream.net.loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

/* Tells the changes in the log; false when the turn's part is used up. */
static bool tell_changes(struct worker *worker, struct map_watch *watch)
{
    struct fb_worker *handle = watch->handle;
    struct shm_map_changed what;

    if (watch->map != NULL)
        shm_map_log_wish(watch->map->handle, worker->heritage->slot.slot);
    while (watch->map != NULL && worker->map_watches.budget > 0) {
        if (!shm_map_log_next(watch->map->handle, &watch->reader, watch->room, &what))
            return true;
        worker->map_watches.budget--;
        WORKER_CALL(handle, CALLBACK_MAP_CHANGED,
            handle->protocol->worker_ops->map_changed(handle, handle->state, watch->map,
                (fb_bytes) { what.key, what.key_n }, (fb_map_change)what.what));
    }
    return watch->map == NULL;
}

static void remove_map_watch(struct worker *worker, struct map_watch *watch)
{
    STAILQ_REMOVE(&worker->map_watches.list, watch, map_watch, link);
    memory_release(worker->stream.net.memory, watch);
}

static void run_look(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct map_watches *watches = &worker->map_watches;
    struct map_watch *watch, *next;
    bool all = true;

    assert(source == watches->source);
    watches->budget = CHANGES_A_TURN;
    STAILQ_FOREACH (watch, &watches->list, link)
        all = tell_changes(worker, watch) && all;
    STAILQ_FOREACH_SAFE (watch, &watches->list, link, next)
        if (watch->map == NULL)
            remove_map_watch(worker, watch);
    if (STAILQ_EMPTY(&watches->list))
        timer_del(loop, &watches->timer);
    if (!all)
        map_watch_look(worker);
    net_flush(&worker->stream.net);
}

/* Looks for changes that no bell tells of; removes and logs expired keys, while there is room. */
static void map_look_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    struct map_watch *watch;

    assert(timer == &worker->map_watches.timer);
    STAILQ_FOREACH (watch, &worker->map_watches.list, link) {
        struct fb_map *map = watch->map;
        uint32_t logged = map != NULL ? map->handle->mended.logged : 0;

        if (map == NULL)
            continue;
        shm_map_log_audit(map->handle, &watch->reader);
        shm_map_sweep_some(
            map->handle, (uint64_t)loop->clock.wall_ms, &watch->swept, SWEEPS_A_LOOK);
        if (map->handle->mended.logged == logged)
            continue;
        map->said.logged = map->handle->mended.logged;
        map_watch_ring(worker, map);
    }
    timer_set(loop, timer, LOOK_MS);
    map_watch_look(worker);
}

static int begin_map_watch(struct worker *worker, struct fb_worker *handle, struct fb_map *map)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_look } };
    struct map_watches *watches = &worker->map_watches;
    struct loop *loop = &worker->stream.net.loop;
    struct map_watch *watch =
        memory_alloc(worker->stream.net.memory, sizeof(*watch) + map->shape.key_max);

    if (watch != NULL && watches->source == NULL)
        watches->source = loop_make_own(loop, QUEUE_NORMAL, &ops);
    if (watch == NULL || watches->source == NULL) {
        memory_release(worker->stream.net.memory, watch);
        return -1;
    }
    *watch = (struct map_watch) { .handle = handle, .map = map };
    shm_map_log_wish(map->handle, worker->heritage->slot.slot);
    shm_map_log_begin(map->handle, &watch->reader);
    if (STAILQ_EMPTY(&watches->list))
        STAILQ_INIT(&watches->list);
    STAILQ_INSERT_TAIL(&watches->list, watch, link);
    watches->timer.expired = map_look_expired;
    timer_set(loop, &watches->timer, LOOK_MS);
    return 0;
}

int map_watch_set(struct fb_worker *handle, struct fb_map *map, bool on)
{
    struct worker *worker = worker_of(handle);
    struct map_watch *watch;

    if (map->handle->log == NULL || !WORKER_HAS(handle, map_changed) ||
        worker->phase >= WORKER_ENDING)
        return -1;
    STAILQ_FOREACH (watch, &worker->map_watches.list, link)
        if (watch->handle == handle && watch->map == map)
            break;
    if (watch == NULL)
        return on ? begin_map_watch(worker, handle, map) : 0;
    if (!on) {
        watch->map = NULL;
        map_watch_look(worker);
    }
    return 0;
}

/* Wakes a worker of this generation; the rest look in time. */
static void wake_slot(struct worker *worker, uint32_t slot)
{
    const struct heritage *heritage = worker->heritage;
    const struct shared *shared = heritage->shared;
    uint32_t place;

    if (slot == heritage->slot.slot)
        map_watch_look(worker);
    if (slot == heritage->slot.slot || heritage->bells == NULL ||
        slot / SLOT_MAX != heritage->slot.slot / SLOT_MAX)
        return;
    place = atomic_load_explicit(
        &shared->published->slots[slot % SLOT_MAX].place, memory_order_relaxed);
    if (place != PLACE_NONE && place >> PLACE_NUMBER_BITS == heritage->place >> PLACE_NUMBER_BITS &&
        (place & (SLOT_MAX - 1)) < heritage->bells->n)
        bells_ring(heritage->bells, place & (SLOT_MAX - 1));
}

void map_watch_ring(struct worker *worker, struct fb_map *map)
{
    for (uint32_t i = 0; i < SLOT_HALVES * SLOT_MAX / 64; i++) {
        uint64_t wishes = shm_map_log_take_wishes(map->handle, i);

        for (; wishes != 0; wishes &= wishes - 1)
            wake_slot(worker, 64 * i + (uint32_t)__builtin_ctzll(wishes));
    }
}

void map_watch_done(struct worker *worker)
{
    struct map_watches *watches = &worker->map_watches;
    struct loop *loop = &worker->stream.net.loop;

    while (!STAILQ_EMPTY(&watches->list))
        remove_map_watch(worker, STAILQ_FIRST(&watches->list));
    timer_del(loop, &watches->timer);
    if (watches->source != NULL)
        source_close(loop, watches->source, false);
    watches->source = NULL;
}
