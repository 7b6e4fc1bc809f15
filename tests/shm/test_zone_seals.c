/* SPDX-License-Identifier: BSD-2-Clause */
/* Seals of a zone's memory: the size is fixed, and no process with the memory can add a seal. Also
 * the parts writable through a worker's mapping. */
#include "base/compiler.h"
#include "shm/declared.h"
#include "shm/map.h"
#include "shm/metrics.h"
#include "upstream/addresses.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(memory_can_be_neither_resized_nor_sealed)
{
    const struct shm_map_shape shape = { 100, 16, 8, 0 };
    struct arena *arena = arena_create();
    struct zone *zone;
    struct zones zones;
    struct log log = { 0 };
    struct stat st;

    zones_init(&zones);
    log_init(&log, NULL, 0);
    zone = zone_declare(&zones, arena, &shm_map_kind, "sessions", 1, &shape);
    ck_assert_int_eq(zones_open(&zones, NULL, &log), 0);
    ck_assert_int_eq(ftruncate(zone->segment.fd, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(zone->segment.fd, (off_t)zone->size + 1), -1);
    ck_assert_int_eq(fcntl(zone->segment.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fstat(zone->segment.fd, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)zone->size);
    zones_close(&zones);
    arena_destroy(&arena);
}
END_TEST

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Memory with a changeable size, or without write access, is not taken. */
static const struct {
    int seals;
    bool taken;
} given_seals[] = {
    { 0, true }, /* they are added */
    { F_SEAL_GROW, true },
    { SIZE_SEALS, true },
    { F_SEAL_SEAL, false },
    { F_SEAL_SHRINK | F_SEAL_SEAL, false },
    { F_SEAL_WRITE, false },
    { SIZE_SEALS | F_SEAL_FUTURE_WRITE, false },
};

START_TEST(memory_is_sealed_when_it_is_adopted)
{
    int fd = memfd_create("given", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t size = 3 * segment_page();
    struct zone_header header = { ZONE_MAGIC, 1, size, "map", "m" };
    struct arena *arena = arena_create();
    struct zones given;

    zones_init(&given);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, given_seals[_i].seals), 0);
    ck_assert_int_eq(zones_adopt(&given, arena, fd), given_seals[_i].taken ? 0 : -1);
    if (given_seals[_i].taken)
        ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & SIZE_SEALS, SIZE_SEALS);
    else
        close(fd);
    zones_close(&given);
    arena_destroy(&arena);
}
END_TEST

/* Exits with 0 if everything is as it must be in a worker of slot 1. */
static _Noreturn void try_to_write(struct zones *zones, struct zone *zone, const uint8_t *before)
{
    struct slot_id id = { 1, 1 };
    struct log log = { 0 };
    int fd = zone->segment.fd;
    unsigned char in_core;
    size_t page = segment_page();
    struct segment_part part = shm_metrics_kind.writable(zone->shape, id.slot);
    char *base;

    log_init(&log, NULL, 0);
    if (mincore((void *)(uintptr_t)before, page, &in_core) == 0 || errno != ENOMEM)
        _exit(1); /* the mapping of the parent */
    if (zones_enter(zones, id, &log) == -1 || zone->segment.fd != -1 || fcntl(fd, F_GETFD) != -1)
        _exit(2);
    base = zone->segment.base;
    part.offset += page;
    base[part.offset] = 1;
    for (size_t at = 0; at < zone->size; at += page) {
        bool own = at >= part.offset && at < part.offset + part.size;

        if (!own && (mprotect(base + at, page, PROT_READ | PROT_WRITE) == 0 || errno != EACCES))
            _exit(3);
    }
    _exit(0);
}

/* A captured worker cannot change the address of another worker's connects: exits with 0 if neither
 * a write nor a second mapping is possible. */
static _Noreturn void try_to_change_addresses(struct zones *zones, struct zone *zone)
{
    struct log log = { 0 };
    int fd = zone->segment.fd;

    log_init(&log, NULL, 0);
    if (zones_enter(zones, (struct slot_id) { 1, 1 }, &log) == -1 || fcntl(fd, F_GETFD) != -1)
        _exit(1);
    if (mprotect(zone->segment.base, zone->size, PROT_READ | PROT_WRITE) == 0 || errno != EACCES)
        _exit(2);
    *(volatile char *)zone_memory(zone) = 1; /* SIGSEGV */
    _exit(3);
}

START_TEST(a_worker_cannot_change_known_addresses)
{
    struct declared declared;
    struct zone *zone;
    int status;
    pid_t pid;

    declared_start(&declared);
    zone = addresses_declare(&declared.zones, declared.arena);
    ck_assert_ptr_nonnull(zone);
    ck_assert_int_eq(zones_open(&declared.zones, NULL, &declared.log.log), 0);
    pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        try_to_change_addresses(&declared.zones, zone);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(
        WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status %x", (unsigned)status);
    declared_stop(&declared);
}
END_TEST

START_TEST(a_worker_writes_its_own_row)
{
    static const uint8_t kinds[] = { SHM_COUNTER };
    static const struct shm_metrics_shape shape = { 1, kinds };
    struct arena *arena = arena_create();
    struct log log = { 0 };
    struct zones zones;
    struct zone *zone;
    int status;
    pid_t pid;

    zones_init(&zones);
    log_init(&log, NULL, 0);
    zone = zone_declare(&zones, arena, &shm_metrics_kind, "numbers", 1, &shape);
    ck_assert_int_eq(zones_open(&zones, NULL, &log), 0);
    pid = fork();
    if (pid == 0)
        try_to_write(&zones, zone, zone->segment.base);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(shm_metrics_row(zone_memory(zone), &shape, 1)[0], 1);
    zones_close(&zones);
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, memory_can_be_neither_resized_nor_sealed);
    tcase_add_loop_test(tcase, memory_is_sealed_when_it_is_adopted, 0, (int)countof(given_seals));
    tcase_add_test(tcase, a_worker_writes_its_own_row);
    tcase_add_test(tcase, a_worker_cannot_change_known_addresses);
}

TEST_MAIN("zone_seals", add_tests)
