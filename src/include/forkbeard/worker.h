/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker that a callback runs in: its clock, threads, work for the next turn, references and
 * messages. Part of <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the worker of the callback; the handle outlives the connections. */
FB_SDK fb_worker *fb_worker_of(const fb_conn *conn);
/* Returns the worker_state of the connection's protocol; NULL when worker_state is 0. */
FB_SDK void *fb_worker_state(const fb_conn *conn);
/* Returns the worker_state of the protocol that has this handle of the worker; NULL when
 * worker_state is 0. Also for callbacks without a connection, and in `done` of fb_run(). */
FB_SDK void *fb_own_state(fb_worker *worker);
/* Returns the configuration of the protocol's server number i in this worker, in the order of the
 * file and from 0: conf_state bytes that live as long as the worker. NULL behind the last one, and
 * when conf_state is 0. May be called from worker_start on. Since API 4. */
FB_SDK const void *fb_worker_conf(const fb_worker *worker, size_t i);
/* Return the time at the beginning of this turn of the loop, in ms: since 1970-01-01 UTC, and on a
 * clock that never jumps. */
FB_SDK int64_t fb_wall_ms(const fb_worker *worker);
FB_SDK uint64_t fb_mono_ms(const fb_worker *worker);
/* Fills n bytes with random ones, good enough for keys. */
FB_SDK void fb_random(fb_worker *worker, void *p, size_t n);

/* Runs work(job) on a thread, then done(worker, job) on the loop. Both get a copy of the n bytes at
 * `job`, which is freed when `done` returns; `job` may be NULL when n is 0. `work` may not call
 * anything of this header. The connection may have ended when `done` runs: put its fb_ref into the
 * job. Jobs of worker_start begin when the worker has entered its sandbox. A worker that ends
 * gracefully waits for its jobs. Returns 0; or -1, and nothing follows, when the queue of
 * `thread_pool` is full, when there is no memory or thread, or in worker_stop. */
FB_SDK int fb_run(fb_worker *worker, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* As fb_run(), on a thread of another pool than the default pool (NULL). A pool belongs to its
 * configuration: use the worker's, never one from before a reload. */
FB_SDK int fb_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* Calls run(worker, work) once, in the next turn of the loop and never within this call. It gets a
 * copy of the n bytes at `work`, freed when `run` returns; `work` may be NULL when n is 0. The
 * connection may have ended by then: put its fb_ref into the work. A worker that ends gracefully
 * runs it first. Returns 0; or -1, and nothing follows, without memory. */
FB_SDK int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n);

/* Sets a timer of the worker, which calls `timer` of the protocol's worker_ops with `id` in `ms`,
 * at least 1. A timer of this id that is set already is moved. Ids are the protocol's own, apart
 * from those of its connections; there may be any number. Timers do not keep a worker alive that
 * drains, and are cancelled before worker_stop. Returns 0; or -1 without memory, and then a timer
 * that was set stays as it was. */
FB_SDK int fb_worker_timer(fb_worker *worker, uint32_t id, uint64_t ms);
FB_SDK void fb_worker_timer_cancel(fb_worker *worker, uint32_t id);

/* Returns a number that names the connection in any worker; 0 without memory. */
FB_SDK fb_ref fb_ref_of(fb_conn *conn);
/* Returns the connection of a reference if it is this worker's and still valid, else NULL. */
FB_SDK fb_conn *fb_find(fb_worker *worker, fb_ref ref);

#define FB_MESSAGE_MAX 16384
/* Sends a copy of n bytes to a connection of any worker, or to a worker, which receives them at
 * most once. Messages of one worker to another arrive in the order in which they were sent; also
 * when those that were FB_MESSAGE_BUSY are sent again in the order of their outcomes. Returns the
 * number of the message, with which `answered` is called once, unless `from` ends before. Returns
 * 0, and nothing follows, when n is above FB_MESSAGE_MAX, when 1024 messages of this connection are
 * not answered yet, or without memory. */
FB_SDK uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n);

/* Does the same from a worker: the outcome comes to `answered` of the protocol's worker_ops. `to`
 * is a connection, a worker that runs this protocol, or this worker itself. A worker that ends
 * gracefully waits for the outcomes, whose callback may send more; for 10 s when all else has
 * ended. Returns 0, and nothing follows, when n is above FB_MESSAGE_MAX, when this protocol waits
 * for 16384 answers in this worker, or without memory. */
FB_SDK uint64_t fb_send_worker(fb_worker *from, fb_ref to, const void *p, size_t n);
/* Sends a copy of n bytes to each other worker that worker_came() has told of and worker_gone() has
 * not, this one not included; the bytes are copied once. In its first turns a worker sends also to
 * those that were there before it and have not come yet. `answered` is called with the number that
 * is returned once for each of them, with 0 as `to` and FB_MESSAGE_HANDLED for one that turns out
 * not to run this protocol, or to have gone without having come; so also, once, when there is none.
 * Returns 0 as fb_send_worker() does, and then nobody was sent anything. */
FB_SDK uint64_t fb_send_all(fb_worker *from, const void *p, size_t n);

/* Returns the name of this life of the worker, which no other worker of this daemon ever has: a
 * reference, the same for all protocols, good for fb_send_message() and fb_send_worker(). */
FB_SDK fb_ref fb_worker_id(const fb_worker *worker);
/* Returns the worker's number among those of its configuration, from 0 to fb_worker_count() - 1. A
 * worker that takes the place of one that has died gets its number; during a reload the old worker
 * and the new one have the same. */
FB_SDK uint32_t fb_worker_number(const fb_worker *worker);
/* Returns how many workers the configuration has: worker_processes. */
FB_SDK uint32_t fb_worker_count(const fb_worker *worker);

#ifdef __cplusplus
}
#endif
