/* SPDX-License-Identifier: BSD-2-Clause */
#include "event/rig.h"

#include <sys/mman.h>
#include <unistd.h>

#define TURNS_MAX 100000

static void run(struct source *source, enum event_direction direction)
{
    struct thing *thing = container_of(source, struct thing, source);

    thing->runs[direction]++;
    if (thing->run != NULL)
        thing->run(thing, direction);
    else
        source->events[direction].ready = false;
}

static void run_read(struct loop *loop, struct source *source)
{
    (void)loop;
    run(source, EVENT_READ);
}

static void run_write(struct loop *loop, struct source *source)
{
    (void)loop;
    run(source, EVENT_WRITE);
}

static const struct source_ops thing_ops = {
    .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write },
};

static struct rig *set_up(struct sim *sim, uint32_t n, bool edge)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct loop_options options = {
        .mechanism = edge ? sim_edge(sim) : sim_level(sim),
        .slots = n,
        .stride = sizeof(struct thing),
    };

    ck_assert_ptr_nonnull(rig);
    rig->sim = sim;
    rig->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(rig->target.fd, -1);
    log_init(&rig->log, &rig->target, 1);
    options.log = &rig->log;
    ck_assert_int_eq(loop_init(&rig->loop, &options), 0);
    return rig;
}

struct rig *rig_set_up(uint32_t n)
{
    return set_up(sim_create(), n, true);
}

struct rig *rig_beside(struct rig *other, uint32_t n, bool edge)
{
    return set_up(other->sim, n, edge);
}

void rig_tear_down_loop(struct rig *rig)
{
    loop_done(&rig->loop);
    ck_assert_int_eq(lseek(rig->target.fd, 0, SEEK_END), 0); /* nothing was logged */
    close(rig->target.fd);
    free(rig);
}

static void fault(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

void rig_tear_down(struct rig *rig)
{
    struct sim *sim = rig->sim;

    sim_on_fault(sim, fault, NULL);
    rig_tear_down_loop(rig);
    sim_destroy(&sim);
    ck_assert_ptr_null(sim);
}

struct thing *rig_thing(struct rig *rig, int fd)
{
    struct source *source = source_get(&rig->loop.sources);

    ck_assert_ptr_nonnull(source);
    source->fd = fd;
    source->ops = &thing_ops;
    source->io = rig->loop.mechanism->io;
    source->io_state = rig->loop.mechanism_state;
    return container_of(source, struct thing, source);
}

struct thing *rig_watch(struct rig *rig, int fd)
{
    struct thing *thing = rig_thing(rig, fd);

    ck_assert_int_eq(source_arm_both(&rig->loop, &thing->source), 0);
    return thing;
}

void rig_close(struct rig *rig, struct thing **thing)
{
    source_close(&rig->loop, &(*thing)->source, false);
    *thing = NULL;
}

void rig_turn(struct rig *rig, int timeout)
{
    loop_promote(&rig->loop);
    loop_wait(&rig->loop, timeout);
    loop_run(&rig->loop, QUEUE_ACCEPT);
    timers_expire(&rig->loop);
    loop_run(&rig->loop, QUEUE_NORMAL);
}

void rig_run(struct rig *rig)
{
    for (int turns = 0; !sim_idle(&rig->loop); turns++) {
        test_require(turns < TURNS_MAX);
        rig_turn(rig, 0);
    }
}

struct io_result rig_recv(struct thing *thing, void *p, size_t n)
{
    struct io_span span = { p, n };

    return thing->source.io->recv(&thing->source, &span);
}

struct io_result rig_send(struct thing *thing, const void *p, size_t n)
{
    struct iovec piece = { (void *)p, n };

    return thing->source.io->send(&thing->source, &piece, 1);
}
