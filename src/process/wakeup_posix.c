/* SPDX-License-Identifier: BSD-2-Clause */
/* The set is a list for poll(), whose first entry is a pipe: handlers of signals write a byte to
 * it, so that a signal between the mask's change and the poll() ends that at once. Descriptors that
 * were closed without a word are dropped when poll() says so; all others are in the list once. */
#include "process/wakeup.h"

#include "os/descriptor.h"
#include "process/signals.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_SIZE 64u

enum { SIGNALS, FIRST };

static struct pollfd *list; /* list[SIGNALS] is the pipe's, once there is one */
static unsigned list_n, list_size;
static int signal_fd = -1; /* handlers write to it */

static const short wanted[] = { [WAKEUP_INPUT] = POLLIN, [WAKEUP_OUTPUT] = POLLOUT };

static int make_room(void)
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

int wakeup_begin(void)
{
    int ends[2];

    if (make_room() == -1 || descriptor_pipe(ends, O_NONBLOCK) == -1)
        return -1;
    if (list[SIGNALS].fd != -1) { /* the process has another one that has forked us */
        close(list[SIGNALS].fd);
        close(signal_fd);
    }
    list[SIGNALS].fd = ends[0];
    signal_fd = ends[1];
    signals_wake_by(signal_fd);
    return 0;
}

static struct pollfd *find(int fd)
{
    for (unsigned i = FIRST; i < list_n; i++)
        if (list[i].fd == fd)
            return &list[i];
    return NULL;
}

int wakeup_add(int fd)
{
    assert(fd >= 0);
    if (find(fd) != NULL) {
        wakeup_expect(fd, WAKEUP_INPUT);
        return 0;
    }
    if (make_room() == -1)
        return -1;
    list[list_n++] = (struct pollfd) { .fd = fd, .events = POLLIN };
    return 0;
}

void wakeup_expect(int fd, enum wakeup_event event)
{
    struct pollfd *entry = find(fd);

    assert(event <= WAKEUP_END);
    if (entry != NULL)
        entry->events = event == WAKEUP_END ? 0 : wanted[event];
}

static void drop(struct pollfd *entry)
{
    assert(entry >= &list[FIRST] && entry < &list[list_n]);
    *entry = list[--list_n];
}

void wakeup_remove(int fd)
{
    struct pollfd *entry = find(fd);

    if (entry != NULL)
        drop(entry);
}

/* The handlers have set their flags; the bytes say no more. */
static void empty_pipe(void)
{
    char bytes[64];
    ssize_t n;

    do
        n = read(list[SIGNALS].fd, bytes, sizeof(bytes));
    while (n == (ssize_t)sizeof(bytes) || (n == -1 && errno == EINTR));
}

static void take_events(void)
{
    bool any = false;

    if (list[SIGNALS].revents != 0)
        empty_pipe();
    for (unsigned i = list_n; i-- > FIRST;)
        if ((list[i].revents & POLLNVAL) != 0)
            drop(&list[i]);
        else
            any = any || list[i].revents != 0;
    if (any)
        signals_raise(COMMAND_CHANNEL);
}

void wakeup_sleep(void)
{
    sigset_t blocked;
    int n;

    assert(list_n >= FIRST && list[SIGNALS].fd != -1 && signal_fd != -1);
    sigprocmask(SIG_SETMASK, signals_wait_mask(), &blocked);
    n = poll(list, list_n, -1);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    if (n > 0)
        take_events();
    else
        empty_pipe();
}
