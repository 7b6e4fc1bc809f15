/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls in the checked mode: wrappers of equal types check the arguments and then make
 * the call. A wrapper is named after the call, and does nothing after a report. */
#pragma once

#include "checked/handles.h"
#include "checked/ops.h"

/* The name of the wrapper's call, without "fb_". */
#define CHECKED_CALL (__func__ + sizeof("checked_") - 1)

/* The checks of a wrapper's arguments. Each is false after a report, and replaces handles. */
#define REPORT(...) checked_report_call(NULL, CHECKED_CALL, __VA_ARGS__)
#define CONN(conn) (((conn) = checked_conn(conn, CHECKED_CALL)) != NULL)
#define WORKER(worker) (((worker) = checked_worker(worker, CHECKED_CALL)) != NULL)
#define WATCH(watch) (checked_watch(watch, CHECKED_CALL) != NULL)
#define CONF(conf) checked_place_is_conf(conf, CHECKED_CALL)
#define GIVEN(p) checked_given(CHECKED_CALL, (const void *)(uintptr_t)(p), #p)
#define BYTES(p, n, name) checked_bytes(CHECKED_CALL, p, n, name)
#define OPTIONS(own, options) checked_options(CHECKED_CALL, own, sizeof(*(own)), options)

#define CALL(name) __typeof__(fb_##name) checked_##name;
#include "checked/calls.def"

/* Tables of wrappers of the interfaces "stream", "upstream" and "metrics". */
extern const fb_stream checked_stream;
extern const fb_upstreams checked_upstreams;
extern const fb_metrics checked_metrics;

/* Makes the call of fb_run_in(), or (`work` is NULL) of fb_post(), with checked arguments. */
int checked_job_run(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *p, size_t n);

/* Returns wrappers of a checked copy, module_copy()'s; NULL without memory. */
const fb_protocol *checked_protocol_make(struct arena *arena, const fb_protocol *copy);
