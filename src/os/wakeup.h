/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeps and their ends: the master's set of descriptors, bells between processes and threads,
 * ticks, and waits with a mask of signals. A failure is -1 with errno; ENOSYS: the system has no
 * such descriptor. Descriptors are the caller's; the set is the process's own. Never logs. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

/* Events of the set: input or a client, room to send, or only the end of the other side. */
enum wakeup_event { WAKEUP_INPUT, WAKEUP_OUTPUT, WAKEUP_END };

/* Begins the set, also in a child. *signals is for signal handlers to write a byte to, or -1. */
int os_wakeup_begin(int *signals);
/* Adds a descriptor, and waits for input; repeated in a child. */
int os_wakeup_add(int fd);
/* Waits for another event of a descriptor, if it is in the set. */
void os_wakeup_expect(int fd, enum wakeup_event event);
/* Removes a descriptor, if it is in the set, before its close or at the end of interest. */
void os_wakeup_remove(int fd);
/* Sleeps with this mask. Returns whether a descriptor has had an event without SIGIO. */
bool os_wakeup_sleep(const sigset_t *mask);
/* Opens a bell: rings of ends[1] make ends[0] readable. Both may be the same descriptor. */
int os_bell_open(int ends[2]);
/* Rings, and never waits. EAGAIN: the bell is full of rings. */
int os_bell_ring(int end);
/* Takes all rings of a bell, or the past ticks. */
void os_bell_quiet(int end);
/* Opens a timer that is readable every `ms`. */
int os_ticks_open(uint64_t ms);
/* Opens a descriptor, readable while a signal waits, blocked now and let through by the mask. */
int os_signals_open(const sigset_t *mask);
/* Wait as poll() and select(), at most `timeout` ms (-1: for ever), with the signal mask `mask`
 * (NULL: unchanged). A signal ends the wait, or has made a descriptor readable. */
int os_wait_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask);
int os_wait_select(int fd_n, fd_set *readable, fd_set *writable, int timeout, const sigset_t *mask);
