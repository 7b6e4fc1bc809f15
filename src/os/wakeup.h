/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeps and their ends: the master's set of descriptors, bells between processes and threads,
 * ticks, and waits with a mask of signals.
 *
 * A failure is -1 with errno; ENOSYS: the system has no descriptor for it. Descriptors are the
 * caller's, but those of the set, which is the process's own. Never logs. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

/* Events of a descriptor of the set: something to receive or to accept, room to send, or only that
 * the other end goes. */
enum wakeup_event { WAKEUP_INPUT, WAKEUP_OUTPUT, WAKEUP_END };

/* Begins the set, in a child that goes on as the master too. *signals becomes the descriptor that
 * handlers of signals write a byte to, the set's own; -1: they need not. */
int os_wakeup_begin(int *signals);
/* Adds a descriptor, whose input is waited for; in a child of the process that has added it,
 * again. */
int os_wakeup_add(int fd);
/* Waits for another event of a descriptor; ignored for one that is not in the set. Where the sleep
 * reports changes and not states, nothing depends on it. */
void os_wakeup_expect(int fd, enum wakeup_event event);
/* Takes a descriptor out, before it is closed or because its state is of no interest any more;
 * ignored where it is not in the set. */
void os_wakeup_remove(int fd);
/* Sleeps with this mask until a signal or a descriptor of the set ends it. Returns whether a
 * descriptor has had an event that is not told of by SIGIO. */
bool os_wakeup_sleep(const sigset_t *mask);

/* Opens a bell: rings of ends[1] make ends[0] readable. Both are the same descriptor where the
 * system has counters. */
int os_bell_open(int ends[2]);
/* Rings, and never waits. EAGAIN: the bell is full of rings. */
int os_bell_ring(int end);
/* Takes all rings of a bell, or the ticks that have passed. */
void os_bell_quiet(int end);

/* Opens a timer that is readable every `ms`. */
int os_ticks_open(uint64_t ms);
/* Opens what is readable while a signal waits that is blocked now and that the mask lets
 * through. */
int os_signals_open(const sigset_t *mask);

/* Wait as poll() and select(), at most `timeout` ms (-1: for ever), with this mask of signals in
 * force (NULL: as it is). A signal ends the wait, or has made one of the descriptors readable. */
int os_wait_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask);
int os_wait_select(int fd_n, fd_set *readable, fd_set *writable, int timeout, const sigset_t *mask);
