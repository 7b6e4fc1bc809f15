/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker of a callback: clock, threads, work for the next turn, references and messages. Part
 * of <forkbeard/forkbeard.h>, with the same rules. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the worker of the callback; the handle outlives the connections. */
FB_SDK fb_worker *fb_worker_of(const fb_conn *conn);
/* Returns the worker_state of the connection's protocol; NULL when worker_state is 0. */
FB_SDK void *fb_worker_state(const fb_conn *conn);
/* Returns the worker_state of the handle's protocol; NULL when worker_state is 0. Also for
 * callbacks without a connection, and in `done` of fb_run(). */
FB_SDK void *fb_own_state(fb_worker *worker);
/* Returns the configuration of the protocol's server number i in this worker, in the order of the
 * file and from 0: conf_state bytes with the lifetime of the worker. NULL behind the last server,
 * and when conf_state is 0. May be called from worker_start on. Since API 4. */
FB_SDK const void *fb_worker_conf(const fb_worker *worker, size_t i);
/* Return the time at the beginning of this turn of the loop, in ms: since 1970-01-01 UTC, and on a
 * clock without jumps. */
FB_SDK int64_t fb_wall_ms(const fb_worker *worker);
FB_SDK uint64_t fb_mono_ms(const fb_worker *worker);
/* Fills n bytes with random numbers, good enough for keys. */
FB_SDK void fb_random(fb_worker *worker, void *p, size_t n);

/* Runs work(job) on a thread, then done(worker, job) on the loop, both with a copy of the n bytes
 * at `job`, which is freed when `done` returns; `job` may be NULL when n is 0. `work` may call
 * nothing of this header. The connection may have ended when `done` runs: put its fb_ref into the
 * job. Jobs of worker_start begin when the worker has entered its sandbox. A worker that ends
 * gracefully waits for its jobs. Returns 0; or -1, and nothing follows, when the queue of
 * `thread_pool` is full, without memory or thread, or in worker_stop. */
FB_SDK int fb_run(fb_worker *worker, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* Runs the job as fb_run() does, on a thread of `pool`; NULL: the default pool. A pool belongs to
 * its configuration: pools from before a reload must not be used. */
FB_SDK int fb_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* Calls run(worker, work) once, in the next turn of the loop and never within this call, with a
 * copy of the n bytes at `work`, freed when `run` returns; `work` may be NULL when n is 0. The
 * connection may have ended by then: put its fb_ref into the work. A worker that ends gracefully
 * runs all work first. Returns 0; or -1, and nothing follows, without memory. */
FB_SDK int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n);

/* Sets a timer of the worker: `timer` of the protocol's worker_ops is called with `id` in `ms`,
 * at least 1. A timer already set with this id is moved. Ids are per protocol, apart from those
 * of its connections; the number of timers is unlimited. Timers do not keep a draining worker
 * alive, and are cancelled before worker_stop. Returns 0; or -1 without memory, and the timer
 * stays as before. */
FB_SDK int fb_worker_timer(fb_worker *worker, uint32_t id, uint64_t ms);
FB_SDK void fb_worker_timer_cancel(fb_worker *worker, uint32_t id);

/* Returns the reference of the connection, for any worker; 0 without memory. */
FB_SDK fb_ref fb_ref_of(fb_conn *conn);
/* Returns the connection of a reference if it is valid and of this worker, else NULL. */
FB_SDK fb_conn *fb_find(fb_worker *worker, fb_ref ref);

#define FB_MESSAGE_MAX 16384
/* Sends a copy of n bytes to a connection of any worker, or to a worker, at most once. Messages of
 * one worker to another arrive in the order of sending, also when messages that were
 * FB_MESSAGE_BUSY are sent again in the order of their outcomes. Returns the number of the message;
 * `answered` is called once with this number, unless `from` ends before. Returns 0, and nothing
 * follows, when n is above FB_MESSAGE_MAX, when 1024 messages of this connection wait for answers,
 * or without memory. */
FB_SDK uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n);

/* Does the same from a worker: `answered` of the protocol's worker_ops gets the outcome. `to` is a
 * connection, a worker that runs this protocol, or this worker itself. A worker that ends
 * gracefully waits for the outcomes, for 10 s when all else has ended; their callback may send
 * more. Returns 0, and nothing follows, when n is above FB_MESSAGE_MAX, when this protocol waits
 * for 16384 answers in this worker, or without memory. */
FB_SDK uint64_t fb_send_worker(fb_worker *from, fb_ref to, const void *p, size_t n);
/* Sends a copy of n bytes, made once, to all workers announced by worker_came() and not by
 * worker_gone(), except this one. In its first turns a worker also sends to earlier workers not
 * announced yet. `answered` is called with the returned number once for each worker; `to` is 0 and
 * the outcome FB_MESSAGE_HANDLED for a worker that turns out not to run this protocol, or was gone
 * before its announcement. Without any other worker `answered` is called once in the same way.
 * Returns 0 as fb_send_worker() does, and no worker gets the message. */
FB_SDK uint64_t fb_send_all(fb_worker *from, const void *p, size_t n);

/* Returns the name of this life of the worker, unique in this daemon: a reference, the same for all
 * protocols, good for fb_send_message() and fb_send_worker(). */
FB_SDK fb_ref fb_worker_id(const fb_worker *worker);
/* Returns the worker's number in its configuration, from 0 to fb_worker_count() - 1. The
 * replacement of a dead worker gets the same number; during a reload an old and a new worker have
 * the same. */
FB_SDK uint32_t fb_worker_number(const fb_worker *worker);
/* Returns how many workers the configuration has: worker_processes. */
FB_SDK uint32_t fb_worker_count(const fb_worker *worker);

#ifdef __cplusplus
}
#endif
