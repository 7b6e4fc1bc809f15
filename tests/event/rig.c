/* SPDX-License-Identifier: BSD-2-Clause */
#include "event/rig.h"

#include <sys/mman.h>
#include <unistd.h>

#define TURNS_MAX 100000

static void run(struct fb_source *source, enum fb_direction direction)
{
    struct thing *thing = fb_container(source, struct thing, source);

    thing->runs[direction]++;
    if (thing->run != NULL)
        thing->run(thing, direction);
    else
        source->events[direction].ready = false;
}

static void run_read(struct fb_loop *loop, struct fb_source *source)
{
    (void)loop;
    run(source, FB_READ);
}

static void run_write(struct fb_loop *loop, struct fb_source *source)
{
    (void)loop;
    run(source, FB_WRITE);
}

static const struct fb_source_ops thing_ops = {
    .run = { [FB_READ] = run_read, [FB_WRITE] = run_write },
};

static struct rig *set_up(struct fb_sim *sim, uint32_t n, bool edge)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct fb_loop_options options = {
        .mechanism = edge ? fb_sim_edge(sim) : fb_sim_level(sim),
        .slots = n,
        .stride = sizeof(struct thing),
    };

    ck_assert_ptr_nonnull(rig);
    rig->sim = sim;
    rig->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(rig->target.fd, -1);
    fb_log_init(&rig->log, &rig->target, 1);
    options.log = &rig->log;
    ck_assert_int_eq(fb_loop_init(&rig->loop, &options), 0);
    return rig;
}

struct rig *rig_set_up(uint32_t n)
{
    return set_up(fb_sim_create(), n, true);
}

struct rig *rig_beside(struct rig *other, uint32_t n, bool edge)
{
    return set_up(other->sim, n, edge);
}

void rig_tear_down_loop(struct rig *rig)
{
    fb_loop_done(&rig->loop);
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
    struct fb_sim *sim = rig->sim;

    fb_sim_on_fault(sim, fault, NULL);
    rig_tear_down_loop(rig);
    fb_sim_destroy(&sim);
    ck_assert_ptr_null(sim);
}

struct thing *rig_thing(struct rig *rig, int fd)
{
    struct fb_source *source = fb_source_get(&rig->loop.sources);

    ck_assert_ptr_nonnull(source);
    source->fd = fd;
    source->ops = &thing_ops;
    source->io = rig->loop.mechanism->io;
    source->io_state = rig->loop.mechanism_state;
    return fb_container(source, struct thing, source);
}

struct thing *rig_watch(struct rig *rig, int fd)
{
    struct thing *thing = rig_thing(rig, fd);

    ck_assert_int_eq(fb_source_arm_both(&rig->loop, &thing->source), 0);
    return thing;
}

void rig_close(struct rig *rig, struct thing **thing)
{
    fb_source_close(&rig->loop, &(*thing)->source, false);
    *thing = NULL;
}

void rig_turn(struct rig *rig, int timeout)
{
    fb_loop_promote(&rig->loop);
    fb_loop_wait(&rig->loop, timeout);
    fb_loop_run(&rig->loop, FB_QUEUE_ACCEPT);
    fb_timers_expire(&rig->loop);
    fb_loop_run(&rig->loop, FB_QUEUE_NORMAL);
}

void rig_run(struct rig *rig)
{
    for (int turns = 0; !fb_sim_idle(&rig->loop); turns++) {
        fb_must(turns < TURNS_MAX);
        rig_turn(rig, 0);
    }
}

struct fb_io_result rig_recv(struct thing *thing, void *p, size_t n)
{
    struct fb_span span = { p, n };

    return thing->source.io->recv(&thing->source, &span);
}

struct fb_io_result rig_send(struct thing *thing, const void *p, size_t n)
{
    struct iovec piece = { (void *)p, n };

    return thing->source.io->send(&thing->source, &piece, 1);
}
