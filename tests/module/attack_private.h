/* SPDX-License-Identifier: BSD-2-Clause */
/* A running attack, for the files of module/attack.h: random numbers, and findings. */
#pragma once

#include "module/attack.h"

#include <stdbool.h>
#include <stddef.h>

#define ATTACK_MAPPINGS_MAX 128
#define ATTACK_DESCRIPTORS_MAX 128
#define ATTACK_DESCRIPTOR_END 1024
#define ATTACK_RUN_MOST 256

struct attack_mapping {
    char *p;
    size_t n;
};

struct attack {
    uint64_t state;
    struct attack_mapping mappings[ATTACK_MAPPINGS_MAX];
    unsigned mapping_n;
    int fds[ATTACK_DESCRIPTORS_MAX];
    unsigned fd_n;
    int own; /* the attacker's own connection, or -1 */
    struct attack_reach reach;
};

/* Random numbers (splitmix64): any; below n; n bytes. */
uint64_t attack_draw(struct attack *attack);
unsigned attack_draw_below(struct attack *attack, size_t n);
void attack_draw_bytes(struct attack *attack, void *to, size_t n);

void attack_add_descriptor(struct attack *attack, int fd);

/* Memory (attack_memory.c) */

/* Finds what is shared in /proc/self/maps. */
void attack_find_mappings(struct attack *attack);
/* Whether the descriptor is one of memory. */
bool attack_is_memory(int fd);
/* Maps memory through the descriptor, or through a new descriptor opened for writing. */
void attack_map_descriptor(struct attack *attack, int fd);
/* Writes once, at random, into a random mapping. */
void attack_write_memory(struct attack *attack);
