/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of metrics as another process hands it over, damaged in bytes that the master reads: a
 * byte for its seals, one for its size, then edits of an offset (two bytes) and a byte each. */
#include "fuzz/fuzz.h"

#include "base/compiler.h"
#include "shm/metrics.h"
#include "shm/zone.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EDIT 3    /* bytes of an edit */
#define EDITS 64  /* at most */
#define SLOTS 3u  /* slots of the other half, whose rows are edited too */
#define HEADER 96 /* bytes of the header of metrics that edits may reach */

static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE };
static const struct shm_metrics_shape shape = { countof(kinds), kinds };

static const int seals[] = {
    0,
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
    F_SEAL_SHRINK | F_SEAL_GROW,
    F_SEAL_SEAL,
    F_SEAL_WRITE,
    F_SEAL_SHRINK | F_SEAL_SEAL,
};

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Writes what a zone of metrics begins with. */
static void write_valid(int fd, size_t size)
{
    struct zone_header header = {
        .magic = ZONE_MAGIC,
        .version = 1,
        .size = size,
        .kind = "metrics",
        .name = "n",
    };
    size_t page = segment_page();
    void *metrics = aligned_alloc(page, page);

    require(metrics != NULL, "no memory");
    memset(metrics, 0, page);
    shm_metrics_init(metrics, &shape);
    require(pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header), "header");
    require(pwrite(fd, metrics, HEADER, (off_t)page) == HEADER, "metrics");
    free(metrics);
}

/* The place of an edit: in the header, in that of the metrics, or in a row. */
static off_t place_of(const uint8_t *edit)
{
    size_t page = segment_page(), at = (size_t)edit[0] << 8 | edit[1];

    if (at < sizeof(struct zone_header))
        return (off_t)at;
    if (at < 0x1000)
        return (off_t)(page + at % HEADER);
    return (off_t)(2 * page + (at >> 4) % 6 * page + at % 16);
}

static int make_memory(const uint8_t *data, size_t size, size_t whole)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t n = whole;

    require(fd != -1, "memfd_create");
    if (data[1] != 0)
        n = data[1] % 16 * segment_page() + (data[1] >> 4);
    require(ftruncate(fd, (off_t)whole) == 0, "ftruncate");
    write_valid(fd, whole);
    for (size_t i = 0; i < EDITS && (i + 1) * EDIT + 2 <= size; i++)
        require(pwrite(fd, &data[2 + i * EDIT + 2], 1, place_of(&data[2 + i * EDIT])) == 1, "edit");
    require(ftruncate(fd, (off_t)n) == 0, "ftruncate");
    fcntl(fd, F_ADD_SEALS, seals[data[0] % countof(seals)]);
    return fd;
}

/* Does what masters and workers do. */
static void use_zone(struct zones *zones, struct zone *zone)
{
    struct shm_metrics *metrics = zone_memory(zone);
    int64_t totals[countof(kinds)];

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct slot_id id = { .slot = SLOT_MAX + slot, .serial = 1 };

        zones_slot_acquired(zones, id);
        shm_metric_add(&shm_metrics_row(metrics, &shape, id.slot)[0], 1);
        shm_metrics_totals(metrics, &shape, totals);
        shm_metrics_total(metrics, &shape, 1);
        zones_slot_released(zones, id);
        zones_slot_released(zones, (struct slot_id) { .slot = slot });
    }
    shm_metrics_totals(metrics, &shape, totals);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zones given, own;
    struct arena *arena = arena_create();
    struct log log = { 0 };
    struct zone *zone;
    int fd;

    require(arena != NULL, "no memory");
    zones_init(&given);
    zones_init(&own);
    log_init(&log, NULL, 0);
    zone = zone_declare(&own, arena, &shm_metrics_kind, "n", 1, &shape);
    require(zone != NULL, "no zone");
    if (size >= 2) {
        fd = make_memory(data, size, zone->size);
        if (zones_adopt(&given, arena, fd) == -1)
            close(fd);
        require(zones_open(&own, &given, &log) == 0, "a zone of its own is not opened");
        zones_close(&given);
        use_zone(&own, zone);
        zones_close(&own);
    }
    arena_destroy(&arena);
    return 0;
}
