/* SPDX-License-Identifier: BSD-2-Clause */
/* The pipes of a generation's workers: opened and closed together by the master. Each worker
 * watches the reading end of its own and writes to the others'. A full pipe rings already. */
#include "process/bells.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Somebody may fill a pipe faster than it is emptied. */
#define READS_MAX 32

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

        if (descriptor_pipe(ends, O_NONBLOCK) == -1) {
            bells_close(bells);
            return;
        }
        bells->fds[i] = ends[0];
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
    assert(i < bells->n);
    while (write(bells->fds[bells->n + i], "", 1) == -1 && errno == EINTR)
        ;
}

void bells_quiet(const struct bells *bells, unsigned i)
{
    char bytes[4096];
    ssize_t n = sizeof(bytes);

    assert(i < bells->n);
    for (int reads = 0; reads < READS_MAX; reads++) {
        n = read(bells->fds[i], bytes, sizeof(bytes));
        if (n < (ssize_t)sizeof(bytes) && (n != -1 || errno != EINTR))
            return;
    }
}
