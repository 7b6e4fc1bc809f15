/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that a start opens or makes: no two may be the same file, and -t finds obstacles in their
 * way. Opens nothing. */
#pragma once

#include "base/path_check.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

struct apply;
struct conf_word;

struct path_entry {
    STAILQ_ENTRY(path_entry) link;
    /* the next path with the same last name, and the next of these that is no listener's */
    struct path_entry *alike, *other;
    /* In the first path of each name: the node among the names, the last path of the name, and the
     * first path whose `other` is not known. */
    RB_ENTRY(path_entry) node;
    struct path_entry *last, *since;
    const char *name; /* of the directive */
    enum path_use use;
    const char *path;             /* absolute */
    const struct conf_word *word; /* NULL: the path is the default */
};

/* Notes a path; relative ones of sockets are left out. */
void paths_add(struct apply *apply, const char *name, enum path_use use, const char *path,
    const struct conf_word *word);
void paths_add_default(struct apply *apply, const char *name, enum path_use use, const char *path);
/* Reports different paths of one file, and for -t the obstacles to every path. */
void paths_check(struct apply *apply);
