/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds obstacles to opening or making a file, as far as this user can know. Asks the kernel alone
 * (stat, faccessat), with the effective user: never opens or changes a file. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Uses that a start makes of a path. */
enum path_use {
    PATH_LOG,       /* opens the file for appending, or makes it (os/log_file.h) */
    PATH_PID,       /* makes it and its lock anew (pidfile/pidfile.h) */
    PATH_CONTROL,   /* makes a socket aside, and renames it */
    PATH_LISTEN,    /* makes a socket, or takes one over */
    PATH_DIRECTORY, /* goes there */
};

struct path_fault {
    bool rights; /* a question of rights, maybe held by another user */
    char text[2 * PATH_MAX];
};

/* Returns whether no obstacle is known; else *fault names it. The path is absolute. */
bool path_check(enum path_use use, const char *path, struct path_fault *fault);
/* Whether both paths name one file, perhaps missing, however they are spelled. */
bool path_is_same(const char *a, const char *b);
