/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's fb_conf_ calls, for a protocol's conf_done and `set`. */
#pragma once

#include "base/compiler.h"
#include "conf/conf.h"
#include "net/address_parse.h"
#include "shm/map_log.h"

#include <forkbeard/forkbeard.h>
#include <stdarg.h>

/* A map declared by a protocol: the master opens the zone, and every worker makes a handle. */
struct fb_map {
    struct zone *zone; /* open in a worker */
    struct zone *log;  /* the changes'; NULL: the protocol has no `map_changed` */
    struct shm_map_shape shape;
    struct shm_map *handle;     /* the worker's, once it is open */
    struct shm_map_mended said; /* how many the log was told of */
    uint64_t said_ms;
};

/* A worker: makes the handles of all maps among these open zones. */
void settings_open_maps(struct zones *zones, struct slot_id id);
/* Finds the place of a mistake: the directive that is being set, unless a default is; else the
 * named directive, if written; else the block. */
const struct conf_word *settings_place(const struct fb_conf *conf, const char *directive);
/* Reports a mistake as fb_conf_errorf() does. Returns -1. */
int settings_vreport(fb_conf *conf, const char *directive, const char *format, va_list args)
    PRINTF_FORMAT(3, 0);
int settings_report(fb_conf *conf, const char *directive, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Find or make an address, a pool or a map with the lifetime of the configuration. */
const struct fb_target *settings_target(fb_conf *conf, const char *directive, const char *text);
const struct fb_pool *settings_pool(struct fb_conf *conf, const char *directive, const char *name);
struct fb_map *settings_map(fb_conf *conf, const fb_map_options *options);
/* Notes rights needed by the current directive; -1 after a report. */
int settings_need(fb_conf *conf, uint64_t needs);
/* Read a text with variables, and a variable's name; NULL after a report. */
const fb_template *settings_template(fb_conf *conf, const char *directive, const char *text);
const fb_variable *settings_variable(fb_conf *conf, const char *directive, const char *name);
/* Returns a word with this text at the place of a directive; NULL after a report. */
const struct conf_word *settings_word(const fb_conf *conf, const char *directive, const char *text);
