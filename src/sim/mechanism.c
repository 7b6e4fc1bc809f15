/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanism of simulations (sim/sim.h), with edges or with levels. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static bool sim_available(void)
{
    return true;
}

static int sim_init(struct fb_loop *loop, int64_t option)
{
    struct fb_sim_loop *state = calloc(1, sizeof(*state));

    (void)option;
    if (state == NULL)
        return -1;
    state->sim = fb_sim_of(loop);
    state->sim->loop_n++;
    TAILQ_INIT(&state->watches);
    loop->mechanism_state = state;
    return 0;
}

static void sim_done(struct fb_loop *loop)
{
    struct fb_sim_loop *state = loop->mechanism_state;
    struct fb_sim_watch *watch;

    while ((watch = TAILQ_FIRST(&state->watches)) != NULL) {
        fb_sim_fault(state->sim, watch->socket->shown.fd, "is watched at the loop's end");
        fb_sim_unwatch(watch);
    }
    state->sim->loop_n--;
    free(state);
    loop->mechanism_state = NULL;
}

static bool is_real(const struct fb_source *source)
{
    return source->io_state == NULL;
}

static struct fb_sim_watch *watch_of(const struct fb_loop *loop, const struct fb_sim_inner *s)
{
    struct fb_sim_watch *watch;

    TAILQ_FOREACH (watch, &s->watches, socket_link)
        if (watch->of == loop->mechanism_state)
            return watch;
    return NULL;
}

/* NULL with errno. */
static struct fb_sim_watch *start_watch(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_sim_loop *state = loop->mechanism_state;
    struct fb_sim_inner *s = fb_sim_socket_of(source, "is watched");
    struct fb_sim_watch *watch;

    errno = s == NULL ? EBADF : state->sim->refusal;
    if (errno != 0)
        return NULL;
    watch = watch_of(loop, s);
    if (watch != NULL)
        return watch;
    watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    watch->of = state;
    watch->socket = s;
    watch->source = source;
    TAILQ_INSERT_TAIL(&state->watches, watch, loop_link);
    TAILQ_INSERT_TAIL(&s->watches, watch, socket_link);
    return watch;
}

void fb_sim_unwatch(struct fb_sim_watch *watch)
{
    TAILQ_REMOVE(&watch->of->watches, watch, loop_link);
    TAILQ_REMOVE(&watch->socket->watches, watch, socket_link);
    free(watch);
}

/* NULL after a fault. */
static struct fb_sim_watch *find_watch(struct fb_loop *loop, const struct fb_source *source)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "is watched no more");
    struct fb_sim_watch *watch = s != NULL ? watch_of(loop, s) : NULL;

    if (s != NULL && watch == NULL)
        fb_sim_fault(s->sim, source->fd, "is watched no more, and was not");
    return watch;
}

static int sim_add(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_sim_watch *watch;

    if (is_real(source))
        return 0;
    watch = start_watch(loop, source);
    if (watch == NULL)
        return -1;
    if (watch->watched[direction]) {
        errno = EEXIST;
        return -1;
    }
    watch->watched[direction] = watch->changed[direction] = true;
    return 0;
}

static int sim_del(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_sim_watch *watch = is_real(source) ? NULL : find_watch(loop, source);

    if (watch == NULL)
        return 0;
    watch->watched[direction] = false;
    if (!watch->watched[!direction])
        fb_sim_unwatch(watch);
    return 0;
}

/* Of levels. */
static int sim_pause(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_sim_watch *watch = is_real(source) ? NULL : find_watch(loop, source);

    if (watch != NULL)
        watch->watched[direction] = false;
    return 0;
}

/* Of edges: the loop remembers those that come meanwhile. */
static int sim_leave(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_sim_watch *watch = is_real(source) ? NULL : find_watch(loop, source);

    if (watch != NULL && !watch->watched[direction])
        fb_sim_fault(watch->of->sim, source->fd, "is paused, and was not watched");
    return 0;
}

static int sim_add_conn(struct fb_loop *loop, struct fb_source *source)
{
    if (sim_add(loop, source, FB_READ) == -1)
        return -1;
    if (sim_add(loop, source, FB_WRITE) == -1) {
        sim_del(loop, source, FB_READ);
        return -1;
    }
    return 0;
}

static int sim_del_conn(struct fb_loop *loop, struct fb_source *source, bool closing)
{
    struct fb_sim_watch *watch = is_real(source) ? NULL : find_watch(loop, source);

    (void)closing;
    if (watch != NULL)
        fb_sim_unwatch(watch);
    return 0;
}

static int sim_add_listener(struct fb_loop *loop, struct fb_source *source, bool exclusive)
{
    struct fb_sim_watch *watch;

    if (is_real(source))
        return 0;
    watch = start_watch(loop, source);
    if (watch == NULL)
        return -1;
    watch->listening = true;
    watch->socket->shown.listening = true;
    watch->socket->shown.exclusive = exclusive;
    return 0;
}

