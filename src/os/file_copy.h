/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy of a module's file that is loaded: in memory (os/linux/file_copy.c), or in a private file
 * that has a name only until it is loaded (os/posix/file_copy.c). Nobody changes it after
 * file_copy_finish(). */
#pragma once

#define FILE_COPY_PATH 1024

struct file_copy {
    int fd;                    /* -1: there is no copy */
    char path[FILE_COPY_PATH]; /* for dlopen(), once it is finished */
};

/* Creates an empty copy of the file with this name, open for writing; -1 with errno. */
int file_copy_create(struct file_copy *copy, const char *name);
/* Makes the copy unchangeable, and gives it a path that no loaded object has. -1 with errno, EMFILE
 * where too many modules are loaded. */
int file_copy_finish(struct file_copy *copy);
/* The copy is loaded: gives up what only the load has needed. Returns the descriptor that is to
 * stay open as long as the module is loaded, which is the caller's now; -1: none is. */
int file_copy_keep(struct file_copy *copy);
/* Gives the copy up, if there is one. */
void file_copy_drop(struct file_copy *copy);
