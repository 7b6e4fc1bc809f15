/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a simulation as the harness drives them. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fb_sim_inner *inner(const struct fb_sim_socket *shown)
{
    return fb_container(shown, struct fb_sim_inner, shown);
}

struct fb_sim_socket *fb_sim_connection(struct fb_sim *sim)
{
    struct fb_sim_inner *s = fb_sim_socket_create(sim, -1);

    s->owed = true;
    return &s->shown;
}

struct fb_sim_socket *fb_sim_listener(struct fb_sim *sim, int fd)
{
    return &fb_sim_socket_create(sim, fd)->shown;
}

struct fb_sim_socket *fb_sim_client(struct fb_sim_socket *listener)
{
    struct fb_sim_inner *client = fb_sim_socket_create(inner(listener)->sim, -1);

    client->shown.local = listener->local;
    client->shown.local_length = listener->local_length;
    STAILQ_INSERT_TAIL(&inner(listener)->clients, client, line_link);
    return &client->shown;
}

unsigned fb_sim_waiting(const struct fb_sim_socket *listener)
{
    unsigned n = 0;
    struct fb_sim_inner *client;

    STAILQ_FOREACH (client, &inner(listener)->clients, line_link)
        n++;
    return n;
}

void fb_sim_changed(struct fb_sim_inner *s, enum fb_direction direction)
{
    struct fb_sim_watch *watch;

    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[direction] = true;
}

/* NULL when nothing comes through any more. */
static struct fb_sim_step *arrive(struct fb_sim_inner *s, enum fb_sim_kind kind, size_t n)
{
    struct fb_sim_step *step;

    if (s->shown.broke)
        return NULL;
    assert(!s->over); /* the peer has ended its half, and says something behind it */
    step = calloc(1, sizeof(*step) + n);
    assert(step != NULL);
    step->kind = kind;
    step->n = n;
    s->over = kind == FB_SIM_END || kind == FB_SIM_BROKEN;
    STAILQ_INSERT_TAIL(&s->steps, step, link);
    fb_sim_changed(s, FB_READ);
    return step;
}

void fb_sim_say(struct fb_sim_socket *socket, const void *p, size_t n)
{
    struct fb_sim_step *step;

    assert(n > 0);
    step = arrive(inner(socket), FB_SIM_BYTES, n);
    if (step != NULL)
        memcpy(step->bytes, p, n);
}

void fb_sim_says(struct fb_sim_socket *socket, const char *text)
{
    fb_sim_say(socket, text, strlen(text));
}

void fb_sim_stall(struct fb_sim_socket *socket)
{
    arrive(inner(socket), FB_SIM_STALL, 0);
}

void fb_sim_end(struct fb_sim_socket *socket)
{
    arrive(inner(socket), FB_SIM_END, 0);
}

void fb_sim_break(struct fb_sim_socket *socket, int error)
{
    struct fb_sim_step *step = arrive(inner(socket), FB_SIM_BROKEN, 0);

    if (step != NULL)
        step->error = error;
}

void fb_sim_take(struct fb_sim_socket *socket, size_t n)
{
    socket->room = n;
    if (n > 0)
        fb_sim_changed(inner(socket), FB_WRITE);
}

void fb_sim_break_output(struct fb_sim_socket *socket, int error)
{
    inner(socket)->send_error = error;
    fb_sim_changed(inner(socket), FB_WRITE);
}

void fb_sim_break_both(struct fb_sim_inner *s, int error)
{
    struct fb_sim_step *step = STAILQ_FIRST(&s->steps);

    if (step != NULL && step->at > 0) { /* the program may hold a part of it */
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(s->lent);
        s->lent = step;
    }
    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
    s->over = false;
    fb_sim_break(&s->shown, error);
    fb_sim_break_output(&s->shown, error);
}

size_t fb_sim_unread(const struct fb_sim_socket *socket)
{
    size_t n = 0;
    struct fb_sim_step *step;

    STAILQ_FOREACH (step, &inner(socket)->steps, link)
        n += step->n - step->at;
    return n;
}

const char *fb_sim_sent(const struct fb_sim_socket *socket)
{
    return socket->sent != NULL ? (const char *)socket->sent : "";
}

void fb_sim_forget_sent(struct fb_sim_socket *socket)
{
    free(socket->sent);
    socket->sent = NULL;
    socket->sent_n = inner(socket)->sent_room = 0;
}

void fb_sim_keep_sent(struct fb_sim_inner *s, const uint8_t *p, size_t n)
{
    struct fb_sim_socket *shown = &s->shown;

    if (shown->sent_n + n + 1 > s->sent_room) {
        s->sent_room = 2 * (shown->sent_n + n + 1);
        shown->sent = realloc(shown->sent, s->sent_room);
        assert(shown->sent != NULL);
    }
    memcpy(shown->sent + shown->sent_n, p, n);
    shown->sent_n += n;
    shown->sent[shown->sent_n] = '\0'; /* text can be compared as a string */
}

void fb_sim_drop_first(struct fb_sim_inner *s)
{
    struct fb_sim_step *step = STAILQ_FIRST(&s->steps);
    struct fb_sim_watch *watch;

    STAILQ_REMOVE_HEAD(&s->steps, link);
    free(s->lent);
    s->lent = step;
    /* what follows has arrived after it, which is a change of its own, unless it was told before */
    TAILQ_FOREACH (watch, &s->watches, socket_link)
        watch->changed[FB_READ] =
            !STAILQ_EMPTY(&s->steps) && (step->kind == FB_SIM_STALL || !watch->source->eof);
}

void fb_sim_forget(struct fb_sim_socket **socket)
{
    struct fb_sim_inner *s = inner(*socket);

    assert(s->shown.closed);
    *socket = NULL;
    fb_sim_socket_free(s);
}
