/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanism of simulations (sim/sim.h), with edges or with levels, and simulated time. Each
 * wait checks the loop, sources, timers and watched endpoints; no wait ever blocks. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

void sim_pass(struct sim *sim, uint64_t ms)
{
    assert(ms <= UINT64_MAX / 2 - sim->clock.mono_ms);
    sim->clock.mono_ms += ms;
    sim->clock.wall_ms += (int64_t)ms;
}

static void mechanism_read_clock(struct clock *clock)
{
    const struct sim *sim = sim_of(container_of(clock, struct loop, clock));

    assert(sim->clock.mono_ms >= clock->mono_ms); /* monotonic */
    *clock = sim->clock;
}

static int mechanism_init(struct loop *loop, const int64_t *options)
{
    struct sim_loop *state = loop->mechanism_state;

    (void)options;
    state->kind = SIM_LOOP_KIND;
    state->sim = sim_of(loop);
    state->sim->loop_n++;
    TAILQ_INIT(&state->watches);
    return 0;
}

static void mechanism_done(struct loop *loop)
{
    struct sim_loop *state = loop->mechanism_state;
    struct sim_watch *watch;

    CHECK_KIND(state, SIM_LOOP_KIND);
    assert(state->sim->loop_n > 0);
    while ((watch = TAILQ_FIRST(&state->watches)) != NULL) {
        sim_fault(state->sim, watch->socket->view.fd, "is watched at the loop's end");
        sim_unwatch(watch);
    }
    state->sim->loop_n--;
    state->kind = 0;
}

static bool is_real(const struct source *source)
{
    return source->io_state == NULL;
}

static struct sim_watch *watch_of(const struct loop *loop, const struct sim_endpoint *s)
{
    struct sim_watch *watch;

    TAILQ_FOREACH (watch, &s->watches, socket_link)
        if (watch->loop == loop->mechanism_state)
            return watch;
    return NULL;
}

/* Watches the endpoint of a source, unless watched by this loop already; NULL with errno. */
static struct sim_watch *start_watch(struct loop *loop, struct source *source)
{
    struct sim_loop *state = loop->mechanism_state;
    struct sim_endpoint *s = sim_endpoint_of(source, "is watched");
    struct sim_watch *watch;

    errno = s == NULL ? EBADF : state->sim->watch_error;
    if (errno != 0)
        return NULL;
    watch = watch_of(loop, s);
    assert(watch == NULL || watch->source == source);
    if (watch != NULL)
        return watch;
    watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    watch->loop = state;
    watch->socket = s;
    watch->source = source;
    TAILQ_INSERT_TAIL(&state->watches, watch, loop_link);
    TAILQ_INSERT_TAIL(&s->watches, watch, socket_link);
    return watch;
}

/* Finds the watch that is to end or to change; NULL of a real source, and after a fault. */
static struct sim_watch *find_sim_watch(struct loop *loop, const struct source *source)
{
    struct sim_endpoint *s = is_real(source) ? NULL : sim_endpoint_of(source, "is watched no more");
    struct sim_watch *watch = s != NULL ? watch_of(loop, s) : NULL;

    if (s != NULL && watch == NULL)
        sim_fault(s->sim, source->fd, "is watched no more, and was not");
    return watch;
}

static int mechanism_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct sim_watch *watch;

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

static int mechanism_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct sim_watch *watch = find_sim_watch(loop, source);

    if (watch == NULL)
        return 0;
    watch->watched[direction] = false;
    if (!watch->watched[!direction])
        sim_unwatch(watch);
    return 0;
}

/* Disables a direction where events are levels. */
static int mechanism_pause_level(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    struct sim_watch *watch = find_sim_watch(loop, source);

    if (watch != NULL)
        watch->watched[direction] = false;
    return 0;
}

/* Enables and disables where events are edges: the loop remembers edges during a pause. */
static int mechanism_pause_edge(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    struct sim_watch *watch = find_sim_watch(loop, source);

    if (watch != NULL && !watch->watched[direction])
        sim_fault(watch->loop->sim, source->fd, "is paused, and was not watched");
    return 0;
}

