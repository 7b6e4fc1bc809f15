/* SPDX-License-Identifier: BSD-2-Clause */
/* The endpoints of a simulation by descriptor, faults, seeded randomness and the digest: arriving
 * bytes, sent bytes, and broken connections. An endpoint outlives the close of the descriptor;
 * nothing arrives after the end of the peer's half. */
#include "sim/sim_private.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULT_MAX 256

/* ---- The simulation ---- */

struct sim *sim_of(const struct loop *loop)
{
    struct sim *sim = loop->mechanism->self;

    CHECK_KIND(sim, SIM_KIND);
    return sim;
}

void sim_fault(struct sim *sim, int fd, const char *format, ...)
{
    struct sim_fault *fault = malloc(sizeof(*fault) + FAULT_MAX);
    size_t n;
    va_list args;

    assert(fault != NULL);
    n = (size_t)snprintf(fault->text, FAULT_MAX, "descriptor %d: ", fd);
    va_start(args, format);
    vsnprintf(fault->text + n, FAULT_MAX - n, format, args);
    va_end(args);
    STAILQ_INSERT_TAIL(&sim->faults, fault, link);
    sim->fault_n++;
    if (sim->on_fault != NULL)
        sim->on_fault(sim->fault_arg, fault->text);
}

/* splitmix64, because the sequence of the C library differs from system to system. */
uint32_t sim_draw(uint64_t *state, uint32_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    assert(below > 0);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

bool sim_happens(struct sim *sim, unsigned per_mille)
{
    assert(per_mille <= 1000);
    return per_mille > 0 && sim_draw(&sim->random, 1000) < per_mille;
}

/* FNV-1a */
void sim_record(struct sim *sim, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        sim->digest = (sim->digest ^ bytes[i]) * 0x100000001b3;
}

/* ---- Endpoints ---- */

static int compare_endpoints(const struct sim_endpoint *a, const struct sim_endpoint *b)
{
    return (a->view.fd > b->view.fd) - (a->view.fd < b->view.fd);
}

RB_GENERATE_INTERNAL(
    sim_endpoints, sim_endpoint, node, compare_endpoints, static __attribute__((unused)))

struct sim_endpoint *sim_endpoint_find(struct sim *sim, int fd)
{
    struct sim_endpoint key;

    key.view.fd = fd;
    return RB_FIND(sim_endpoints, &sim->endpoints, &key);
}

struct sim_endpoint *sim_endpoint_of(const struct source *source, const char *operation)
{
    struct sim *sim = sim_loop_of(source)->sim;
    struct sim_endpoint *s = sim_endpoint_find(sim, source->fd);

    if (s != NULL && !s->view.closed)
        return s;
    sim_fault(sim, source->fd, "%s although not open", operation);
    return NULL;
}

struct sim_endpoint *sim_endpoint_create(struct sim *sim, int fd)
{
    struct sim_endpoint *s = calloc(1, sizeof(*s)), *other;
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };

    assert(s != NULL);
    peer.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    s->sim = sim;
    s->view.fd = fd != -1 ? fd : sim->next_fd++;
    s->view.send_most = s->view.room = SIZE_MAX;
    memcpy(&s->view.peer, &peer, sizeof(peer));
    s->view.peer_length = sizeof(peer);
    STAILQ_INIT(&s->steps);
    STAILQ_INIT(&s->clients);
    TAILQ_INIT(&s->watches);
    other = RB_INSERT(sim_endpoints, &sim->endpoints, s);
    assert(other == NULL); /* a descriptor stands for one listener only */
    (void)other;
    return s;
}

/* Makes the first step the lent step. */
static struct sim_step *lend_first(struct sim_endpoint *s)
{
    free(s->lent);
    s->lent = STAILQ_FIRST(&s->steps);
    STAILQ_REMOVE_HEAD(&s->steps, link);
    return s->lent;
}

static void free_steps(struct sim_endpoint *s)
{
    struct sim_step *step;

    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
}

void sim_append_sent(struct sim_endpoint *s, const uint8_t *p, size_t n)
{
    struct sim_socket *view = &s->view;

    if (view->sent_n + n + 1 > s->sent_room) {
        s->sent_room = 2 * (view->sent_n + n + 1);
        view->sent = realloc(view->sent, s->sent_room);
        assert(view->sent != NULL);
    }
    sim_record(s->sim, p, n);
    memcpy(view->sent + view->sent_n, p, n);
    view->sent_n += n;
    view->sent[view->sent_n] = '\0'; /* text can be compared as a string */
    if (view->queues)
        view->queued += n;
}

void sim_endpoint_free(struct sim_endpoint *s)
{
    CHECK_KIND(s->sim, SIM_KIND);
    assert(TAILQ_EMPTY(&s->watches));
    free_steps(s);
    sim_seal_free(s->seal);
    free(s->lent);
    free(s->view.sent);
    RB_REMOVE(sim_endpoints, &s->sim->endpoints, s);
    free(s);
}