static int sim_del_listener(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_sim_watch *watch = is_real(source) ? NULL : find_watch(loop, source), *other;
    struct fb_sim_inner *s;

    if (watch == NULL)
        return 0;
    s = watch->socket;
    fb_sim_unwatch(watch);
    s->shown.listening = false;
    TAILQ_FOREACH (other, &s->watches, socket_link)
        s->shown.listening = true;
    return 0;
}

static bool notice_is_there(const struct fb_loop *loop, int ms)
{
    struct pollfd entry = { .events = POLLIN };

    if (loop->notifier == NULL)
        return false;
    entry.fd = loop->notifier->fd;
    return poll(&entry, 1, ms) == 1;
}

bool fb_sim_await_notice(const struct fb_loop *loop, int ms)
{
    return notice_is_there(loop, ms);
}

static bool has_end(const struct fb_sim_inner *s)
{
    const struct fb_sim_step *step;

    STAILQ_FOREACH (step, &s->steps, link)
        if (step->kind == FB_SIM_END)
            return true;
    return false;
}

static bool has_clients(const struct fb_sim_inner *s)
{
    return !STAILQ_EMPTY(&s->clients) || s->shown.accept_error != 0;
}

static bool is_due(
    const struct fb_loop *loop, const struct fb_sim_watch *watch, enum fb_direction direction)
{
    if (watch->listening)
        return direction == FB_READ && has_clients(watch->socket);
    return watch->watched[direction] && fb_sim_is_ready(watch->socket, direction) &&
           (!loop->mechanism->edge || watch->changed[direction]);
}

/* Reports it, if it is due or trouble will have it; says whether it is due. */
static bool look(struct fb_loop *loop, struct fb_sim_watch *watch, enum fb_direction direction)
{
    struct fb_sim *sim = watch->of->sim;
    bool due = is_due(loop, watch, direction);
    bool wanted = watch->watched[direction] || (watch->listening && direction == FB_READ);
    uint32_t line[] = { (uint32_t)watch->socket->shown.fd, direction };

    if (!wanted || (due ? fb_sim_happens(sim, sim->trouble.late)
                        : !fb_sim_happens(sim, sim->trouble.spurious)))
        return due;
    if (due)
        watch->changed[direction] = false;
    if (direction == FB_READ && watch->socket->shown.tells_eof && has_end(watch->socket))
        watch->source->eof = true;
    fb_sim_record(sim, line, sizeof(line));
    fb_loop_report(loop, watch->source, direction);
    sim->reported++;
    return due;
}

static void report_own(struct fb_loop *loop, struct fb_source *source)
{
    fb_loop_report(loop, source, FB_READ);
    fb_sim_of(loop)->reported++;
}

static void sim_process_events(struct fb_loop *loop, int timeout)
{
    struct fb_sim_loop *state = loop->mechanism_state;
    struct fb_sim *sim = state->sim;
    struct fb_sim_watch *watch;
    bool any = false;
    int ms;

    sim->timeout = timeout;
    sim->reported = 0;
    if (sim->waiting != NULL)
        sim->waiting(loop, timeout);
    if (notice_is_there(loop, 0))
        report_own(loop, loop->notifier);
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        for (int direction = 0; direction < FB_DIRECTIONS; direction++)
            any = look(loop, watch, direction) || any;
    ms = timeout == -1 ? fb_timers_distance(loop) : timeout;
    if (sim->passes_by_itself && !any && sim->reported == 0 && ms > 0)
        fb_sim_pass(sim, (uint64_t)ms);
    if (loop->ticker != NULL) /* its descriptor is a real one, and time is not */
        fb_loop_report(loop, loop->ticker, FB_READ);
}

bool fb_sim_idle(const struct fb_loop *loop)
{
    const struct fb_sim_loop *state = loop->mechanism_state;
    const struct fb_sim_watch *watch;
    int distance = fb_timers_distance(loop);

    for (int i = 0; i < FB_QUEUES; i++)
        if (!TAILQ_EMPTY(&loop->queues[i]))
            return false;
    if (distance != -1 && loop->clock.mono_ms + (uint64_t)distance <= state->sim->clock.mono_ms)
        return false;
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        if (is_due(loop, watch, FB_READ) || is_due(loop, watch, FB_WRITE))
            return false;
    return !notice_is_there(loop, 0);
}

#define SIM_OPERATIONS                                                                             \
    .io = &fb_io_sim, .available = sim_available, .init = sim_init, .done = sim_done,              \
    .add = sim_add, .del = sim_del, .add_conn = sim_add_conn, .del_conn = sim_del_conn,            \
    .add_listener = sim_add_listener, .del_listener = sim_del_listener,                            \
    .notify = fb_eventfd_notify, .process_events = sim_process_events,                             \
    .read_clock = sim_clock_read

const struct fb_mechanism fb_mechanism_sim = {
    .name = "sim",
    .edge = true,
    .exclusive = true,
    .enable = sim_leave,
    .disable = sim_leave,
    SIM_OPERATIONS,
};

const struct fb_mechanism fb_mechanism_sim_level = {
    .name = "sim level",
    .enable = sim_add,
    .disable = sim_pause,
    SIM_OPERATIONS,
};
