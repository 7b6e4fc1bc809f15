/* SPDX-License-Identifier: BSD-2-Clause */
/* The eventfds of a generation's workers: opened and closed together by the master, rung by
 * workers. */
#include "process/bells.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

void bells_open(struct bells *bells, unsigned n)
{
    *bells = (struct bells) { .fds = NULL };
    if (n < 2 || n > BELLS_MAX)
        return;
    bells->fds = malloc(n * sizeof(bells->fds[0]));
    if (bells->fds == NULL)
        return;
    for (bells->n = 0; bells->n < n; bells->n++) {
        bells->fds[bells->n] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (bells->fds[bells->n] == -1) {
            bells_close(bells);
            return;
        }
    }
    bells->fd_n = bells->n;
}

void bells_close(struct bells *bells)
{
    for (unsigned i = 0; i < bells->n; i++)
        close(bells->fds[i]);
    free(bells->fds);
    *bells = (struct bells) { .fds = NULL };
}

void bells_ring(const struct bells *bells, unsigned i)
{
    static const uint64_t one = 1;

    assert(i < bells->n);
    if (write(bells->fds[i], &one, sizeof(one)) == -1 && errno == EAGAIN) {
        bells_quiet(bells, i);
        while (write(bells->fds[i], &one, sizeof(one)) == -1 && errno == EINTR)
            ;
    }
}

void bells_quiet(const struct bells *bells, unsigned i)
{
    uint64_t count;

    assert(i < bells->n);
    while (read(bells->fds[i], &count, sizeof(count)) == -1 && errno == EINTR)
        ;
}
