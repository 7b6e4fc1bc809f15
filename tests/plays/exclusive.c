/* SPDX-License-Identifier: BSD-2-Clause */
/* Exclusive watches: a new client notifies the watches of its listener in the order of adding, up
 * to the first watch with a waiting worker, which wakes; further watches learn nothing of the
 * client. A notified watch reports at every wait, as long as clients are there. */
#include "plays/play_private.h"
#include "plays/whole.h"

#include "event/source.h"

#include <errno.h>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

static ino_t inode_of(int fd)
{
    struct stat st;

    test_require(fstat(fd, &st) == 0);
    return st.st_ino;
}

static bool has_client(const struct source *source)
{
    struct pollfd one = { .fd = source->fd, .events = POLLIN };

    return poll(&one, 1, 0) > 0;
}

void play_watch_add(struct play_process *process, struct source *source)
{
    struct play *play = process->play;
    struct play_watch *watch = calloc(1, sizeof(*watch)), *other;
    bool known = false;

    test_require(watch != NULL);
    *watch = (struct play_watch) {
        .process = process,
        .source = source,
        .socket = inode_of(source->fd),
        .told = has_client(source),
    };
    TAILQ_FOREACH (other, &play->watches, link)
        known = known || other->socket == watch->socket;
    if (!known)
        play_process_pass(process, PLAY_PASSES_LISTENER, &source->fd, 1);
    TAILQ_INSERT_TAIL(&play->watches, watch, link);
}

static void remove_watch(struct play *play, struct play_watch *watch)
{
    TAILQ_REMOVE(&play->watches, watch, link);
    free(watch);
}

void play_watch_remove(struct play_process *process, const struct source *source)
{
    struct play_watch *watch, *next;

    TAILQ_FOREACH_SAFE (watch, &process->play->watches, link, next)
        if (watch->process == process && watch->source == source)
            remove_watch(process->play, watch);
}

void play_watch_remove_all(struct play_process *process)
{
    struct play_watch *watch, *next;

    TAILQ_FOREACH_SAFE (watch, &process->play->watches, link, next)
        if (watch->process == process)
            remove_watch(process->play, watch);
}

bool play_watch_has_event(struct play_process *process)
{
    struct play_watch *watch;
    bool any = false;

    TAILQ_FOREACH (watch, &process->play->watches, link)
        if (watch->process == process && watch->told) {
            watch->told = has_client(watch->source);
            any = any || watch->told;
        }
    return any;
}

void play_watch_report(
    struct play_process *process, void (*report)(void *arg, struct source *source), void *arg)
{
    struct play_watch *watch;

    TAILQ_FOREACH (watch, &process->play->watches, link)
        if (watch->process == process && watch->told)
            report(arg, watch->source);
}

/* The test keeps no descriptor of the listener, because it would keep the queue: the kernel watches
 * on as long as a process holds a descriptor. */
void play_watch_take(struct play *play, int fd)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = inode_of(fd) };

    test_require(epoll_ctl(play->arrivals, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST);
    close(fd);
    play_watch_step(play); /* clients that wait already tell nobody */
}

static bool is_waiting(struct play_process *process)
{
    const struct play_whole *whole = process->whole;

    return whole->waits && !whole->woken && !process->stopped && !play_process_is_runnable(process);
}

static void tell(struct play *play, ino_t socket)
{
    struct play_watch *watch;

    TAILQ_FOREACH (watch, &play->watches, link) {
        if (watch->socket != socket)
            continue;
        if (is_waiting(watch->process)) {
            watch->told = watch->process->whole->woken = true;
            return;
        }
        watch->told = true;
        /* a stopped process looks again when it goes on, as from epoll_wait() with EINTR */
        watch->process->whole->woken = watch->process->whole->waits;
    }
}

void play_watch_step(struct play *play)
{
    struct epoll_event events[16];
    int n;

    while ((n = epoll_wait(play->arrivals, events, 16, 0)) > 0)
        for (int i = 0; i < n; i++)
            tell(play, (ino_t)events[i].data.u64);
}
