/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and closes a generation's bells together, in the master, and rings them, in workers. */
#include "process/bells.h"

#include "os/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void bells_open(struct bells *bells, unsigned n)
{
    *bells = (struct bells) { .fds = NULL };
    if (n < 2 || n > BELLS_MAX)
        return;
    bells->fds = malloc(2 * n * sizeof(bells->fds[0]));
    if (bells->fds == NULL)
        return;
    for (unsigned i = 0; i < 2 * n; i++)
        bells->fds[i] = -1;
    bells->n = n;
    bells->fd_n = 2 * n;
    for (unsigned i = 0; i < n; i++) {
        int ends[2];

        if (os_bell_open(ends) == -1) {
            bells_close(bells);
            return;
        }
        bells->fds[i] = ends[0];
        if (ends[1] == ends[0])
            bells->fd_n = n;
        else
            bells->fds[n + i] = ends[1];
    }
}

void bells_close(struct bells *bells)
{
    for (unsigned i = 0; i < bells->fd_n; i++)
        if (bells->fds[i] != -1)
            close(bells->fds[i]);
    free(bells->fds);
    *bells = (struct bells) { .fds = NULL };
}

void bells_ring(const struct bells *bells, unsigned i)
{
    int end;

    assert(i < bells->n);
    end = bells->fds[bells->fd_n - bells->n + i];
    if (os_bell_ring(end) == -1 && errno == EAGAIN) {
        bells_quiet(bells, i);
        os_bell_ring(end);
    }
}

void bells_quiet(const struct bells *bells, unsigned i)
{
    assert(i < bells->n);
    os_bell_quiet(bells->fds[i]);
}
