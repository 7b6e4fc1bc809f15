/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that protocols have posted to the next turn of the loop (fb_post()).
 *
 * What is posted runs once, on the loop, behind the events of the turn after the one in which it
 * was posted; never within the call. What it posts itself waits for the turn after that. */
#pragma once

#include <bsd/sys/queue.h>
#include <stddef.h>

struct fb_worker;
struct post;
struct source;
struct worker;

struct posts {
    STAILQ_HEAD(, post) list;
    struct source *source; /* the loop's own kind; NULL before the first */
    unsigned n;            /* posted, and not run yet */
};

/* Posts work, of which n bytes are copied, as fb_post() says; -1 when there is no memory. */
int posts_add(struct fb_worker *handle, void (*run)(struct fb_worker *handle, void *work),
    const void *work, size_t n);
/* Frees what has not run, which never will. */
void posts_done(struct worker *worker);
