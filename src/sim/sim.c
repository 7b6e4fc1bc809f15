/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulation and sockets as driven by the harness: arriving bytes, bytes taken by the peer, and
 * ends. A simulation outlives all loops. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DIGEST 1000000
/* The clocks begin at odd places, unlikely to be confused with a second clock or with durations. */
#define FIRST_MONO_MS 1000000
#define FIRST_WALL_MS 1795253400000 /* 2026-11-21 09:30:00 UTC */

struct sim *sim_create(void)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    assert(sim != NULL);
    sim->kind = SIM_KIND;
    sim->edge = sim_mechanism_edge;
    sim->level = sim_mechanism_level;
    sim->edge.self = sim->level.self = sim;
    RB_INIT(&sim->endpoints);
    STAILQ_INIT(&sim->servers);
    STAILQ_INIT(&sim->faults);
    sim->next_fd = SIM_FIRST_FD;
    sim->clock = (struct clock) { .mono_ms = FIRST_MONO_MS, .wall_ms = FIRST_WALL_MS };
    sim->digest = FIRST_DIGEST;
    return sim;
}

void sim_destroy(struct sim **simp)
{
    struct sim *sim = *simp;
    struct sim_fault *fault;

    *simp = NULL;
    CHECK_KIND(sim, SIM_KIND);
    assert(sim->loop_n == 0);
    sim_check_closed(sim);
    sim_endpoints_free(sim);
    sim_servers_free(sim);
    while ((fault = STAILQ_FIRST(&sim->faults)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->faults, link);
        free(fault);
    }
    sim->kind = 0;
    free(sim);
}

void sim_splice(struct sim *sim)
{
    sim->edge.io = sim->level.io = &sim_io_splicing;
}

void sim_trouble(struct sim *sim, uint64_t seed, const struct sim_trouble *trouble)
{
    static const struct sim_trouble none;

    CHECK_KIND(sim, SIM_KIND);
    sim->random = seed;
    sim->trouble = trouble != NULL ? *trouble : none;
}

uint32_t sim_random(struct sim *sim, uint32_t below)
{
    return sim_draw(&sim->random, below);
}

/* ---- Sockets ---- */

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
    struct sim_endpoint *client = sim_endpoint_create(sim_endpoint_by(listener)->sim, -1);

    client->view.local = listener->local;
    client->view.local_length = listener->local_length;
    STAILQ_INSERT_TAIL(&sim_endpoint_by(listener)->clients, client, line_link);
    listener->waiting++;
    return &client->view;
}

void sim_say(struct sim_socket *socket, const void *p, size_t n)
{
    struct sim_step *step;

    assert(n > 0);
    step = sim_append_step(sim_endpoint_by(socket), SIM_STEP_BYTES, n);
    if (step != NULL)
        memcpy(step->bytes, p, n);
}

void sim_says(struct sim_socket *socket, const char *text)
{
    sim_say(socket, text, strlen(text));
}

void sim_stall(struct sim_socket *socket)
{
    sim_append_step(sim_endpoint_by(socket), SIM_STEP_STALL, 0);
}

void sim_end(struct sim_socket *socket)
{
    sim_append_step(sim_endpoint_by(socket), SIM_STEP_END, 0);
}

void sim_set_room(struct sim_socket *socket, size_t n)
{
    socket->room = n;
    if (n > 0)
        sim_mark_changed(sim_endpoint_by(socket), EVENT_WRITE);
}

void sim_take(struct sim_socket *socket, size_t n)
{
    assert(n <= socket->queued);
    socket->queued -= n;
}

size_t sim_unread(const struct sim_socket *socket)
{
    size_t n = 0;
    struct sim_step *step;

    STAILQ_FOREACH (step, &sim_endpoint_by(socket)->steps, link)
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
    socket->sent_n = socket->queued = sim_endpoint_by(socket)->sent_room = 0;
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
    struct sim_endpoint *s = sim_endpoint_by(*socket);

    assert(s->view.closed);
    *socket = NULL;
    sim_endpoint_free(s);
}
