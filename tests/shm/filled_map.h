/* SPDX-License-Identifier: BSD-2-Clause */
/* A map with keys; the value of a key is the key itself; the test defines `shape` and KEYS. */
#pragma once

static enum shm_map_status set_key(struct shm_map *map, uint32_t key)
{
    return shm_map_set(map, &key, sizeof(key), 1, &key, sizeof(key), 0, NULL);
}

static enum shm_map_status get_key(struct shm_map *map, uint32_t key)
{
    char value[32];
    struct shm_map_item item = { .value = value, .room = sizeof(value) };

    return shm_map_get(map, &key, sizeof(key), 1, &item);
}

static struct shm_map *filled_map(void)
{
    struct shm_map *map = map_create(&shape);

    for (uint32_t key = 0; key < KEYS; key++)
        test_require(set_key(map, key) == SHM_MAP_OK);
    ck_assert_uint_gt(map->table.shard_n, 1);
    return map;
}
