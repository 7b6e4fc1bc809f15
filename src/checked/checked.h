/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked mode (`debug_modules on`, and the test kit always): wrappers stand between a protocol
 * and the daemon, in both directions. A protocol's callbacks are called through a descriptor of
 * wrappers (protocol.c), and its calls lead to wrappers, because the loader has rewritten
 * where the module's relocations point (module/relink.c). Nothing else of the daemon knows of it.
 *
 * A connection's handle is its slot's address plus a tag that differs from one life of the slot to
 * the next. Memory that is lent or allocated lies before a page that nobody may touch, and is
 * nobody's when it ends. A mistake is reported in one line; then a worker of the daemon aborts. */
#pragma once

#include "process/checked_scope.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>
#include <forkbeard/stream.h>
#include <pthread.h>
#include <stdbool.h>

/* Bytes of a line of a protocol that are logged. */
#define CHECKED_LINE 4096

/* ---- Memory ---- */

struct checked_slot;

/* Kinds of memory that a protocol is given. */
enum checked_kind {
    CHECKED_INPUT,   /* lent to `data` and `eof` */
    CHECKED_MESSAGE, /* lent to `message` */
    CHECKED_ANSWER,  /* lent to `answered` of a worker */
    CHECKED_READ,    /* lent to the `done` of fb_read_file() */
    CHECKED_KEY,     /* lent to `map_changed` */
    CHECKED_ALLOC,   /* of fb_alloc() */
    CHECKED_TEMP,    /* of fb_temp_alloc() */
    CHECKED_KINDS,
};

struct checked_block {
    TAILQ_ENTRY(checked_block) link; /* among the worker's that live, or those that have ended */
    LIST_ENTRY(checked_block) own;   /* allocated and alive: among its slot's */
    char *base;                      /* pages, and behind them one that nobody may touch */
    size_t size;                     /* bytes of the pages before that one */
    char *p;
    size_t n;
    enum checked_kind kind;
    const char *protocol;
    const char *ended; /* when it has ended, for the report; NULL: it lives */
};

TAILQ_HEAD(checked_blocks, checked_block);

/* Bytes of a red zone. */
#define CHECKED_ZONE 32

/* Fills a red zone; whether it is untouched. */
void checked_zone_fill(void *zone);
bool checked_zone_is_whole(const void *zone);

/* ---- A worker ---- */

/* Operations of a protocol that the daemon calls: wrappers of its own ones. */
struct checked_ops {
    unsigned kind;
    fb_ops ops;         /* the daemon is given these */
    fb_ops own;         /* a copy of the protocol's */
    const fb_ops *from; /* the protocol's */
    const struct checked_protocol *protocol;
    SLIST_ENTRY(checked_ops) link; /* among the worker's; not linked: the descriptor's */
};

/* A descriptor of wrappers. */
struct checked_protocol {
    fb_protocol protocol; /* the daemon is given this; the first member */
    fb_protocol own;      /* with own_ops and own_worker_ops */
    struct checked_ops ops;
    fb_worker_ops worker_ops, own_worker_ops;
};

/* A target that a protocol has made, and a read of a file that is under way. */
struct checked_target {
    SLIST_ENTRY(checked_target) link;
    const fb_target *target;
};
struct checked_read {
    SLIST_ENTRY(checked_read) link;
    const fb_file_read *outcome; /* that `done` is told of: the daemon's, and its name */
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read);
};

/* A slot of the loop's table, whose connections come and go. */
struct checked_slot {
    bool begun;       /* a callback or a call has been seen in this life */
    const char *over; /* the call that has ended its output, or NULL */
    uint32_t lives;   /* that have ended */
    char *zone;       /* the red zone of its conn_state, or NULL */
    LIST_HEAD(, checked_block) blocks;
    SLIST_HEAD(, checked_target) targets;
    SLIST_HEAD(, checked_read) reads;
    void (*first_byte)(fb_conn *b, void *state); /* that fb_pipe() was given */
    /* called when the choice of a server has waited */
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run);
};

struct checked_watch {
    SLIST_ENTRY(checked_watch) link;
    const fb_watch *watch;
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg);
    void *arg;
};

/* A resolution of a name that has not ended. */
struct checked_resolution {
    SLIST_ENTRY(checked_resolution) link;
    const fb_resolution *resolution;
    const struct checked_slot *owner; /* NULL: the worker asks */
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg);
    void *arg;
};

/* Ended blocks, targets, watches and resolutions that are remembered. */
#define CHECKED_ENDED 256

struct checked {
    SLIST_ENTRY(checked) link; /* in the process's list */
    struct worker *worker;
    pthread_t thread;    /* the loop's */
    unsigned protocol_n; /* protocols that have started, or are about to */
    struct checked_slot *slots;
    uint32_t slot_n;
    const char *base; /* the first slot, and the size of each */
    size_t stride;
    struct checked_blocks live, ended;
    unsigned live_n, ended_n;        /* blocks */
    const void *gone[CHECKED_ENDED]; /* targets and watches that have ended, a ring */
    unsigned gone_at;
    SLIST_HEAD(, checked_ops) ops;
    SLIST_HEAD(, checked_watch) watches;
    SLIST_HEAD(, checked_resolution) resolutions;

    /* input that is lent just now */
    const fb_conn *input_conn;
    const uint8_t *input_real;
    struct checked_block *input;
};

