/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel accounts to a process and all its descendants, from /proc. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define TREE_MAX 256

struct tree {
    unsigned n; /* processes; the first one is the root */
    pid_t pids[TREE_MAX];
    unsigned descriptors[TREE_MAX]; /* open ones, of each */
    uint64_t cpu_ns;                /* processor time that all have used */
    uint64_t pss;                   /* bytes of memory, shared pages in proportion */
};

/* Reads processes and their CPU time; ends the program if the root is not there. */
void tree_read_cpu(struct tree *tree, pid_t root);

/* Reads the whole tree: slow, because it goes through memory maps. */
void tree_read(struct tree *tree, pid_t root);
