/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles, places and arguments of calls in the checked mode. */
#pragma once

#include "checked/checked.h"

/* Return the handle's object, or NULL after a report. All check the place of the call, too. */
fb_conn *checked_conn(const fb_conn *handle, const char *call);
fb_worker *checked_worker(const fb_worker *handle, const char *call);
fb_watch *checked_watch(fb_watch *handle, const char *call);
fb_map *checked_map(fb_map *handle, const char *call);
bool checked_target(const fb_target *target, const char *call);
/* Returns the worker of a running resolution, or NULL after a report. */
struct checked *checked_resolution(const fb_resolution *resolution, const char *call);
/* Whether calls may be made here, of a worker or of a configuration. */
bool checked_place_is_worker(const char *protocol, const char *call);
bool checked_place_is_conf(const fb_conf *conf, const char *call);
bool checked_place_is_master(const fb_master *master, const char *call);
/* Whether an argument is not NULL. */
bool checked_given(const char *call, const void *p, const char *name);
/* Copies options, which begin with a size, to the `n` bytes at `own`, as far as both sides know the
 * fields; without options `own` has nothing but the size. False after a report. */
bool checked_options(const char *call, void *own, size_t n, const void *options);
/* Returns the handle of a connection; the connection itself without a checked protocol. */
fb_conn *checked_handle_of(fb_conn *conn);
/* Whether output may be added. After the end of output a write is a mistake only in callbacks of
 * the connection itself: callbacks of different connections may write to any connection. */
bool checked_can_write(const fb_conn *conn, const char *call);
/* Returns the state of a connection's slot; NULL without a checked protocol. */
struct checked_slot *checked_slot_of(const fb_conn *conn);
/* Returns the wrappers of a connection's callbacks; NULL without a checked protocol. */
struct checked_ops *checked_ops_running(const fb_conn *conn);
