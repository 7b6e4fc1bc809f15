/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the events of a source, then does what the test says. */
#include "support/watched.h"

static void run_event(struct source *source, enum event_direction direction)
{
    struct watched *watched = container_of(source, struct watched, source);

    watched->runs[direction]++;
    if (watched->run != NULL)
        watched->run(watched, direction);
    else
        source->events[direction].ready = false;
}

static void run_read(struct loop *loop, struct source *source)
{
    (void)loop;
    run_event(source, EVENT_READ);
}

static void run_write(struct loop *loop, struct source *source)
{
    (void)loop;
    run_event(source, EVENT_WRITE);
}

static const struct source_ops watched_ops = {
    .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write },
};

struct watched *watched_create(struct fixture *fixture, int fd)
{
    struct source *source = source_get(&fixture->loop->sources);
    struct watched *watched = container_of(source, struct watched, source);

    ck_assert_ptr_nonnull(source);
    source->fd = fd;
    source->ops = &watched_ops;
    source->io = fixture->loop->mechanism->io;
    source->io_state = fixture->loop->mechanism_state;
    watched->fixture = fixture;
    return watched;
}

struct watched *watched_create_armed(struct fixture *fixture, int fd)
{
    struct watched *watched = watched_create(fixture, fd);

    ck_assert_int_eq(source_arm_both(fixture->loop, &watched->source), 0);
    return watched;
}

void watched_close(struct fixture *fixture, struct watched **watched)
{
    source_close(fixture->loop, &(*watched)->source, false);
    *watched = NULL;
}

struct io_result watched_recv(struct watched *watched, void *p, size_t n)
{
    struct io_span span = { p, n };

    return watched->source.io->recv(&watched->source, &span);
}

struct io_result watched_send(struct watched *watched, const void *p, size_t n)
{
    struct iovec piece = { (void *)p, n };

    return watched->source.io->send(&watched->source, &piece, 1);
}
