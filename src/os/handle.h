/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles of processes that are not our children, or that only foreign code could have reaped. On
 * Linux (os/linux/handle.c) a handle is a descriptor of the process, which no later process with the
 * same number is taken for. Elsewhere (os/posix/handle.c) it is the number itself, and who uses it
 * must bear that the number may be another process's by then. -1 is no handle. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Opens a handle, which the caller closes; -1 with errno, ESRCH where there is no such process. */
int process_handle_open(pid_t pid);
void process_handle_close(int handle);
/* Whether the process has ended, reaped or, as far as the system tells, not. */
bool process_handle_has_ended(int handle);
/* Whether the system tells of the end of a process that is not reaped. */
bool process_handle_is_exact(void);
/* Sends a signal, as kill() does; 0 sends none. -1 with errno. */
int process_handle_signal(int handle, int number);
/* Returns a descriptor that is readable once the process has ended, and stays the handle's; -1
 * where there is none, and process_handle_has_ended() is to be asked now and then. */
int process_handle_descriptor(int handle);
/* Sleeps until the process has ended, at most this long, and where nothing tells of the end, or
 * without a handle (-1), only a little while. */
void process_handle_wait(int handle, int ms);
