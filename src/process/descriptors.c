/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the descriptors for a child to keep, before the fork, and closes all others by ranges,
 * in the child. Never closes by an incomplete set. */
#include "process/descriptors.h"

#include "os/proc.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_SIZE 16u

void descriptors_add(struct descriptors *set, int fd)
{
    assert(set->n <= set->size);
    assert(fd >= -1);
    if (fd == -1)
        return;
    if (set->n == set->size) {
        unsigned size = set->size > 0 ? 2 * set->size : FIRST_SIZE;
        int *larger = realloc(set->fds, size * sizeof(*larger));

        if (larger == NULL) {
            set->failed = true;
            return;
        }
        set->fds = larger;
        set->size = size;
    }
    set->fds[set->n++] = fd;
}

void descriptors_add_target(struct descriptors *set, const struct log_target *target)
{
    descriptors_add(set, target->fd);
    if (target->journal)
        descriptors_add(set, target->journal_fd);
}

void descriptors_add_all(struct descriptors *set, const struct descriptors *other)
{
    assert(set != other);
    for (unsigned i = 0; i < other->n; i++)
        descriptors_add(set, other->fds[i]);
    set->failed = set->failed || other->failed;
}

static int compare_descriptors(const void *a, const void *b)
{
    int one = *(const int *)a, other = *(const int *)b;

    return (one > other) - (one < other);
}

/* Walks two lists in ascending order. */
void descriptors_find_open(struct descriptors *set, const struct descriptors *except)
{
    unsigned open_n, n = 0, next = 0;

    assert(set->fds == NULL);
    set->failed = !os_descriptors_list(&set->fds, &open_n);
    for (unsigned i = 1; i < open_n; i++)
        if (set->fds[i - 1] > set->fds[i]) { /* an emulated kernel may list in any order */
            qsort(set->fds, open_n, sizeof(set->fds[0]), compare_descriptors);
            break;
        }
    for (unsigned i = 0; i < open_n; i++) {
        while (except != NULL && next < except->n && except->fds[next] < set->fds[i])
            next++;
        if (except == NULL || next == except->n || except->fds[next] != set->fds[i])
            set->fds[n++] = set->fds[i];
    }
    set->n = set->size = n;
}

void descriptors_drop_closed(struct descriptors *set)
{
    unsigned n = 0;

    assert(set->n <= set->size);
    for (unsigned i = 0; i < set->n; i++)
        if (fcntl(set->fds[i], F_GETFD) != -1)
            set->fds[n++] = set->fds[i];
    set->n = n;
}

void descriptors_close_others(struct descriptors *set)
{
    unsigned next = STDERR_FILENO + 1;

    assert(!set->failed);
    if (set->n > 0)
        qsort(set->fds, set->n, sizeof(set->fds[0]), compare_descriptors);
    for (unsigned i = 0; i < set->n; i++) {
        unsigned fd = (unsigned)set->fds[i];

        assert(i == 0 || set->fds[i - 1] <= set->fds[i]);
        if (fd > next)
            os_descriptors_close(next, fd - 1);
        if (fd >= next)
            next = fd + 1;
    }
    os_descriptors_close(next, UINT_MAX);
}

void descriptors_done(struct descriptors *set)
{
    free(set->fds);
    *set = (struct descriptors) { .fds = NULL };
}
