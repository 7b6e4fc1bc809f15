/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sim_private.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DIGEST 1000000
#define FAULT_MAX 256

static int compare(const struct fb_sim_inner *a, const struct fb_sim_inner *b)
{
    return (a->shown.fd > b->shown.fd) - (a->shown.fd < b->shown.fd);
}

RB_GENERATE_INTERNAL(fb_sim_sockets, fb_sim_inner, node, compare, static __attribute__((unused)))

struct fb_sim *fb_sim_create(void)
{
    struct fb_sim *sim = calloc(1, sizeof(*sim));

    assert(sim != NULL);
    sim->edge = fb_mechanism_sim;
    sim->level = fb_mechanism_sim_level;
    sim->edge.self = sim->level.self = sim;
    RB_INIT(&sim->sockets);
    STAILQ_INIT(&sim->servers);
    STAILQ_INIT(&sim->faults);
    sim->next_fd = FB_SIM_FIRST_FD;
    sim_clock_init(&sim->clock);
    sim->digest = FIRST_DIGEST;
    return sim;
}

void fb_sim_destroy(struct fb_sim **simp)
{
    struct fb_sim *sim = *simp;
    struct fb_sim_inner *s;
    struct fb_sim_fault *fault;

    *simp = NULL;
    assert(sim->loop_n == 0);
    fb_sim_check_closed(sim);
    while ((s = RB_MIN(fb_sim_sockets, &sim->sockets)) != NULL)
        fb_sim_socket_free(s);
    fb_sim_servers_free(sim);
    while ((fault = STAILQ_FIRST(&sim->faults)) != NULL) {
        STAILQ_REMOVE_HEAD(&sim->faults, link);
        free(fault);
    }
    free(sim);
}

const struct fb_mechanism *fb_sim_edge(struct fb_sim *sim)
{
    return &sim->edge;
}

const struct fb_mechanism *fb_sim_level(struct fb_sim *sim)
{
    return &sim->level;
}

struct fb_sim *fb_sim_of(const struct fb_loop *loop)
{
    return loop->mechanism->self;
}

void fb_sim_on_fault(struct fb_sim *sim, void (*fault)(void *arg, const char *text), void *arg)
{
    sim->fault = fault;
    sim->fault_arg = arg;
}

unsigned fb_sim_faults(const struct fb_sim *sim)
{
    return sim->fault_n;
}

const char *fb_sim_fault_text(const struct fb_sim *sim, unsigned i)
{
    const struct fb_sim_fault *fault;

    STAILQ_FOREACH (fault, &sim->faults, link)
        if (i-- == 0)
            return fault->text;
    return NULL;
}

void fb_sim_fault(struct fb_sim *sim, int fd, const char *format, ...)
{
    struct fb_sim_fault *fault = malloc(sizeof(*fault) + FAULT_MAX);
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

void fb_sim_check_closed(struct fb_sim *sim)
{
    struct fb_sim_inner *s;

    RB_FOREACH (s, fb_sim_sockets, &sim->sockets) {
        if (!s->owed)
            continue;
        s->owed = false;
        fb_sim_fault(sim, s->shown.fd, "was not closed");
    }
}

unsigned fb_sim_reported(const struct fb_sim *sim)
{
    return sim->reported;
}

int fb_sim_timeout(const struct fb_sim *sim)
{
    return sim->timeout;
}

void fb_sim_on_wait(struct fb_sim *sim, void (*waiting)(struct fb_loop *loop, int timeout))
{
    sim->waiting = waiting;
}

void fb_sim_refuse_watching(struct fb_sim *sim, int error)
{
    sim->refusal = error;
}

void fb_sim_trouble(struct fb_sim *sim, uint64_t seed, const struct fb_sim_trouble *trouble)
{
    static const struct fb_sim_trouble none;

    sim->random = seed;
    sim->trouble = trouble != NULL ? *trouble : none;
}

/* splitmix64 */
uint32_t fb_sim_any(struct fb_sim *sim, uint32_t below)
{
    uint64_t z = sim->random += 0x9e3779b97f4a7c15;

    assert(below > 0);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

bool fb_sim_happens(struct fb_sim *sim, unsigned per_mille)
{
    return per_mille > 0 && fb_sim_any(sim, 1000) < per_mille;
}

/* FNV-1a */
void fb_sim_record(struct fb_sim *sim, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++)
        sim->digest = (sim->digest ^ bytes[i]) * 0x100000001b3;
}

uint64_t fb_sim_digest(const struct fb_sim *sim)
{
    return sim->digest;
}

struct fb_sim_inner *fb_sim_find(struct fb_sim *sim, int fd)
{
    struct fb_sim_inner key;

    key.shown.fd = fd;
    return RB_FIND(fb_sim_sockets, &sim->sockets, &key);
}

struct fb_sim_inner *fb_sim_socket_create(struct fb_sim *sim, int fd)
{
    struct fb_sim_inner *s = calloc(1, sizeof(*s)), *other;
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };

    assert(s != NULL);
    peer.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    s->sim = sim;
    s->shown.fd = fd != -1 ? fd : sim->next_fd++;
    s->shown.send_most = s->shown.room = SIZE_MAX;
    memcpy(&s->shown.peer, &peer, sizeof(peer));
    s->shown.peer_length = sizeof(peer);
    STAILQ_INIT(&s->steps);
    STAILQ_INIT(&s->clients);
    TAILQ_INIT(&s->watches);
    other = RB_INSERT(fb_sim_sockets, &sim->sockets, s);
    assert(other == NULL); /* a descriptor stands for one listener only */
    (void)other;
    return s;
}

void fb_sim_socket_free(struct fb_sim_inner *s)
{
    struct fb_sim_step *step;

    assert(TAILQ_EMPTY(&s->watches));
    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
    free(s->lent);
    free(s->shown.sent);
    RB_REMOVE(fb_sim_sockets, &s->sim->sockets, s);
    free(s);
}
