/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols in shared objects: module.c loads an object for one configuration, check.c checks the
 * descriptor, before which only a module's constructors run. */
#pragma once

#include "base/arena.h"
#include "base/check.h"
#include "base/compiler.h"
#include "module/relink.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>
#include <sys/types.h>

/* Room for the error text about a module, including the NUL. */
#define MODULE_TEXT 512

/* The checked mode: the SDK's calls with their checking wrappers, and the function that wraps a
 * descriptor of module_copy(); NULL without memory. By the loader's reference to the list the
 * linker takes all calls into a program. */
extern const struct relink_call checked_calls[];
extern const fb_protocol *(*const checked_protocol_wrapper)(
    struct arena *arena, const fb_protocol *);
/* The rights that protocols can ask for. */
#define MODULE_NEEDS                                                                               \
    (FB_NEEDS_EXEC | FB_NEEDS_CODE | FB_NEEDS_NAMES | FB_NEEDS_UDP | FB_NEEDS_LISTEN |             \
        FB_NEEDS_CONNECT | FB_NEEDS_BIND | FB_NEEDS_RESOLVER | FB_NEEDS_TRANSPARENT |              \
        FB_NEEDS_TLVS | FB_NEEDS_CERTIFICATES | FB_NEEDS_TLS)

#define MODULE_KIND KIND('M', 'O', 'D', 'L')

struct module {
    unsigned kind; /* MODULE_KIND while it is loaded */
    SLIST_ENTRY(module) link;
    const char *path;
    dev_t device; /* device of the loaded file, */
    ino_t inode;  /* inode; the path may name a new file now */
    void *handle; /* of dlopen() */
    int memory;   /* descriptor of the copy that was loaded, kept open for debuggers, or -1 */
    const fb_protocol *original; /* the module's own */
    const fb_protocol *protocol; /* a copy, see module_copy() */
};

/* The modules of one configuration; the last loaded first. */
SLIST_HEAD(modules, module);
/* Loads a file and adds the module to the list; code and variables are this load's alone. NULL with
 * the reason in `text`, to follow the name of the module; errno is 0 unless opening failed. */
struct module *module_load(
    struct modules *modules, struct arena *arena, const char *path, char text[MODULE_TEXT]);
/* Begins to check a copied protocol, and the object around `original`. Returns the replacement of
 * the copy; NULL without memory; the copy itself: the object cannot be checked. */
const fb_protocol *module_debug(
    struct arena *arena, const fb_protocol *copy, const fb_protocol *original);
/* Unloads the first module of the list. Nothing may use its protocol any more. */
void module_unload(struct modules *modules);
/* Whether the text is a name of protocols: 1 to 31 letters, digits and "_". */
bool module_is_name(const char *text);
/* Writes a text about a module, and returns it. */
const char *module_text(char text[MODULE_TEXT], const char *format, ...) PRINTF_FORMAT(2, 3);
/* Checks the descriptor of a protocol of any version. Returns NULL, or `text` with the reason. */
const char *module_check(const fb_protocol *protocol, char text[MODULE_TEXT]);
/* Copies a checked protocol into this version's structs: missing fields are zero, later ones are
 * left out; names, tables of names and functions stay the original's. NULL without memory. */
const fb_protocol *module_copy(struct arena *arena, const fb_protocol *protocol);
