/* SPDX-License-Identifier: BSD-2-Clause */
/* FreeBSD's kqueue(2), as far as the tests' shim of it goes (shims/kqueue.c). The values are
 * FreeBSD's. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_SIGNAL (-6)
#define EVFILT_TIMER (-7)
#define EVFILT_USER (-11)

#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_DISABLE 0x0008
#define EV_ONESHOT 0x0010
#define EV_CLEAR 0x0020
#define EV_RECEIPT 0x0040
#define EV_DISPATCH 0x0080
#define EV_ERROR 0x4000
#define EV_EOF 0x8000

#define NOTE_TRIGGER 0x01000000

#define NOTE_SECONDS 0x00000001
#define NOTE_MSECONDS 0x00000002
#define NOTE_USECONDS 0x00000004
#define NOTE_NSECONDS 0x00000008

struct kevent {
    uintptr_t ident;
    short filter;
    unsigned short flags;
    unsigned int fflags;
    int64_t data;
    void *udata;
    uint64_t ext[4];
};

#define EV_SET(event, id, which, what, more, number, user)                                         \
    (*(event) = (struct kevent) { (id), (which), (what), (more), (number), (user), { 0 } })

__attribute__((visibility("default"))) int kqueue(void);
__attribute__((visibility("default"))) int kevent(int kq, const struct kevent *changes,
    int change_n, struct kevent *events, int event_n, const struct timespec *timeout);
