/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree of files that a test puts in the place of the system's. */
#pragma once

/* A mount table's line of cgroup v2. */
#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

/* Writes a file below root, with the directories on the way. */
void file_tree_write(const char *root, const char *name, const char *text);

#define FILE_TREE_FILES 6

/* The files of one process's control groups. */
struct file_tree_groups {
    const char *cgroup, *mounts; /* /proc/self/cgroup and mountinfo; NULL: not there */
    struct {
        const char *name, *text;
    } files[FILE_TREE_FILES]; /* fewer end with one without a name */
};

/* Writes them below a new root, "parent/number". */
void file_tree_make_root(
    char root[64], const char *parent, int number, const struct file_tree_groups *groups);
