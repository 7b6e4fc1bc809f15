/* SPDX-License-Identifier: BSD-2-Clause */
/* An event port of the shim: declarations for both of its files. Associations and queue lie in
 * memory shared with children of fork(), as a port is; the lock is held by any user of them. */
#pragma once

#include <port.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most associated descriptors, and the most waiting events of the program. An event of the
 * queue has a number: below OBJECTS_MAX its descriptor. */
#define OBJECTS_MAX (1 << 20)
#define SENT_MAX 4096
#define NONE (-1)

struct item {
    int next, previous; /* in the queue; or `next` in the list of free ones */
    int queued;         /* numbers, because attackers' tests overwrite these at will */
    int revents;
    void *user;
    /* of an association: */
    int associated;
    pid_t owner;
    uint32_t serial;
    int events;
    dev_t device; /* the file that the descriptor was */
    ino_t inode;
};

struct shared_port {
    pthread_mutex_t lock;
    uint32_t serial;
    int alert;
    int alert_events;
    void *alert_user;
    int waiting_n;   /* waiters, to be told of the queue and of alerts */
    int first, last; /* the queue */
    int first_free;  /* a free number for an event of the program's own */
    int sent_n;      /* events of the program from here on have never been used */
    int object_n;    /* descriptors from here on have never been associated */
    struct item items[OBJECTS_MAX + SENT_MAX];
};

struct port {
    struct port *next;
    int fd;   /* the epoll set */
    int bell; /* an eventfd in the set, edge-triggered: the queue or the alert mode has changed; or
                 -1 */
    struct shared_port *shared;
};

/* The event of the bell in the epoll set; those of descriptors have serial and descriptor. */
#define BELL UINT64_MAX

/* Returns the port of a descriptor; NULL with EBADF or EBADFD. */
struct port *port_find(int fd);
/* Wakes the waiters, to look at the queue. */
void port_ring(struct port *port);

/* port_queue.c: */
void port_enqueue(struct shared_port *shared, int i, int revents);
/* Ends an association, or takes an event of the program's own out of the queue. */
void port_end(struct shared_port *shared, int i);
/* Whether the descriptor is, in the current process, the associated file. */
bool port_is_same_file(const struct item *item, int fd);
/* Sets errno; returns -1. */
int port_fail(int error);
