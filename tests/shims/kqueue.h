/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the shim of kqueue(2). It works like the kernel: an event's filter makes its note
 * active, active notes stand in a line, and a note's filter is run again when it is taken out, so
 * that only true conditions are returned. epoll, by edges, triggers the runs of filters; a first
 * epoll has the reads and a second the writes, or their edges would mix. */
#pragma once

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/event.h>
#include <sys/types.h>

struct knote {
    struct kevent kept; /* the registration; `flags` are those that stay */
    bool active;        /* in the line of its queue */
    bool disabled;
    bool always;             /* a file refused by epoll: always ready */
    int fd;                  /* a timerfd or signalfd of the note; else -1 */
    uint64_t count;          /* expirations or signals; EVFILT_USER: triggered */
    TAILQ_ENTRY(knote) link; /* among the notes without a descriptor */
    TAILQ_ENTRY(knote) line;
};

TAILQ_HEAD(knote_list, knote);

struct kqueue {
    int fd;      /* the descriptor: an epoll, with everything unwritten */
    int writers; /* an epoll in it */
    int waker;   /* an eventfd in the epoll set, for threads that trigger an event */
    pid_t pid;
    struct knote **of_fd[2]; /* by descriptor: notes of EVFILT_READ and EVFILT_WRITE */
    size_t fd_n;
    struct knote_list others;
    struct knote_list line; /* active notes, not disabled, in the order of taking */
    TAILQ_ENTRY(kqueue) link;
};

/* Kinds of the epolls' data, with the ident below. */
enum { KQUEUE_DESCRIPTOR, KQUEUE_WRITERS, KQUEUE_WAKER, KQUEUE_OWN };
#define KQUEUE_DATA(kind, ident) ((uint64_t)(kind) << 56 | (uint64_t)(ident))

/* kqueue.c: The functions below are called with the lock, which guards every queue. */
void kqueue_lock(void);
void kqueue_unlock(void);
/* Returns the process's queue of the descriptor, or NULL. */
struct kqueue *kqueue_find(int fd);
struct knote *kqueue_note(const struct kqueue *queue, uintptr_t ident, int filter);
/* Applies a change; returns an errno. */
int kqueue_change(struct kqueue *queue, const struct kevent *change);
void kqueue_drop(struct kqueue *queue, struct knote *note);
/* Puts a note in the line, unless present or disabled. */
void kqueue_activate(struct kqueue *queue, struct knote *note);

/* kqueue_filter.c: Begins to watch what the new note is about; returns an errno. */
int kqueue_filter_start(struct kqueue *queue, struct knote *note);
void kqueue_filter_stop(struct kqueue *queue, struct knote *note);
/* Takes the new parameters of an existing note. */
int kqueue_filter_touch(struct kqueue *queue, struct knote *note, const struct kevent *change);
/* Whether the note's condition holds; *event is what is to be returned then. */
bool kqueue_filter_run(struct knote *note, struct kevent *event);

/* kqueue_wait.c: The work of kevent(); only kevent.c defines the name, so a test may have its
 * own. */
int kqueue_wait(int kq, const struct kevent *changes, int change_n, struct kevent *events,
    int event_n, const struct timespec *timeout);
