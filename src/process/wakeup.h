/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's sleep, and what ends it: signals, and descriptors that are in the set. On Linux
 * (wakeup_linux.c) a descriptor sends SIGIO once for each change, and the sleep is sigsuspend().
 * Elsewhere (wakeup_posix.c) the sleep is a poll(), which reports a state for as long as it lasts:
 * so the owner of a descriptor says what it waits for. Both give COMMAND_CHANNEL. The set is the
 * process's own. */
#pragma once

/* Events of a descriptor that can be waited for: something to receive or to accept, room to send,
 * or only that the other end goes. */
enum wakeup_event { WAKEUP_INPUT, WAKEUP_OUTPUT, WAKEUP_END };

/* Makes this process wake by the descriptors of its set, after signals_install(), and in a child
 * that goes on as the master; -1 with errno. */
int wakeup_begin(void);
/* Adds a descriptor, whose input is waited for; in a child of the process that has added it, again.
 * -1 with errno. */
int wakeup_add(int fd);
/* Waits for something else on a descriptor of the set; ignored for one that is not in it. */
void wakeup_expect(int fd, enum wakeup_event event);
/* Takes a descriptor out of the set, before it is closed or because its state is of no interest any
 * more; ignored where it is not in it. */
void wakeup_remove(int fd);
/* Sleeps until a signal or a descriptor of the set ends it, with signals_wait_mask(). */
void wakeup_sleep(void);
