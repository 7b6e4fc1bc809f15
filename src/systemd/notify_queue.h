/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the service manager, in the order in which they were given. What the manager does not
 * take waits, and is sent again by a timer of the owner's: nobody waits here. A message that a
 * later one makes needless goes, so that few wait at any time, however long the manager does not
 * read; descriptors and their removal, and the main process's number, never go. That the manager
 * has read these is confirmed by a barrier: the end of a pipe that it closes. */
#pragma once

#include "base/log.h"
#include "event/timer.h"
#include "systemd/notify_socket.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stdint.h>

/* How long the manager has to read what must arrive. */
#define NOTIFY_QUEUE_DEADLINE_MS 5000
/* Messages without a descriptor that wait at most: most are removals, one for each listener. */
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
    struct notify_socket socket;
    char *name; /* the socket's, as it was given; NULL: there is no manager */
    TAILQ_HEAD(notify_messages, notify_message) messages;
    RB_HEAD(notify_names, notify_message) names; /* messages about descriptors, by the name */
    uint64_t number;                             /* counts messages that have waited so far */
    unsigned plain_n;                            /* messages without a descriptor among them */
    struct timers *timers; /* NULL: messages that wait are sent with the next one */
    struct log *log;       /* for what the timer does; NULL without timers */
    struct timer again;
    unsigned pause_ms;   /* until the next attempt */
    uint64_t waiting_ms; /* the time since which the manager has taken nothing; 0: it has */
    bool slow;           /* the manager has taken nothing for long, which was logged */
    bool failing;        /* the latest message could not be sent, which was logged */
    bool unconfirmed;    /* something that must arrive was sent after the latest barrier */
    bool unanswered;     /* the latest barrier has not been answered in time */
    int barrier;         /* the end of a pipe of which the manager has the other, or -1 */
    uint64_t barrier_ms; /* when it was sent */
};

/* Takes the address of the manager, or none (NULL). An address that cannot be used is logged. */
void notify_queue_init(struct notify_queue *queue, const char *name, struct log *log);
/* Drops everything; no message is ever sent again. */
void notify_queue_done(struct notify_queue *queue);
/* From now on these timers send again what waits; NULL: they go. */
void notify_queue_attend(struct notify_queue *queue, struct timers *timers, struct log *log);

/* Sends the message, or has it wait; `fd`, -1 for none, stays the caller's. -1: it was dropped,
 * which was logged. */
int notify_queue_push(
    struct notify_queue *queue, struct log *log, enum notify_kind kind, const char *text, int fd);
/* Drops the messages of a kind that wait; whether there were any. */
bool notify_queue_cancel(struct notify_queue *queue, enum notify_kind kind);
/* Tries now what the timer would try later, and asks for a confirmation of what must arrive. */
void notify_queue_advance(struct notify_queue *queue, struct log *log);
/* Whether messages wait that the manager has not taken. */
bool notify_queue_is_waiting(const struct notify_queue *queue);
/* Whether the manager has confirmed all that must arrive. */
bool notify_queue_is_confirmed(const struct notify_queue *queue);
