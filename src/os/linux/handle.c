/* SPDX-License-Identifier: BSD-2-Clause */
/* A handle is a pidfd, which is readable when the process has ended, reaped or not. */
#include "os/handle.h"

#include <assert.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <unistd.h>

int process_handle_open(pid_t pid)
{
    assert(pid > 0);
    return pidfd_open(pid, 0);
}

void process_handle_close(int handle)
{
    assert(handle >= 0);
    close(handle);
}

bool process_handle_has_ended(int handle)
{
    struct pollfd ended = { .fd = handle, .events = POLLIN };

    assert(handle >= 0);
    return poll(&ended, 1, 0) == 1;
}

bool process_handle_is_exact(void)
{
    return true;
}

int process_handle_signal(int handle, int number)
{
    return pidfd_send_signal(handle, number, NULL, 0);
}

int process_handle_descriptor(int handle)
{
    return handle;
}

void process_handle_wait(int handle, int ms)
{
    struct pollfd ended = { .fd = handle, .events = POLLIN };

    poll(&ended, 1, handle != -1 ? ms : 1);
}
