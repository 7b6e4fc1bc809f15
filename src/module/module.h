/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols in shared objects: loading one for one configuration, and what a descriptor has to be
 * like. */
#pragma once

#include "base/arena.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>
#include <sys/types.h>

/* Room for what is wrong with a module. */
#define FB_MODULE_TEXT 512

/* The SDK's calls, which modules are bound to; NULL behind the last. They are listed in sdk/link.c, and
 * the loader refers to them, so that each program that loads modules has them all. */
extern void (*const sdk_calls[])(void);

struct fb_module {
    SLIST_ENTRY(fb_module) link;
    const char *path;
    dev_t device; /* of the file that was loaded, */
    ino_t inode;  /* which may not be there any more */
    void *handle;
    int memory;                  /* that it was loaded from: debuggers read it */
    const fb_protocol *protocol; /* a copy, see fb_module_copy() */
};

/* Those of one configuration; the last loaded first. */
SLIST_HEAD(fb_modules, fb_module);

/* Loads a file and adds it to the list. The code and its variables are this load's alone: another one
 * of the same path, for another configuration, has its own. NULL with what is wrong in `text`, which
 * goes behind the module's name; errno is not 0 where the file could not be opened. */
struct fb_module *fb_module_load(struct fb_modules *modules, struct fb_arena *arena,
    const char *path, char text[FB_MODULE_TEXT]);
/* Unloads the first of the list, which nothing uses any more. */
void fb_module_unload(struct fb_modules *modules);

/* Whether this daemon can work with a protocol, which may be of another version's make. NULL, or what
 * is wrong with it, which is `text`. */
const char *fb_module_check(const fb_protocol *protocol, char text[FB_MODULE_TEXT]);
/* A protocol that was checked, as this version knows it: what its version lacked is zero, what only
 * later ones have is left out. Names and functions stay the original's. NULL without memory. */
const fb_protocol *fb_module_copy(struct fb_arena *arena, const fb_protocol *protocol);
