/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes: attributes of this process, handles of foreign processes, processors, and words of an
 * errno.
 *
 * A failure is -1 with errno. Attributes unknown to a system are set without an effect, and unknown
 * numbers are "unknown". Handles are the caller's. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Allows core dumps again, forbidden by a change of the user. */
int os_process_allow_dumps(void);
/* Keep CAP_NET_RAW alone of root's capabilities, to connect from addresses of others, over a change
 * of the user: the first comes before the change, the second after it. On a failure of the second
 * nothing is kept. */
int os_process_keep_capabilities(void);
int os_process_take_net_raw(void);
/* Makes this process the subreaper of orphaned descendants. */
int os_process_adopt_orphans(void);
/* Ends this child process when the parent ends; where the system cannot, after so many seconds. */
void os_process_end_with_parent(unsigned seconds);
/* Returns the path that the kernel has executed, the caller's to free; NULL with errno. */
char *os_process_binary(void);
/* Counts this process's threads; 0: unknown. */
unsigned os_thread_count(void);

/* Handles of processes we did not fork, or foreign code could have reaped. A handle is a pidfd,
 * safe from pid reuse; or, on a system without pidfds, the pid. -1 is no handle. */
/* Opens a handle; ESRCH: the pid is unused. */
int os_handle_open(pid_t pid);
void os_handle_close(int handle);
/* Whether the process has ended, reaped or, as far as the system tells, not. */
bool os_handle_has_ended(int handle);
/* Whether the system tells of the end of an unreaped process. */
bool os_handle_is_exact(void);
/* Sends a signal, as kill() does; 0 sends none. */
int os_handle_signal(int handle, int number);
/* Returns a descriptor that is readable after the process has ended, and stays the handle's; -1:
 * there is none, and os_handle_has_ended() is to be asked now and then. */
int os_handle_descriptor(int handle);
/* Sleeps until the process has ended, at most so long; without a report of the end, or without a
 * handle (-1), only a little while. */
void os_handle_wait(int handle, int ms);

/* Whether processes can be bound to processors: sets of bits, of n words. */
bool os_cpu_binds(void);
int os_cpu_bind(const uint64_t *words, unsigned n);
/* Gives this process's affinity mask. */
int os_cpu_bound(uint64_t *words, unsigned n);
/* Opens what os_cpu_count_runnable() reads; -1: it is missing. */
int os_cpu_open_load(void);
/* Counts the machine's threads running or waiting for a processor; -1: unknown. */
long os_cpu_count_runnable(int fd);
/* Counts the thread's switches from the processor; on a system without counts by thread, the
 * process's. */
long os_cpu_count_switches(void);

/* Returns the words for an errno as strerror() has them, in `text` (of n bytes) or in memory that
 * stays, for any thread. */
const char *os_error_text(int error, char *text, size_t n);
