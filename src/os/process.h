/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes: attributes of this process, handles of foreign processes, processors, words of an
 * errno. A failure is -1 with errno. Attributes that the system lacks are ignored. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Allows core dumps again, forbidden by a change of the user. */
int os_process_allow_dumps(void);
/* Forbids core dumps, and this process's memory to other processes of the user. */
int os_process_forbid_dumps(void);
/* Keeps root's capabilities over a change of the user. */
int os_process_keep_capabilities(void);
/* Drops all capabilities, perhaps but CAP_NET_RAW, to connect from foreign addresses. 0; 1: the
 * process has not had CAP_NET_RAW; -1 with errno. */
int os_process_drop_capabilities(bool but_net_raw);
/* Makes this process the subreaper of orphaned descendants. */
int os_process_adopt_orphans(void);
/* Ends this child process with the parent or, where the system cannot, after so many seconds. */
void os_process_end_with_parent(unsigned seconds);
/* Returns the executed path, the caller's to free; NULL with errno. */
char *os_process_binary(void);
/* Counts this process's threads; 0: unknown. */
unsigned os_thread_count(void);
/* Handles of foreign processes: a pidfd, safe from pid reuse, or else the pid; -1: none. */
/* Opens a handle; ESRCH: the pid is unused. */
int os_handle_open(pid_t pid);
void os_handle_close(int handle);
/* Whether the process has ended, reaped or, if os_handle_is_exact, unreaped. */
bool os_handle_has_ended(int handle);
/* Whether the system tells of the end of an unreaped process. */
extern const bool os_handle_is_exact;
/* Sends a signal, as kill() does; 0 sends none. */
int os_handle_signal(int handle, int number);
/* Returns the handle's descriptor, readable after the end; -1: poll os_handle_has_ended(). */
int os_handle_descriptor(int handle);
/* Sleeps until the end of the process, at most so long, or shortly if the end is not told. */
void os_handle_wait(int handle, int ms);

/* Whether the system can bind processes to processors. */
extern const bool os_cpu_binds;
/* Sets and gives this process's affinity mask, bits in n words. */
int os_cpu_bind(const uint64_t *words, unsigned n);
int os_cpu_bound(uint64_t *words, unsigned n);
/* Opens the descriptor for os_cpu_count_runnable(); -1: missing. */
int os_cpu_open_load(void);
/* Counts the machine's threads that run or wait for a processor; -1: unknown. */
long os_cpu_count_runnable(int fd);
/* Counts the thread's, or else the process's, involuntary switches from the processor. */
long os_cpu_count_switches(void);
/* Returns the words for an errno as strerror() has them, in `text` (n bytes) or constant memory. */
const char *os_error_text(int error, char *text, size_t n);