static int mechanism_add_conn(struct loop *loop, struct source *source)
{
    if (mechanism_add(loop, source, EVENT_READ) == -1)
        return -1;
    if (mechanism_add(loop, source, EVENT_WRITE) == 0)
        return 0;
    mechanism_del(loop, source, EVENT_READ);
    return -1;
}

static int mechanism_del_conn(struct loop *loop, struct source *source, bool closing)
{
    struct sim_watch *watch = find_sim_watch(loop, source);

    (void)closing;
    if (watch != NULL)
        sim_unwatch(watch);
    return 0;
}

static int mechanism_add_listener(struct loop *loop, struct source *source, bool exclusive)
{
    struct sim_watch *watch;

    if (is_real(source))
        return 0;
    watch = start_watch(loop, source);
    if (watch == NULL)
        return -1;
    watch->listening = true;
    watch->socket->view.listening = true;
    watch->socket->view.exclusive = exclusive;
    return 0;
}

static int mechanism_del_listener(struct loop *loop, struct source *source)
{
    struct sim_watch *watch = find_sim_watch(loop, source), *other;
    struct sim_endpoint *s;

    if (watch == NULL)
        return 0;
    s = watch->socket;
    sim_unwatch(watch);
    s->view.listening = false;
    TAILQ_FOREACH (other, &s->watches, socket_link)
        s->view.listening = true;
    return 0;
}

/* The ready directions of a source of the real kernel, whose events are levels. */
static unsigned look_at_real(const struct source *source)
{
    static const short bits[EVENT_DIRECTIONS] = { [EVENT_READ] = POLLIN, [EVENT_WRITE] = POLLOUT };
    struct pollfd entry = { .fd = source->fd };
    unsigned ready = 0;

    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
        if (source->events[direction].armed)
            entry.events |= bits[direction];
    if (!source->in_use || !source->level || !is_real(source) || entry.events == 0 ||
        poll(&entry, 1, 0) != 1)
        return 0;
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
        if ((entry.events & bits[direction]) != 0 &&
            (entry.revents & (bits[direction] | ~(POLLIN | POLLOUT))) != 0)
            ready |= 1u << direction;
    return ready;
}

/* Whether anything is ready of the real kernel's; `reported` reports it, unless NULL. */
static bool real_is_ready(const struct loop *loop, struct loop *reported)
{
    bool any = false;

    for (uint32_t i = 0; i < loop->sources.used_n; i++) {
        struct source *source = source_at(&loop->sources, i);
        unsigned ready = look_at_real(source);

        for (int direction = 0; reported != NULL && direction < EVENT_DIRECTIONS; direction++)
            if (ready & 1u << direction)
                loop_report(reported, source, direction);
        any = any || ready != 0;
    }
    return any;
}

bool sim_await_notice(const struct loop *loop, int ms)
{
    struct pollfd entry = { .events = POLLIN };

    if (loop->notifier == NULL)
        return false;
    entry.fd = loop->notifier->fd;
    return poll(&entry, 1, ms) == 1;
}

/* Whether an error is still to be told. */
static bool is_newly_broken(const struct sim_watch *watch)
{
    return !watch->listening && !watch->broken && !watch->socket->connecting &&
           sim_is_broken(watch->socket);
}

static bool is_socket_ready(const struct sim_endpoint *s, enum event_direction direction)
{
    if (direction == EVENT_READ)
        return !STAILQ_EMPTY(&s->steps);
    return !s->connecting && (s->view.room > 0 || s->send_error != 0);
}

static bool has_happened(
    const struct loop *loop, const struct sim_watch *watch, enum event_direction direction)
{
    if (watch->listening)
        return direction == EVENT_READ &&
               (watch->socket->view.waiting > 0 || watch->socket->view.accept_error != 0);
    return watch->watched[direction] && is_socket_ready(watch->socket, direction) &&
           (!loop->mechanism->edge || watch->changed[direction]);
}

/* Reports an event, or an invented event of trouble; returns whether the event has happened. */
static bool report_direction(
    struct loop *loop, struct sim_watch *watch, enum event_direction direction)
{
    struct sim *sim = watch->loop->sim;
    bool happened = has_happened(loop, watch, direction);
    bool wanted = watch->watched[direction] || (watch->listening && direction == EVENT_READ);
    uint32_t line[] = { (uint32_t)watch->socket->view.fd, direction };

