/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals where the mechanism's wait takes no mask: they are blocked but around the wait, and their
 * handlers write a byte to a pipe that the loop watches. A signal between the mask's change and the
 * wait has thus made the pipe readable, so that no wait begins after it and sleeps. Handlers never
 * run outside of the wait; nothing else of the worker is interrupted by a signal. */
#include "event/loop.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The handlers have run when their bytes are here: nothing else is to be done. */
static void pipe_readable(struct loop *loop, struct source *source)
{
    char bytes[64];
    ssize_t n;

    assert(source == loop->signaler);
    do
        n = read(source->fd, bytes, sizeof(bytes));
    while (n == (ssize_t)sizeof(bytes) || (n == -1 && errno == EINTR));
    source->events[EVENT_READ].ready = false;
}

static const struct source_ops pipe_ops = { .run = { [EVENT_READ] = pipe_readable } };

int loop_open_signal_pipe(struct loop *loop)
{
    int ends[2] = { -1, -1 };

    assert(loop->signaler == NULL && loop->signal_fd == -1 && loop->wait_mask != NULL);
    if (descriptor_pipe(ends, O_NONBLOCK) == 0)
        loop->signal_fd = ends[1];
    loop->signaler = loop_watch_own(loop, ends[0], QUEUE_NONE, &pipe_ops, "pipe()");
    return loop->signaler == NULL ? -1 : 0;
}

/* A process with threads has no defined sigprocmask() but on some systems. */
void loop_let_signals(const struct loop *loop, sigset_t *blocked)
{
    if (loop->wait_mask != NULL)
        pthread_sigmask(SIG_SETMASK, loop->wait_mask, blocked);
}

void loop_hold_signals(const struct loop *loop, const sigset_t *blocked)
{
    if (loop->wait_mask != NULL)
        pthread_sigmask(SIG_SETMASK, blocked, NULL);
}
