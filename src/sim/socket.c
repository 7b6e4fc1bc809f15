/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a simulation as the harness drives them: what arrives, how much the peer takes,
 * and when it ends. Nothing arrives after the end of the peer's half. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sim_endpoint *endpoint_of(const struct sim_socket *view)
{
    return container_of(view, struct sim_endpoint, view);
}

struct sim_socket *sim_connection(struct sim *sim)
{
    struct sim_endpoint *s = sim_endpoint_create(sim, -1);

    s->must_close = true;
    return &s->view;
}

struct sim_socket *sim_listener(struct sim *sim, int fd)
{
    return &sim_endpoint_create(sim, fd)->view;
}

struct sim_socket *sim_client(struct sim_socket *listener)
{
    struct sim_endpoint *client = sim_endpoint_create(endpoint_of(listener)->sim, -1);

    client->view.local = listener->local;
    client->view.local_length = listener->local_length;
    STAILQ_INSERT_TAIL(&endpoint_of(listener)->clients, client, line_link);
    return &client->view;
}

unsigned sim_waiting_clients(const struct sim_socket *listener)
{
    unsigned n = 0;
    struct sim_endpoint *client;

    STAILQ_FOREACH (client, &endpoint_of(listener)->clients, line_link)
        n++;
    return n;
}

void sim_mark_changed(struct sim_endpoint *s, enum event_direction direction)
{
    struct sim_watch *watch;

    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[direction] = true;
}

/* Appends a step of n bytes; NULL when the connection is broken and nothing comes through any
 * more. */
static struct sim_step *append_step(struct sim_endpoint *s, enum sim_step_kind kind, size_t n)
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

void sim_say(struct sim_socket *socket, const void *p, size_t n)
{
    struct sim_step *step;

    assert(n > 0);
    step = append_step(endpoint_of(socket), SIM_STEP_BYTES, n);
    if (step != NULL)
        memcpy(step->bytes, p, n);
}

void sim_says(struct sim_socket *socket, const char *text)
{
    sim_say(socket, text, strlen(text));
}

void sim_stall(struct sim_socket *socket)
{
    append_step(endpoint_of(socket), SIM_STEP_STALL, 0);
}

void sim_end(struct sim_socket *socket)
{
    append_step(endpoint_of(socket), SIM_STEP_END, 0);
}

void sim_break(struct sim_socket *socket, int error)
{
    struct sim_step *step = append_step(endpoint_of(socket), SIM_STEP_BROKEN, 0);

    if (step != NULL)
        step->error = error;
}

void sim_set_room(struct sim_socket *socket, size_t n)
{
    socket->room = n;
    if (n > 0)
        sim_mark_changed(endpoint_of(socket), EVENT_WRITE);
}

void sim_break_output(struct sim_socket *socket, int error)
{
    endpoint_of(socket)->send_error = error;
    sim_mark_changed(endpoint_of(socket), EVENT_WRITE);
}

void sim_take(struct sim_socket *socket, size_t n)
{
    assert(n <= socket->queued);
    socket->queued -= n;
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
    struct sim_endpoint *s = endpoint_of(socket);

    if (!s->over)
        sim_break(socket, error);
    sim_break_output(socket, error);
    sim_lose_queued(s);
}

void sim_break_both(struct sim_endpoint *s, int error)
{
    struct sim_step *step = STAILQ_FIRST(&s->steps);

    if (step != NULL && step->at > 0) { /* the program may hold a part of the first step's bytes */
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(s->lent);
        s->lent = step;
    }
    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
    s->over = false;
    sim_break(&s->view, error);
    sim_break_output(&s->view, error);
}

size_t sim_unread(const struct sim_socket *socket)
{
    size_t n = 0;
    struct sim_step *step;

    STAILQ_FOREACH (step, &endpoint_of(socket)->steps, link)
        n += step->n - step->at;
    return n;
}

const char *sim_sent(const struct sim_socket *socket)
{
    return socket->sent != NULL ? (const char *)socket->sent : "";
}

void sim_forget_sent(struct sim_socket *socket)
{
    free(socket->sent);
    socket->sent = NULL;
    socket->sent_n = socket->queued = endpoint_of(socket)->sent_room = 0;
}

void sim_append_sent(struct sim_endpoint *s, const uint8_t *p, size_t n)
{
    struct sim_socket *view = &s->view;

    if (view->sent_n + n + 1 > s->sent_room) {
        s->sent_room = 2 * (view->sent_n + n + 1);
        view->sent = realloc(view->sent, s->sent_room);
        assert(view->sent != NULL);
    }
    memcpy(view->sent + view->sent_n, p, n);
    view->sent_n += n;
    view->sent[view->sent_n] = '\0'; /* text can be compared as a string */
    if (view->queues)
        view->queued += n;
}

void sim_pop_step(struct sim_endpoint *s)
{
    struct sim_step *step = STAILQ_FIRST(&s->steps);
    struct sim_watch *watch;

    assert(step != NULL && step->kind != SIM_STEP_END && step->kind != SIM_STEP_BROKEN);
    STAILQ_REMOVE_HEAD(&s->steps, link);
    free(s->lent);
    s->lent = step;
    /* the next step has arrived later, which is a change of its own unless it was reported
     * before */
    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[EVENT_READ] =
            !STAILQ_EMPTY(&s->steps) && (step->kind == SIM_STEP_STALL || !watch->source->eof);
}

void sim_kill(struct sim_socket *socket)
{
    sim_break_output(socket, EPIPE);
    socket->reset = true;
}

struct sim_socket *sim_socket_find(struct sim *sim, int fd)
{
    struct sim_endpoint *s = sim_endpoint_find(sim, fd);

    return s != NULL ? &s->view : NULL;
}

void sim_socket_free(struct sim_socket **socket)
{
    struct sim_endpoint *s = endpoint_of(*socket);

    assert(s->view.closed);
    *socket = NULL;
    sim_endpoint_free(s);
}
