/* SPDX-License-Identifier: BSD-2-Clause */
/* A handle is the process's number. A process that has ended has its number until its parent has
 * reaped it, and is not told from one that runs. */
#include "os/handle.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>

#define PAUSE_MS 2

int process_handle_open(pid_t pid)
{
    assert(pid > 0);
    return kill(pid, 0) == 0 || errno == EPERM ? (int)pid : -1;
}

void process_handle_close(int handle)
{
    assert(handle > 0);
}

bool process_handle_has_ended(int handle)
{
    assert(handle > 0);
    return kill((pid_t)handle, 0) == -1 && errno == ESRCH;
}

bool process_handle_is_exact(void)
{
    return false;
}

int process_handle_signal(int handle, int number)
{
    assert(handle > 0);
    return kill((pid_t)handle, number);
}

int process_handle_descriptor(int handle)
{
    assert(handle > 0);
    return -1;
}

void process_handle_wait(int handle, int ms)
{
    (void)handle;
    poll(NULL, 0, ms < PAUSE_MS ? ms : PAUSE_MS);
}
