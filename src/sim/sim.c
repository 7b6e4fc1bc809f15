/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation: its endpoints by descriptor, the faults of the program, its seeded randomness and
 * the digest. A simulation outlives its loops, and an endpoint the closing of its descriptor. */
#include "sim/sim_private.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DIGEST 1000000
#define FAULT_MAX 256

static int compare_endpoints(const struct sim_endpoint *a, const struct sim_endpoint *b)
{
    return (a->view.fd > b->view.fd) - (a->view.fd < b->view.fd);
}

RB_GENERATE_INTERNAL(
    sim_endpoints, sim_endpoint, node, compare_endpoints, static __attribute__((unused)))

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
    sim_clock_init(&sim->clock);
    sim->digest = FIRST_DIGEST;
    return sim;
}

void sim_destroy(struct sim **simp)
{
    struct sim *sim = *simp;
    struct sim_endpoint *s;
    struct sim_fault *fault;

    *simp = NULL;
    CHECK_KIND(sim, SIM_KIND);
    assert(sim->loop_n == 0);
    sim_check_closed(sim);
    while ((s = RB_MIN(sim_endpoints, &sim->endpoints)) != NULL)
        sim_endpoint_free(s);
    sim_servers_free(sim);
    while ((fault = STAILQ_FIRST(&sim->faults)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->faults, link);
        free(fault);
    }
    sim->kind = 0;
    free(sim);
}

const struct mechanism *sim_edge(struct sim *sim)
{
    return &sim->edge;
}

const struct mechanism *sim_level(struct sim *sim)
{
    return &sim->level;
}

struct sim *sim_of(const struct loop *loop)
{
    struct sim *sim = loop->mechanism->self;

    CHECK_KIND(sim, SIM_KIND);
    return sim;
}

void sim_on_fault(struct sim *sim, void (*fault)(void *arg, const char *text), void *arg)
{
    sim->fault = fault;
    sim->fault_arg = arg;
}

unsigned sim_faults(const struct sim *sim)
{
    return sim->fault_n;
}

const char *sim_fault_text(const struct sim *sim, unsigned i)
{
    const struct sim_fault *fault;

    STAILQ_FOREACH (fault, &sim->faults, link)
        if (i-- == 0)
            return fault->text;
    return NULL;
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
    if (sim->fault != NULL)
        sim->fault(sim->fault_arg, fault->text);
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

unsigned sim_reported(const struct sim *sim)
{
    return sim->reported;
}

int sim_timeout(const struct sim *sim)
{
    return sim->timeout;
}

void sim_on_wait(struct sim *sim, void (*waiting)(struct loop *loop, int timeout))
{
    sim->waiting = waiting;
}

void sim_hold_notices(struct sim *sim, bool on)
{
    sim->holds_notices = on;
}

void sim_refuse_watching(struct sim *sim, int error)
{
    sim->refusal = error;
}

void sim_splice(struct sim *sim)
{
    sim->edge.io = sim->level.io = &sim_io_splicing;
}

void sim_refuse_descriptors(struct sim *sim, int error)
{
    sim->shortage = error;
}

void sim_trouble(struct sim *sim, uint64_t seed, const struct sim_trouble *trouble)
{
    static const struct sim_trouble none;

    CHECK_KIND(sim, SIM_KIND);
    sim->random = seed;
    sim->trouble = trouble != NULL ? *trouble : none;
}

/* splitmix64 */
uint32_t sim_random(struct sim *sim, uint32_t below)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15;

    assert(below > 0);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

bool sim_happens(struct sim *sim, unsigned per_mille)
{
    assert(per_mille <= 1000);
    return per_mille > 0 && sim_random(sim, 1000) < per_mille;
}

/* FNV-1a */
void sim_record(struct sim *sim, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        sim->digest = (sim->digest ^ bytes[i]) * 0x100000001b3;
}

uint64_t sim_digest(const struct sim *sim)
{
    return sim->digest;
}

struct sim_endpoint *sim_endpoint_find(struct sim *sim, int fd)
{
    struct sim_endpoint key;

    key.view.fd = fd;
    return RB_FIND(sim_endpoints, &sim->endpoints, &key);
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

void sim_endpoint_free(struct sim_endpoint *s)
{
    struct sim_step *step;

    CHECK_KIND(s->sim, SIM_KIND);
    assert(TAILQ_EMPTY(&s->watches));
    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
    free(s->lent);
    free(s->view.sent);
    RB_REMOVE(sim_endpoints, &s->sim->endpoints, s);
    free(s);
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

void sim_check(const struct sim *sim)
{
    CHECK_KIND(sim, SIM_KIND);
    assert(sim->edge.self == sim && sim->level.self == sim);
    assert(sim->next_fd >= SIM_FIRST_FD && sim->loop_n > 0);
    assert(sim->clock.mono_ms > 0);
}