    if (!wanted ||
        (happened ? sim_happens(sim, sim->trouble.late) : !sim_happens(sim, sim->trouble.spurious)))
        return happened;
    if (happened)
        watch->changed[direction] = false;
    if (direction == EVENT_READ && watch->socket->view.tells_eof &&
        sim_find_step(watch->socket, SIM_STEP_END) != NULL)
        watch->source->eof = true;
    sim_record(sim, line, sizeof(line));
    loop_report(loop, watch->source, direction);
    sim->reported++;
    return happened;
}

static void mechanism_process_events(struct loop *loop, int timeout)
{
    struct sim_loop *state = loop->mechanism_state;
    struct sim *sim = state->sim;
    struct sim_watch *watch;
    bool any;
    int ms;

    CHECK_KIND(state, SIM_LOOP_KIND);
    loop_check(loop);
    assert(sim->edge.self == sim && sim->level.self == sim);
    assert(sim->next_fd >= SIM_FIRST_FD && sim->loop_n > 0 && sim->clock.mono_ms > 0);
    sim->timeout = timeout;
    sim->reported = 0;
    if (sim->on_wait != NULL)
        sim->on_wait(loop, timeout);
    if (!sim->holds_notices && sim_await_notice(loop, 0)) {
        loop_report(loop, loop->notifier, EVENT_READ);
        sim->reported++;
    }
    any = real_is_ready(loop, loop);
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
            any = report_direction(loop, watch, direction) || any;
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        if (is_newly_broken(watch)) {
            watch->broken = any = true;
            loop_report_broken(loop, watch->source);
        }
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        sim_endpoint_check(watch->socket);
    ms = timeout == -1 ? timers_wait(&loop->timers) : timeout;
    if (sim->auto_time && !any && sim->reported == 0 && ms > 0)
        sim_pass(sim, (uint64_t)ms);
    /* a real descriptor does not follow simulated time */
    if (loop->ticker != NULL && loop->ticker->fd != -1)
        loop_report(loop, loop->ticker, EVENT_READ);
}

bool sim_idle(const struct loop *loop)
{
    const struct sim_loop *state = loop->mechanism_state;
    const struct sim_watch *watch;
    int distance = timers_wait(&loop->timers);

    CHECK_KIND(state, SIM_LOOP_KIND);
    for (int i = 0; i < QUEUES; i++)
        if (!loop_is_empty(loop, i))
            return false;
    if (distance != -1 && loop->clock.mono_ms + (uint64_t)distance <= state->sim->clock.mono_ms)
        return false;
    TAILQ_FOREACH (watch, &state->watches, loop_link)
        if (has_happened(loop, watch, EVENT_READ) || has_happened(loop, watch, EVENT_WRITE) ||
            is_newly_broken(watch))
            return false;
    return !real_is_ready(loop, NULL) && (state->sim->holds_notices || !sim_await_notice(loop, 0));
}

#define MECHANISM_OPERATIONS                                                                       \
    .tells_broken = true, .io = &sim_io, .state_size = sizeof(struct sim_loop),                    \
    .init = mechanism_init, .done = mechanism_done, .add = mechanism_add, .del = mechanism_del,    \
    .add_conn = mechanism_add_conn, .del_conn = mechanism_del_conn,                                \
    .add_listener = mechanism_add_listener, .del_listener = mechanism_del_listener,                \
    .notify = loop_notify_descriptor, .process_events = mechanism_process_events,                  \
    .read_clock = mechanism_read_clock

const struct mechanism sim_mechanism_edge = {
    .name = "sim",
    .edge = true,
    .exclusive = true,
    .enable = mechanism_pause_edge,
    .disable = mechanism_pause_edge,
    MECHANISM_OPERATIONS,
};

const struct mechanism sim_mechanism_level = {
    .name = "sim level",
    .enable = mechanism_add,
    .disable = mechanism_pause_level,
    MECHANISM_OPERATIONS,
};
