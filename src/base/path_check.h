/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out what would be in the way of a file that a start opens or makes, as far as this user can
 * know. Asks the kernel alone (stat, faccessat), with the effective user: nothing is opened or
 * changed. What it does not see may still fail. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Uses that a start makes of a path. */
enum path_use {
    PATH_LOG,       /* opens the file for appending, or makes it (os/log_file.h) */
    PATH_PID,       /* makes it and its lock anew (process/pidfile.h) */
    PATH_CONTROL,   /* makes a socket aside, and renames it */
    PATH_LISTEN,    /* makes a socket, or takes one over */
    PATH_DIRECTORY, /* goes there */
};

struct path_fault {
    bool rights; /* a question of rights: another user may have them */
    char text[2 * PATH_MAX];
};

/* Returns whether nothing is known to be in the way; else *fault says what. The path is
 * absolute. */
bool path_check(enum path_use use, const char *path, struct path_fault *fault);

/* Whether both absolute paths name one file, however they are spelled; it may be missing yet. */
bool path_is_same(const char *a, const char *b);
