/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of messages to the service manager, sent again by a timer of the owner's; no call
 * blocks. Messages made obsolete by a later message are dropped, so that few are queued, however
 * long the manager does not read; descriptors, removals, and the main process's number stay. A
 * barrier, the end of a pipe that the manager closes, confirms the reading of these. */
#pragma once

#include "base/log.h"
#include "event/timer.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Time limit of a barrier. */
#define NOTIFY_QUEUE_DEADLINE_MS 5000
/* Limit of queued messages without a descriptor: mainly removals, one for each listener. */
#define NOTIFY_QUEUE_MAX 65536

enum notify_kind {
    NOTIFY_READY,
    NOTIFY_RELOADING,
    NOTIFY_STOPPING,
    NOTIFY_STATUS,
    NOTIFY_ALIVE,
    NOTIFY_MAIN_PID,
    NOTIFY_STORE,
    NOTIFY_UNSTORE,
};

struct notify_message;

struct notify_queue {
    char *name; /* path or name of the manager's socket; NULL: no manager */
    struct sockaddr_un address;
    socklen_t length;
    int fd; /* sends; -1: not made yet: descriptors may have been passed to us at the start */
    TAILQ_HEAD(notify_messages, notify_message) messages;
    RB_HEAD(notify_names, notify_message) names; /* messages about descriptors, by name */
    uint64_t number;                             /* serial number of the latest message */
    unsigned plain_n;                            /* messages without a descriptor */
    struct timers *timers;                       /* NULL: queued messages are sent with the next */
    struct log *log;                             /* for the timer; NULL without timers */
    struct timer again;
    unsigned pause_ms;   /* until the next attempt to send */
    uint64_t waiting_ms; /* time since the manager reads nothing; 0: reads */
    bool slow;           /* a stalled manager was logged */
    bool failing;        /* an unreachable manager was logged */
    bool unconfirmed;    /* messages await a barrier */
    bool unanswered;     /* the latest barrier has missed its deadline */
    int barrier;         /* our end of the barrier's pipe, or -1 */
    uint64_t barrier_ms; /* time of the barrier */
};

/* Takes the address of the manager, or none (NULL). An unusable address is logged. */
void notify_queue_init(struct notify_queue *queue, const char *name, struct log *log);
/* Drops everything; no message is ever sent again. */
void notify_queue_done(struct notify_queue *queue);
/* Resends queued messages by these timers; NULL: ends the use of timers. */
void notify_queue_attend(struct notify_queue *queue, struct timers *timers, struct log *log);
/* Sends or queues a message with the caller's descriptor or -1; -1: dropped, with a log line. */
int notify_queue_push(
    struct notify_queue *queue, struct log *log, enum notify_kind kind, const char *text, int fd);
/* Drops the queued messages of a kind. */
void notify_queue_cancel(struct notify_queue *queue, enum notify_kind kind);
/* Does the timer's work at once, and asks for a confirmation. */
void notify_queue_advance(struct notify_queue *queue, struct log *log);
/* Whether messages are queued. */
bool notify_queue_is_waiting(const struct notify_queue *queue);
/* Whether the manager has confirmed all descriptors, removals and the main process's number. */
bool notify_queue_is_confirmed(const struct notify_queue *queue);