/* Returns the worker's, made by the first of its protocols that starts; NULL without memory. */
struct checked *checked_begin(struct worker *worker);
/* Drops a protocol that has stopped; the last one takes all with it. */
void checked_end(struct checked *checked);
/* Returns the worker's, or NULL. */
struct checked *checked_of(const struct worker *worker);

/* ---- Reports (report.c) ---- */

/* Reports that the protocol of the running callback, or else `protocol`, has made a call (its name
 * without "fb_") in this way. Returns in the test kit, in the master, and where the configuration
 * is read. */
void checked_report_call(const char *protocol, const char *call, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Reports anything else that the protocol has done. */
void checked_report(const char *protocol, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Reports crashes within the blocks of protocols from now on. */
void checked_report_crashes(void);

/* ---- Memory (memory.c) ---- */

/* Makes a block of a slot; NULL where there are too many, or no memory. */
struct checked_block *checked_block_make(struct checked *checked, struct checked_slot *slot,
    enum checked_kind kind, const char *protocol, size_t n);
/* Makes one with these bytes, which the protocol may only read; NULL as above. */
struct checked_block *checked_block_lend(
    struct checked *checked, enum checked_kind kind, const char *protocol, const void *p, size_t n);
/* Ends a block, or all of a kind; from now on any access is a crash. */
void checked_block_end(struct checked *checked, struct checked_block *block, const char *when);
void checked_block_end_all(
    struct checked *checked, struct checked_slot *slot, enum checked_kind kind, const char *when);
/* Reports the slot's blocks whose surroundings were written to. */
void checked_blocks_check(const struct checked_slot *slot, const char *callback);
/* Returns the block that the address lies in or around, of any worker; NULL: none. */
const struct checked_block *checked_block_at(const void *p);
const char *checked_block_name(const struct checked_block *block);
/* Whether the call may read n bytes at p. */
bool checked_bytes(const char *call, const void *p, size_t n, const char *name);
/* Frees all. */
void checked_blocks_free(struct checked_blocks *blocks);

/* ---- Handles (handles.c) ---- */

/* Return what a handle names, after a report NULL. Each checks the place of the call, too. */
fb_conn *checked_conn(const fb_conn *handle, const char *call);
fb_worker *checked_worker(const fb_worker *handle, const char *call);
fb_watch *checked_watch(fb_watch *handle, const char *call);
fb_map *checked_map(fb_map *handle, const char *call);
bool checked_target(const fb_target *target, const char *call);
bool checked_resolution(const fb_resolution *resolution, const char *call);
/* Whether calls may be made here, of a worker or of a configuration. */
bool checked_place_is_worker(const char *protocol, const char *call);
bool checked_place_is_conf(const fb_conf *conf, const char *call);
bool checked_place_is_master(const fb_master *master, const char *call);
/* Whether an argument is not NULL. */
bool checked_given(const char *call, const void *p, const char *name);
/* Copies options that begin with their size, as far as both sides know them, to the `n` bytes at
 * `own`, which without options have nothing but their size. False after a report. */
bool checked_options(const char *call, void *own, size_t n, const void *options);
/* Returns the handle of a connection; the connection itself where its protocol is not checked. */
fb_conn *checked_handle_of(fb_conn *conn);
/* Whether output may be added. After the end of output that is a mistake in callbacks of the
 * connection itself alone: others may write to all that they know. */
bool checked_can_write(const fb_conn *conn, const char *call);
/* Returns what is known of a connection's slot; NULL where its protocol is not checked. */
struct checked_slot *checked_slot_of(const fb_conn *conn);
/* Forgets the connection's reads and resolutions, whose callbacks are called no more. */
void checked_slot_forget(struct checked *checked, struct checked_slot *slot);
/* A connection's life has ended. */
void checked_slot_end(struct checked *checked, struct checked_slot *slot);
/* Notes that a target, a watch or a resolution has ended; whether one has. */
void checked_gone(struct checked *checked, const void *p);
bool checked_is_gone(const struct checked *checked, const void *p);
/* None of this address has ended any more. */
void checked_not_gone(struct checked *checked, const void *p);

/* ---- Callbacks (protocol.c, ops.c) ---- */

/* Returns wrappers of a checked copy, module_copy()'s; NULL without memory. */
const fb_protocol *checked_protocol_make(struct arena *arena, const fb_protocol *copy);
/* Returns the descriptor of wrappers that the daemon knows, or NULL. */
const struct checked_protocol *checked_protocol_of(const fb_protocol *protocol);
/* Fills in wrappers of operations. */
void checked_ops_make(
    struct checked_ops *made, const fb_ops *from, const struct checked_protocol *protocol);
/* Returns the worker's wrappers of operations, or makes them; NULL without memory. */
const fb_ops *checked_ops_of(
    struct checked *checked, const struct checked_protocol *protocol, const fb_ops *from);
/* Returns the connection's, or NULL where its protocol is not checked. */
struct checked_ops *checked_ops_running(const fb_conn *conn);
/* Enter and leave a callback of a connection, or of a worker. */
void checked_enter_conn(struct checked_scope *scope, const fb_conn *conn, const char *callback);
void checked_leave_conn(struct checked_scope *scope, const fb_conn *conn);
void checked_enter_worker(
    struct checked_scope *scope, const fb_worker *worker, const char *callback);
void checked_leave_worker(struct checked_scope *scope, const fb_worker *worker);

/* ---- Interfaces (stream.c, upstreams.c) ---- */

/* Tables of wrappers of the interfaces "stream" and "upstream". */
extern const fb_stream checked_stream;
extern const fb_upstreams checked_upstreams;
