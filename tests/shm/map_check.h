/* SPDX-License-Identifier: BSD-2-Clause */
/* Asserts what holds of a whole map. */
#pragma once

#include "shm/map.h"

/* The caller is the map's only user. */
void map_check(struct shm_map *map);
