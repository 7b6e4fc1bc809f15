/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's SDK: a protocol handler is written against this header alone.
 *
 * A protocol is a constant `fb_protocol`: a name, directives, sizes and callbacks. Forkbeard does
 * the rest: accepts, watches, buffers, times out, limits, logs and counts.
 *
 * Three rules hold for every call:
 *  - Bytes. Input is lent until the callback returns. Output is copied, but for lent
 *    input, which is sent without a copy. All output leaves in one piece after the callback.
 *  - Handles. A connection is valid from `opened` (or fb_connect()) until `closed` returns.
 *    `closed` is called exactly once. To remember a connection for longer, keep an fb_ref.
 *  - Re-entrancy. No call runs a callback, but for `value` of a variable. The effects of a call,
 *    failures included, are reported by later callbacks.
 *
 * Callbacks run on the worker's only loop, one after the other. No callback may block: blocking
 * work belongs into fb_run(). Calls may be made from callbacks only: not from another thread, and
 * not before the worker starts, unless documented otherwise. Times are milliseconds and sizes are
 * bytes. Strings and pointers given to a call are lent until the call returns, unless documented
 * otherwise. */
#pragma once

/* The number of the binary contract, and the version of this header. */
#define FB_ABI 1u
#define FB_API 4u

#include <forkbeard/balancer.h>
#include <forkbeard/connection.h>
#include <forkbeard/cxx.h>
#include <forkbeard/frames.h>
#include <forkbeard/metrics.h>
#include <forkbeard/names.h>
#include <forkbeard/protocol.h>
#include <forkbeard/shared.h>
#include <forkbeard/stream.h>
#include <forkbeard/tls.h>
#include <forkbeard/types.h>
#include <forkbeard/upstream.h>
#include <forkbeard/watch.h>
#include <forkbeard/worker.h>
