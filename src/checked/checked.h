/* SPDX-License-Identifier: BSD-2-Clause */
/* The checked mode (`debug_modules on`, and the test kit always): wrappers stand between a protocol
 * and the daemon, in both directions. A protocol's callbacks are called through a descriptor of
 * wrappers (protocol.c), and the protocol's calls lead to wrappers, because the loader has
 * rewritten the targets of the module's relocations (module/relink.c). Nothing else of the daemon
 * knows of the checked mode.
 *
 * A connection's handle is the slot's address plus a tag, which differs from one life of the
 * slot to the next. Lent or allocated memory lies before a forbidden page, and is forbidden
 * after the end. A mistake is reported in a single line; then a worker of the daemon aborts. */
#pragma once

#include "base/compiler.h"
#include "checked/memory.h"
#include "process/checked_scope.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>
#include <forkbeard/stream.h>
#include <pthread.h>
#include <stdbool.h>

/* Limit of logged bytes of a protocol's line. */
#define CHECKED_LINE 4096

/* Wrappers of a protocol's operations, for the daemon to call. */
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
    fb_protocol protocol; /* the daemon's descriptor; the first member */
    fb_protocol own;      /* with own_ops and own_worker_ops */
    struct checked_ops ops;
    fb_worker_ops worker_ops, own_worker_ops;
};

/* A slot of the loop's table; connections come and go. */
struct checked_slot {
    bool begun;       /* a callback or a call has been seen in the present life */
    const char *over; /* the call at the end of the output, or NULL */
    uint32_t lives;   /* that have ended */
    char *zone;       /* the red zone of its conn_state, or NULL */
    LIST_HEAD(, checked_block) blocks;
    void (*first_byte)(fb_conn *b, void *state); /* fb_pipe()'s */
    /* called when the choice of a server has waited */
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run);
};

/* Kinds of a protocol's objects: targets and watches, and running reads and resolutions. */
enum checked_object_kind { OBJECT_TARGET, OBJECT_WATCH, OBJECT_READ, OBJECT_RESOLUTION };

struct checked_object {
    LIST_ENTRY(checked_object) link;
    enum checked_object_kind kind;
    const void *object;               /* a read's: the daemon's outcome */
    const struct checked_slot *owner; /* NULL: the worker */
    union {
        void (*done)(fb_conn *conn, void *state, const fb_file_read *read);
        void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg);
        void (*resolved)(fb_worker *worker, const fb_names *names, void *arg);
    } callback;
    void *arg; /* the callback's */
};

/* Limit of remembered ended blocks, and ended objects. */
#define CHECKED_ENDED 256

struct checked {
    SLIST_ENTRY(checked) link; /* in the process's list */
    struct worker *worker;
    pthread_t thread;    /* the loop's */
    unsigned protocol_n; /* protocols that have started, or are about to */
    struct checked_slot *slots;
    uint32_t slot_n, begun_n; /* none from the latter on has ever begun */
    const char *base;         /* the first slot, and the size of a slot */
    size_t stride;
    struct checked_blocks live, ended;
    unsigned live_n, ended_n;        /* blocks */
    const void *gone[CHECKED_ENDED]; /* ended objects, a ring */
    unsigned gone_at;
    SLIST_HEAD(, checked_ops) ops;
    LIST_HEAD(, checked_object) objects;
};

/* Returns the state of a worker, or NULL. */
struct checked *checked_of(const struct worker *worker);
/* Returns the daemon's descriptor of wrappers, or NULL. */
const struct checked_protocol *checked_protocol_of(const fb_protocol *protocol);
/* Forgets the connection's reads and resolutions, without further callbacks; targets at the end. */
void checked_slot_forget(struct checked *checked, const struct checked_slot *slot, bool ends);
/* Ends the life of a connection in the slot, with the memory. */
void checked_slot_end(struct checked *checked, struct checked_slot *slot);
/* Makes room for an object; NULL without memory. */
struct checked_object *checked_object_make(
    enum checked_object_kind kind, const struct checked_slot *owner, void *arg);
/* Notes the object that a call has made, and returns it; frees the room when it is NULL. */
void *checked_object_begin(
    struct checked *checked, struct checked_object *made, const void *object);
struct checked_object *checked_object_find(
    const struct checked *checked, enum checked_object_kind kind, const void *object);
/* Forgets an object, and notes the end. */
void checked_object_end(struct checked *checked, enum checked_object_kind kind, const void *object);
/* Whether an object at the address has ended. */
bool checked_is_gone(const struct checked *checked, const void *p);

/* Enter and leave a callback of a worker. */
void checked_enter_worker(
    struct checked_scope *scope, const fb_worker *worker, const char *callback);
void checked_leave_worker(struct checked_scope *scope, const fb_worker *worker);

/* The wrappers of a protocol's worker_start and worker_stop: begin and end the state of the
 * worker. */
int checked_worker_start(fb_worker *worker, void *state);
void checked_worker_stop(fb_worker *worker, void *state);

/* Reports a mistaken call (named without "fb_") of the running callback's protocol, or else of
 * `protocol`; `format` says how. Returns, always false, in the test kit, in the master, and where
 * the configuration is read. */
bool checked_report_call(const char *protocol, const char *call, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Reports a mistake of the protocol outside of calls. */
void checked_report(const char *protocol, const char *format, ...) PRINTF_FORMAT(2, 3);
