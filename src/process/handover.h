/* SPDX-License-Identifier: BSD-2-Clause */
/* What a master process gives the one that it starts from a newer binary: descriptors, and a variable
 * of the environment that says what each of them is. The two may be of different versions. */
#pragma once

#include "base/log.h"
#include "net/inherited.h"
#include "shm/zone.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define FB_HANDOVER "FORKBEARD"

/* One that is written: the variable, and the descriptors that it names. */
struct fb_handover {
    FILE *file; /* NULL: there was no memory */
    char *text; /* "FORKBEARD=...", when it is closed */
    size_t size;
    int *fds;
    unsigned fd_n;
};

/* `link` leads to us, and `lock` is the pid file's; the other's worker slots have the side and begin
 * behind the serial that are given. */
void fb_handover_begin(
    struct fb_handover *handover, int link, int lock, unsigned side, uint32_t serial);
/* A socket that we have opened, in the order of its slots. */
void fb_handover_socket(struct fb_handover *handover, int fd);
/* One of the service manager's. */
void fb_handover_passed(struct fb_handover *handover, const struct fb_inherited_socket *passed);
void fb_handover_zone(struct fb_handover *handover, int fd);
/* 0, or -1 without memory. */
int fb_handover_end(struct fb_handover *handover);
void fb_handover_destroy(struct fb_handover *handover);

/* What we have been given at our start. */
struct fb_inheritance {
    struct fb_inherited *sockets; /* from a service manager too */
    struct fb_zones zones;        /* open, to be taken over; closed by whoever has done so */
    pid_t parent;                 /* the master process that has started us, or 0 */
    int link;                     /* to it, or -1 */
    int lock;                     /* its pid file's, which we have with it; or -1 */
    unsigned side;                /* of our worker slots, 0 or 1 */
    uint32_t serial;              /* behind which those of the slots begin */
};

/* Reads the variable, which is given without its name; -1 after an emerg line. */
int fb_handover_read(struct fb_inheritance *inheritance, char *text, struct fb_log *log);
