/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols' watched descriptors on the worker's loop (fb_watch_fd()). Finds descriptors closed
 * while watched; never reads, writes or closes descriptors. A descriptor has at most a single
 * watch, and a watch has a source until the descriptor is found closed. */
#pragma once

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <sys/types.h>

struct fb_watch;
struct fb_worker;
struct source;
struct worker;

typedef void watch_ready(
    struct fb_worker *handle, struct fb_watch *watch, unsigned events, void *arg);

struct fb_watch {
    unsigned kind;
    int fd;
    RB_ENTRY(fb_watch) node;
    LIST_ENTRY(fb_watch) link;
    struct fb_worker *handle; /* the protocol that watches */
    struct source *source;    /* NULL: the descriptor was closed, as logged */
    watch_ready *ready;
    void *arg;
    dev_t device; /* the descriptor's when it was watched first */
    ino_t inode;
};

RB_HEAD(watches_tree, fb_watch);

struct watches {
    struct watches_tree tree; /* by descriptor: those that have a source */
    LIST_HEAD(, fb_watch) list;
    unsigned n;
};

/* Do what fb_watch_fd(), fb_watch_set() and fb_unwatch() say. */
struct fb_watch *watches_add(
    struct fb_worker *handle, int fd, unsigned events, watch_ready *ready, void *arg);
int watches_set(struct fb_watch *watch, unsigned events);
void watches_remove(struct fb_watch *watch);
struct fb_watch *watches_find(struct worker *worker, int fd);
/* Removes the watches of a protocol, after worker_stop. */
void watches_remove_all(struct fb_worker *handle);
