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
    uint64_t cpu[TREE_MAX];         /* processor time that each has used, in ns */
    uint64_t cpu_ns;                /* their sum */
    uint64_t pss;                   /* bytes of memory, shared pages in proportion */
};

/* Reads processes and their CPU time; ends the program if the root is not there. */
void tree_read_cpu(struct tree *tree, pid_t root);

/* Reads the whole tree: slow, because it goes through memory maps. */
void tree_read(struct tree *tree, pid_t root);

/* The CPU time of the processes with `title` in their command line. */
uint64_t tree_cpu_of(const struct tree *tree, const char *title);
