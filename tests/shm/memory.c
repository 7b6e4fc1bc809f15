/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of any shape in memory shared by processes, and children using the maps. */
#include "shm/memory.h"

#include "shm/map_private.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

struct shm_map *map_create(const struct shm_map_shape *shape)
{
    void *memory = shared_memory(shm_map_kind.size(shape));
    struct shm_map *map = malloc(sizeof(*map));

    ck_assert_ptr_nonnull(map);
    shm_map_kind.init(memory, shape);
    shm_map_open(map, memory, shape, (struct slot_id) { 0, 1 });
    return map;
}

void map_join(struct shm_map *map, uint32_t slot, uint32_t serial)
{
    shm_map_open(map, map->header, &map->shape, (struct slot_id) { slot, serial });
}

void map_bury(struct shm_map *map, uint32_t slot, uint32_t serial)
{
    shm_map_kind.slot_released(map->header, &map->shape, (struct slot_id) { slot, serial });
}

void map_destroy(struct shm_map **map)
{
    ck_assert_int_eq(munmap((*map)->header, shm_map_kind.size(&(*map)->shape)), 0);
    free(*map);
    *map = NULL;
}

/* Keys that no test uses. */
static size_t room_key(char key[32], uint32_t i)
{
    return (size_t)snprintf(key, 32, "%c%u", 0xff, i);
}

void check_room(struct shm_map *map, uint32_t capacity)
{
    uint32_t before = shm_map_count(map);
    char key[32];

    ck_assert_uint_le(before, capacity);
    for (uint32_t i = 0; i < capacity - before; i++)
        test_require(shm_map_set(map, key, room_key(key, i), 1, NULL, 0, 0, NULL) == SHM_MAP_OK);
    ck_assert_uint_eq(shm_map_count(map), capacity);
    ck_assert_int_eq(
        shm_map_set(map, key, room_key(key, capacity), 1, NULL, 0, 0, NULL), SHM_MAP_FULL);
    for (uint32_t i = 0; i < capacity - before; i++)
        test_require(shm_map_delete(map, key, room_key(key, i), 1) == SHM_MAP_OK);
    ck_assert_uint_eq(shm_map_count(map), before);
}

const char *map_call(struct shm_map *map, const char *text, uint64_t now)
{
    char what = text[0], key = text[1];
    int64_t value = strchr("~#-=", what) != NULL ? 0 : text[2] - '0';
    struct shm_map_item item = { .room = 0 };
    bool expires = value != 0 && text[3] == '!';

    switch (what) {
    case '+':
        shm_map_set(
            map, &key, 1, now, &value, sizeof(value), expires ? MAP_CALL_EXPIRY_MS : 0, NULL);
        break;
    case '?':
        shm_map_get(map, &key, 1, now, &item);
        shm_map_replace(map, &key, 1, now, item.version, &value, sizeof(value), 0, NULL);
        break;
    case '&':
        shm_map_add(map, &key, 1, now, value, NULL);
        break;
    case '<':
        shm_map_append(map, &key, 1, now, &value, sizeof(value), SHM_MAP_KEEP_EXPIRY);
        break;
    case '=':
        shm_map_get(map, &key, 1, now, &item);
        shm_map_remove(map, &key, 1, now, item.version);
        break;
    case '-':
        shm_map_delete(map, &key, 1, now);
        break;
    case '~':
        shm_map_sweep(map, now);
        break;
    case '#':
        shm_map_count(map);
        break;
    }
    return text + (value != 0 ? 3 + expires : what == '-' || what == '=' ? 2 : 1);
}

int kill_child(pid_t pid)
{
    int status;

    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

void wait_for_child(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

pid_t fork_child(void)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}
