/* SPDX-License-Identifier: BSD-2-Clause */
/* Wakes by pipes. The set is a list for poll(), which reports states. Signal handlers write to a
 * pipe, the first entry, so that a signal between the mask's change and poll() ends the poll() at
 * once. Closed descriptors are dropped when poll() reports them; open ones are listed once. */
#include "os/wakeup.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_SIZE 64u
#define READS_MAX 32 /* a writer may fill a pipe faster than we empty it */

enum { SIGNALS, FIRST };

static struct pollfd *list; /* list[SIGNALS] is the signal pipe, once opened */
static unsigned list_n, list_size;
static int signal_fd = -1; /* handlers write to it */

static int make_list_room(void)
{
    unsigned size = list_size > 0 ? 2 * list_size : FIRST_SIZE;
    struct pollfd *larger;

    if (list_n < list_size)
        return 0;
    larger = realloc(list, size * sizeof(*larger));
    if (larger == NULL)
        return -1;
    list = larger;
    list_size = size;
    if (list_n == 0)
        list[list_n++] = (struct pollfd) { .fd = -1, .events = POLLIN };
    return 0;
}

int os_wakeup_begin(int *signals)
{
    int ends[2];

    if (make_list_room() == -1 || descriptor_pipe(ends, O_NONBLOCK) == -1)
        return -1;
    if (list[SIGNALS].fd != -1) { /* inherited: the pipe is the parent's */
        close(list[SIGNALS].fd);
        close(signal_fd);
    }
    list[SIGNALS].fd = ends[0];
    *signals = signal_fd = ends[1];
    return 0;
}

static struct pollfd *find_list_entry(int fd)
{
    for (unsigned i = FIRST; i < list_n; i++)
        if (list[i].fd == fd)
            return &list[i];
    return NULL;
}

int os_wakeup_add(int fd)
{
    assert(fd >= 0);
    if (find_list_entry(fd) != NULL) {
        os_wakeup_expect(fd, WAKEUP_INPUT);
        return 0;
    }
    if (make_list_room() == -1)
        return -1;
    list[list_n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
    return 0;
}

void os_wakeup_expect(int fd, enum wakeup_event event)
{
    static const short wanted[] = { POLLIN, POLLOUT, 0 };
    struct pollfd *entry = find_list_entry(fd);

    assert(event <= WAKEUP_END);
    if (entry != NULL)
        entry->events = wanted[event];
}

static void drop_entry(struct pollfd *entry)
{
    assert(entry >= &list[FIRST] && entry < &list[list_n]);
    *entry = list[--list_n];
}

void os_wakeup_remove(int fd)
{
    struct pollfd *entry = find_list_entry(fd);

    if (entry != NULL)
        drop_entry(entry);
}

/* Handlers have set their flags; the bytes in the pipe carry nothing else. */
bool os_wakeup_sleep(const sigset_t *mask)
{
    bool any = false;
    int n;

    assert(list_n >= FIRST && list[SIGNALS].fd != -1 && signal_fd != -1);
    n = os_wait_poll(list, list_n, -1, mask);
    if (n <= 0 || list[SIGNALS].revents != 0)
        os_bell_quiet(list[SIGNALS].fd);
    for (unsigned i = list_n; n > 0 && i-- > FIRST;)
        if ((list[i].revents & POLLNVAL) != 0)
            drop_entry(&list[i]);
        else
            any = any || list[i].revents != 0;
    return any;
}

int os_bell_open(int ends[2])
{
    return descriptor_pipe(ends, O_NONBLOCK);
}

int os_bell_ring(int end)
{
    ssize_t n;

    do
        n = write(end, "", 1);
    while (n == -1 && errno == EINTR);
    return n == -1 ? -1 : 0;
}

void os_bell_quiet(int end)
{
    char bytes[4096];

    for (int reads = 0; reads < READS_MAX; reads++) {
        ssize_t n = read(end, bytes, sizeof(bytes));

        if (n < (ssize_t)sizeof(bytes) && (n != -1 || errno != EINTR))
            return;
    }
}

int os_ticks_open(uint64_t ms)
{
    (void)ms;
    errno = ENOSYS;
    return -1;
}

int os_signals_open(const sigset_t *mask)
{
    (void)mask;
    errno = ENOSYS;
    return -1;
}

/* Lets signals through around a wait: pselect() may deliver none while descriptors are ready. */
static void let_signals(const sigset_t *mask, sigset_t *blocked)
{
    if (mask != NULL)
        pthread_sigmask(SIG_SETMASK, mask, blocked);
}

int os_wait_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask)
{
    sigset_t blocked;
    int count;

    let_signals(mask, &blocked);
    count = poll(fds, n, timeout);
    let_signals(mask != NULL ? &blocked : NULL, NULL);
    return count;
}

int os_wait_select(int fd_n, fd_set *readable, fd_set *writable, int timeout, const sigset_t *mask)
{
    struct timeval limit = { timeout / 1000, timeout % 1000 * 1000 };
    sigset_t blocked;
    int count;

    let_signals(mask, &blocked);
    count = select(fd_n, readable, writable, NULL, timeout == -1 ? NULL : &limit);
    let_signals(mask != NULL ? &blocked : NULL, NULL);
    return count;
}
