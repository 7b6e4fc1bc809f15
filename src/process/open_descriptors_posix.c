/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries each number: many at once by poll(), which says of a closed one that it is not valid. No
 * process of ours has descriptors above LISTED_MAX but connections, which are neither listed nor
 * inherited; closefrom() of libbsd closes those all the same. */
#include "process/open_descriptors.h"

#include <bsd/unistd.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#define LISTED_MAX 65536u
#define BATCH 256u

static unsigned first_unlisted(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur > LISTED_MAX)
        return LISTED_MAX;
    return (unsigned)limit.rlim_cur;
}

void open_descriptors_visit(void (*visit)(void *arg, int fd), void *arg)
{
    unsigned end = first_unlisted();
    struct pollfd batch[BATCH];

    for (unsigned first = 0; first < end; first += BATCH) {
        unsigned n = end - first < BATCH ? end - first : BATCH;

        for (unsigned i = 0; i < n; i++)
            batch[i] = (struct pollfd) { .fd = (int)(first + i) };
        if (poll(batch, n, 0) == -1)
            return;
        for (unsigned i = 0; i < n; i++)
            if ((batch[i].revents & POLLNVAL) == 0)
                visit(arg, batch[i].fd);
    }
}

void open_descriptors_close(unsigned first, unsigned last)
{
    if (last == UINT_MAX) {
        closefrom((int)first);
        return;
    }
    for (unsigned fd = first; fd <= last; fd++)
        close((int)fd);
}
