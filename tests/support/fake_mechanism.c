/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fake_private.h"

#include <errno.h>

static bool fake_available(void)
{
    return true;
}

static int fake_init(struct fb_loop *loop, int64_t option)
{
    (void)loop;
    (void)option;
    return 0;
}

static void fake_done(struct fb_loop *loop)
{
    struct fake_inner *s;

    STAILQ_FOREACH (s, &fake_kernel.sockets, link)
        ck_assert_ptr_ne(s->loop, loop);
}

/* Descriptors of the real kernel may be watched too, but nothing happens there. */
static struct fake_inner *of_or_real(const struct fb_source *source)
{
    if (source->fd < FAKE_FIRST_FD && fake_find(source->fd) == NULL)
        fake_listener(source->fd);
    return fake_of(source);
}

static int fake_add(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fake_inner *s = of_or_real(source);

    if (fake_kernel.refusal != 0) {
        errno = fake_kernel.refusal;
        return -1;
    }
    s->loop = loop;
    s->source = source;
    s->watched[direction] = true;
    if (direction == FB_WRITE)
        s->changed[FB_WRITE] = s->shown.room > 0 || s->send_error != 0;
    return 0;
}

static int fake_del(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fake_inner *s = fake_of(source);

    (void)loop;
    s->watched[direction] = false;
    if (!s->watched[!direction])
        s->loop = NULL;
    return 0;
}

/* Of edges: the loop remembers those that come meanwhile. */
static int fake_leave(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    (void)loop;
    fb_must(fake_of(source)->watched[direction]);
    return 0;
}

static int fake_add_conn(struct fb_loop *loop, struct fb_source *source)
{
    int result = fake_add(loop, source, FB_READ);

    return result == 0 ? fake_add(loop, source, FB_WRITE) : result;
}

static int fake_del_conn(struct fb_loop *loop, struct fb_source *source, bool closing)
{
    (void)closing;
    fake_del(loop, source, FB_READ);
    return fake_del(loop, source, FB_WRITE);
}

static int fake_add_listener(struct fb_loop *loop, struct fb_source *source, bool exclusive)
{
    struct fake_inner *s = fake_of(source);

    s->loop = loop;
    s->source = source;
    s->shown.listening = true;
    s->shown.exclusive = exclusive;
    return 0;
}

static int fake_del_listener(struct fb_loop *loop, struct fb_source *source)
{
    struct fake_inner *s = fake_of(source);

    (void)loop;
    ck_assert(s->shown.listening);
    s->loop = NULL;
    s->shown.listening = false;
    return 0;
}

static int fake_notify(struct fb_loop *loop)
{
    (void)loop;
    errno = ENOTSUP;
    return -1;
}

static bool has_end(const struct fake_inner *s)
{
    const struct fake_step *step;

    STAILQ_FOREACH (step, &s->steps, link)
        if (step->kind == FAKE_END)
            return true;
    return false;
}

static bool is_ready(const struct fake_inner *s, enum fb_direction direction)
{
    if (direction == FB_READ)
        return !STAILQ_EMPTY(&s->steps);
    return s->shown.room > 0 || s->send_error != 0;
}

static void report(struct fb_loop *loop, struct fake_inner *s, enum fb_direction direction)
{
    bool due = is_ready(s, direction) && (!loop->mechanism->edge || s->changed[direction]);

    if (!s->watched[direction] || !due)
        return;
    s->changed[direction] = false;
    if (direction == FB_READ && s->shown.tells_eof && has_end(s))
        s->source->eof = true;
    fb_loop_report(loop, s->source, direction);
    fake_kernel.reported++;
}

static void fake_process_events(struct fb_loop *loop, int timeout)
{
    struct fake_inner *s;

    fake_kernel.timeout = timeout;
    fake_kernel.reported = 0;
    if (fake_kernel.waiting != NULL)
        fake_kernel.waiting(loop, timeout);
    STAILQ_FOREACH (s, &fake_kernel.sockets, link) {
        if (s->loop != loop)
            continue;
        if (s->shown.listening && (!STAILQ_EMPTY(&s->clients) || s->shown.accept_error != 0)) {
            fb_loop_report(loop, s->source, FB_READ);
            fake_kernel.reported++;
        }
        report(loop, s, FB_READ);
        report(loop, s, FB_WRITE);
    }
    if (fake_kernel.reported == 0 && timeout > 0)
        fake_kernel.mono_ms += (uint64_t)timeout;
}

static void fake_read_clock(struct fb_clock *clock)
{
    clock->mono_ms = fake_kernel.mono_ms;
    clock->wall_ms = (int64_t)fake_kernel.mono_ms * 1000;
}

#define FAKE_OPERATIONS                                                                            \
    .io = &fake_io, .available = fake_available, .init = fake_init, .done = fake_done,             \
    .add = fake_add, .del = fake_del, .add_conn = fake_add_conn, .del_conn = fake_del_conn,        \
    .add_listener = fake_add_listener, .del_listener = fake_del_listener, .notify = fake_notify,   \
    .process_events = fake_process_events, .read_clock = fake_read_clock

const struct fb_mechanism fake_edge = {
    .name = "fake edge",
    .edge = true,
    .exclusive = true,
    .enable = fake_leave,
    .disable = fake_leave,
    FAKE_OPERATIONS,
};

const struct fb_mechanism fake_level = {
    .name = "fake level",
    .enable = fake_add,
    .disable = fake_del,
    FAKE_OPERATIONS,
};