void sim_endpoints_free(struct sim *sim)
{
    struct sim_endpoint *s;

    while ((s = RB_MIN(sim_endpoints, &sim->endpoints)) != NULL)
        sim_endpoint_free(s);
}

void sim_check_closed(struct sim *sim)
{
    struct sim_endpoint *s;

    CHECK_KIND(sim, SIM_KIND);
    RB_FOREACH (s, sim_endpoints, &sim->endpoints) {
        if (!s->must_close)
            continue;
        s->must_close = false;
        sim_fault(sim, s->view.fd, "was not closed");
    }
}

void sim_endpoint_check(const struct sim_endpoint *s)
{
    const struct sim_socket *view = &s->view;
    const struct sim_step *step = STAILQ_FIRST(&s->steps);
    const struct sim_watch *watch;

    assert(view->sent_n == 0 || view->sent_n < s->sent_room);
    assert(!s->must_close || !view->closed);
    assert(!view->closed || TAILQ_EMPTY(&s->watches));
    assert(!s->connecting || s->server != NULL);
    assert(step == NULL || step->kind != SIM_STEP_BYTES || step->at < step->n);
    TAILQ_FOREACH (watch, &s->watches, socket_link) {
        assert(watch->socket == s && watch->source->fd == view->fd);
        assert(watch->source->in_use);
        assert(watch->loop->kind == SIM_LOOP_KIND && watch->loop->sim == s->sim);
        assert(!watch->listening || view->listening);
    }
}

void sim_unwatch(struct sim_watch *watch)
{
    TAILQ_REMOVE(&watch->loop->watches, watch, loop_link);
    TAILQ_REMOVE(&watch->socket->watches, watch, socket_link);
    free(watch);
}

/* ---- Arrivals ---- */

void sim_mark_changed(struct sim_endpoint *s, enum event_direction direction)
{
    struct sim_watch *watch;

    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[direction] = true;
}

struct sim_step *sim_append_step(struct sim_endpoint *s, enum sim_step_kind kind, size_t n)
{
    struct sim_step *step;

    if (s->view.broke)
        return NULL;
    assert(!s->over); /* the harness has ended this half before */
    step = calloc(1, sizeof(*step) + n);
    assert(step != NULL);
    step->kind = kind;
    step->n = n;
    s->over = kind == SIM_STEP_END || kind == SIM_STEP_BROKEN;
    STAILQ_INSERT_TAIL(&s->steps, step, link);
    sim_mark_changed(s, EVENT_READ);
    return step;
}

void sim_pop_step(struct sim_endpoint *s)
{
    struct sim_step *step = lend_first(s);
    struct sim_watch *watch;

    assert(step->kind != SIM_STEP_END && step->kind != SIM_STEP_BROKEN);
    /* the next step has arrived later: a new change, unless the change was reported before */
    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[EVENT_READ] =
            !STAILQ_EMPTY(&s->steps) && (step->kind == SIM_STEP_STALL || !watch->source->eof);
}

void sim_break(struct sim_socket *socket, int error)
{
    struct sim_step *step = sim_append_step(sim_endpoint_by(socket), SIM_STEP_BROKEN, 0);

    if (step != NULL)
        step->error = error;
}

void sim_break_output(struct sim_socket *socket, int error)
{
    sim_endpoint_by(socket)->send_error = error;
    sim_mark_changed(sim_endpoint_by(socket), EVENT_WRITE);
}

void sim_lose_queued(struct sim_endpoint *s)
{
    assert(s->view.queued <= s->view.sent_n);
    s->view.sent_n -= s->view.queued;
    s->lost += s->view.queued;
    s->view.queued = 0;
    if (s->view.sent != NULL)
        s->view.sent[s->view.sent_n] = '\0';
}

void sim_reset(struct sim_socket *socket, int error)
{
    struct sim_endpoint *s = sim_endpoint_by(socket);

    if (!s->over)
        sim_break(socket, error);
    sim_break_output(socket, error);
    sim_lose_queued(s);
}

void sim_break_both(struct sim_endpoint *s, int error)
{
    if (!STAILQ_EMPTY(&s->steps) && STAILQ_FIRST(&s->steps)->at > 0)
        lend_first(s); /* the program may hold a part of the first step's bytes */
    free_steps(s);
    s->over = false;
    sim_break(&s->view, error);
    sim_break_output(&s->view, error);
}

struct sim_step *sim_find_step(const struct sim_endpoint *s, enum sim_step_kind kind)
{
    struct sim_step *step = STAILQ_FIRST(&s->steps);

    while (step != NULL && step->kind != kind)
        step = STAILQ_NEXT(step, link);
    return step;
}

bool sim_is_broken(const struct sim_endpoint *s)
{
    return s->send_error != 0 && sim_find_step(s, SIM_STEP_BROKEN) != NULL;
}
