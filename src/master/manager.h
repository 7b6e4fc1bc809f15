/* SPDX-License-Identifier: BSD-2-Clause */
/* What the service manager is told, and when. Private to master/. */
#pragma once

#include "systemd/notify.h"

#include <stdbool.h>
#include <stdint.h>

struct fb_master;

struct fb_manager {
    char status[FB_NOTIFY_STATUS_MAX]; /* the latest that it was told */
    uint64_t alive_ms;                 /* when it shall hear of us again; 0: never */
};

/* The first generation serves, or we have become the main process, after another one. */
void fb_manager_ready(struct fb_master *master);
/* Another process becomes the main one: it has its own sockets stored, in place of ours. */
void fb_manager_give_way(struct fb_master *master, pid_t to);
/* A reload has begun, and has ended, as the master's result says. */
void fb_manager_reloading(struct fb_master *master);
void fb_manager_reloaded(struct fb_master *master);
/* The daemon begins to end. */
void fb_manager_stopping(struct fb_master *master);
/* Shows the state that we are in, if it is another one. To be called after anything has happened. */
void fb_manager_show(struct fb_master *master);
/* Says that we are alive, if it is time to. */
void fb_manager_meet_deadlines(struct fb_master *master, uint64_t *next);
