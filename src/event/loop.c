/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a loop: made, checked, closed. Never runs a handler. */
#include "event/loop.h"

#include "os/descriptor.h"
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Slots for the loop's own sources. */
#define OWN_SLOTS 3

static void close_mechanism(struct loop *loop)
{
    if (loop->mechanism->done != NULL)
        loop->mechanism->done(loop);
    descriptor_close(loop->mechanism_fd);
    free(loop->mechanism_state);
    loop->mechanism_state = NULL;
}

/* Makes the mechanism's state; false with errno. */
static bool open_mechanism(struct loop *loop, const int64_t *values)
{
    const struct mechanism *mechanism = loop->mechanism;
    int error;

    for (int i = 0; i < MECHANISM_OPTIONS; i++)
        assert(values[i] >= mechanism->options[i].least &&
               values[i] <= mechanism->options[i].greatest);
    loop->mechanism_state = calloc(1, mechanism->state_size);
    if (loop->mechanism_state == NULL)
        return false;
    if (mechanism->open != NULL)
        loop->mechanism_fd = mechanism->open();
    if ((mechanism->open == NULL ||
            (loop->mechanism_fd != -1 && fcntl(loop->mechanism_fd, F_SETFD, FD_CLOEXEC) != -1)) &&
        (mechanism->init == NULL || mechanism->init(loop, values) == 0))
        return true;
    error = errno;
    close_mechanism(loop);
    errno = error;
    return false;
}

static void close_tables(struct loop *loop)
{
    munmap(loop->found.first, (size_t)((char *)loop->found.end - (char *)loop->found.first));
    source_table_done(&loop->sources);
}

int loop_init(struct loop *loop, const struct loop_options *options)
{
    size_t found_n = EVENT_DIRECTIONS * ((size_t)options->slots + OWN_SLOTS);

    *loop = (struct loop) {
        .mechanism = options->mechanism,
        .read_clock =
            options->mechanism->read_clock != NULL ? options->mechanism->read_clock : clock_read,
        .log = options->log,
        .wait_mask = options->wait_mask,
        .turn = 1, /* 0: of an event that has not run */
        .mechanism_fd = -1,
        .notify_fd = -1,
        .signal_fd = -1,
        .checked = DEBUG_BUILD || options->mechanism->self != NULL,
        .noticeable = DEBUG_BUILD || options->mechanism->self != NULL,
    };
    mechanism_check(options->mechanism);
    assert(options->slots < UINT32_MAX - OWN_SLOTS);
    for (int i = 0; i < QUEUES; i++)
        TAILQ_INIT(&loop->queues[i]);
    timers_init(&loop->timers, &loop->clock, loop);
    loop->read_clock(&loop->clock);

    if (source_table_init(&loop->sources, options->slots + OWN_SLOTS, options->stride) == 0)
        loop->found.first = os_memory_reserve(found_n * sizeof(loop->found.first[0]));
    if (loop->found.first == NULL) {
        log_write(loop->log, LEVEL_EMERG, errno, "no memory for %u connections", options->slots);
        source_table_done(&loop->sources);
        return -1;
    }
    loop->found.next = loop->found.first;
    loop->found.end = loop->found.first + found_n;
    if (!open_mechanism(loop, options->mechanism_values.of)) {
        log_write(loop->log, LEVEL_EMERG, errno, "the event mechanism \"%s\" could not be started",
            loop->mechanism->name);
        close_tables(loop);
        return -1;
    }
    if (loop->wait_mask == NULL || loop->mechanism->self != NULL || /* a simulation: no signals */
        loop_watch_signals(loop) == 0)
        return 0;
    loop_done(loop);
    return -1;
}

void loop_done(struct loop *loop)
{
    struct source *const own[] = { loop->notifier, loop->ticker, loop->signaler };

    for (size_t i = 0; i < countof(own); i++)
        if (own[i] != NULL)
            source_close(loop, own[i], false);
    descriptor_close(loop->notify_fd);
    descriptor_close(loop->signal_fd);
    if (loop->sources.in_use_n > 0) { /* left open by owners: the process still ends as planned */
        for (uint32_t i = 0; i < loop->sources.used_n; i++) {
            struct source *source = source_at(&loop->sources, i);

            if (!source->in_use)
                continue;
            log_write(loop->log, LEVEL_ALERT, 0,
                "descriptor %d is left open in slot %" PRIu32 " at the end of the loop", source->fd,
                i);
            source_close(loop, source, false);
        }
        log_debug_point(loop->log, "descriptors are left open");
    }
    assert(loop->sources.in_use_n == 0);
    close_mechanism(loop);
    close_tables(loop);
}

void loop_check(const struct loop *loop)
{
    size_t posted_n = loop_count_found(loop), found_n = 0;
    uint32_t in_use_n = 0;
    struct event *event;

    assert(loop->mechanism_state != NULL);
    assert(loop->timers.clock == &loop->clock && loop->timers.loop == loop);
    assert(loop->notifier == NULL || (loop->notifier->in_use && loop->notified != NULL));
    assert(loop->ticker == NULL || loop->ticker->queue == QUEUE_NONE);
    assert((loop->ticker == NULL) == (loop->wait_ticks == NULL));
    assert(loop->signaler == NULL || loop->wait_mask != NULL);
    assert(loop->signal_fd == -1 || (loop->signaler != NULL && !loop->mechanism->masks));
    assert(loop->found.first <= loop->found.next && loop->found.next <= loop->found.end);
    assert(loop->noticeable == (loop->checked || loop->wait_error != 0));
    assert(TAILQ_EMPTY(&loop->queues[QUEUE_NONE]));
    for (int queue = QUEUE_NONE + 1; queue < QUEUES; queue++)
        TAILQ_FOREACH (event, &loop->queues[queue], link) {
            assert(event->queue == queue);
            assert(source_index(&loop->sources, source_of(event)) < loop->sources.used_n);
            assert(source_of(event)->in_use);
            assert(source_of(event)->ops->run[event->direction] != NULL);
            posted_n++;
        }
    for (uint32_t i = 0; i < loop->sources.used_n; i++) {
        const struct source *source = source_at(&loop->sources, i);

        if (!source->in_use)
            continue;
        source_check(source);
        in_use_n++;
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
            found_n += source->events[direction].queue != QUEUE_NONE;
    }
    assert(in_use_n == loop->sources.in_use_n && found_n == posted_n);
    source_table_check(&loop->sources);
    timers_check(&loop->timers);
}
