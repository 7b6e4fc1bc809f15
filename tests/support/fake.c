/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fake_private.h"

#include <string.h>

#define FIRST_MONO_MS 1000000

struct fake_kernel fake_kernel;

void fake_start(void)
{
    STAILQ_INIT(&fake_kernel.sockets);
    fake_kernel.next_fd = FAKE_FIRST_FD;
    fake_kernel.mono_ms = FIRST_MONO_MS;
    fake_kernel.reported = 0;
    fake_kernel.refusal = 0;
    fake_kernel.waiting = NULL;
}

static void free_steps(struct fake_inner *s)
{
    struct fake_step *step;

    while ((step = STAILQ_FIRST(&s->steps)) != NULL) {
        STAILQ_REMOVE_HEAD(&s->steps, link);
        free(step);
    }
    free(s->lent);
    s->lent = NULL;
}

void fake_stop(void)
{
    struct fake_inner *s;

    while ((s = STAILQ_FIRST(&fake_kernel.sockets)) != NULL) {
        STAILQ_REMOVE_HEAD(&fake_kernel.sockets, link);
        ck_assert_msg(!s->owed, "descriptor %d was not closed", s->shown.fd);
        free_steps(s);
        free(s->shown.sent);
        free(s);
    }
}

void fake_pass(uint64_t ms)
{
    fake_kernel.mono_ms += ms;
}

unsigned fake_reported(void)
{
    return fake_kernel.reported;
}

int fake_timeout(void)
{
    return fake_kernel.timeout;
}

void fake_on_wait(void (*waiting)(struct fb_loop *loop, int timeout))
{
    fake_kernel.waiting = waiting;
}

void fake_refuse_watching(int error)
{
    fake_kernel.refusal = error;
}

struct fake_inner *fake_find(int fd)
{
    struct fake_inner *s;

    STAILQ_FOREACH (s, &fake_kernel.sockets, link)
        if (s->shown.fd == fd)
            return s;
    return NULL;
}

struct fake_inner *fake_of(const struct fb_source *source)
{
    struct fake_inner *s = fake_find(source->fd);

    fb_must(s != NULL && !s->shown.closed); /* the descriptor is open */
    return s;
}

static struct fake_inner *inner(const struct fake_socket *shown)
{
    return fb_container(shown, struct fake_inner, shown);
}

static struct fake_inner *create(int fd)
{
    struct fake_inner *s = calloc(1, sizeof(*s));

    ck_assert_ptr_nonnull(s);
    s->shown = (struct fake_socket) { .fd = fd, .send_most = SIZE_MAX, .room = SIZE_MAX };
    STAILQ_INIT(&s->steps);
    STAILQ_INIT(&s->clients);
    STAILQ_INSERT_TAIL(&fake_kernel.sockets, s, link);
    return s;
}

struct fake_socket *fake_connection(void)
{
    struct fake_inner *s = create(fake_kernel.next_fd++);

    s->owed = true;
    return &s->shown;
}

struct fake_socket *fake_listener(int fd)
{
    return &create(fd)->shown;
}

struct fake_socket *fake_client(struct fake_socket *listener)
{
    struct fake_inner *client = create(fake_kernel.next_fd++);

    STAILQ_INSERT_TAIL(&inner(listener)->clients, client, client_link);
    return &client->shown;
}

unsigned fake_waiting(const struct fake_socket *listener)
{
    unsigned n = 0;
    struct fake_inner *client;

    STAILQ_FOREACH (client, &inner(listener)->clients, client_link)
        n++;
    return n;
}

static struct fake_step *arrive(struct fake_socket *shown, enum fake_kind kind, size_t n)
{
    struct fake_inner *s = inner(shown);
    struct fake_step *step = calloc(1, sizeof(*step) + n);

    ck_assert_ptr_nonnull(step);
    step->kind = kind;
    step->n = n;
    STAILQ_INSERT_TAIL(&s->steps, step, link);
    s->changed[FB_READ] = true;
    return step;
}

void fake_say(struct fake_socket *socket, const void *p, size_t n)
{
    memcpy(arrive(socket, FAKE_BYTES, n)->bytes, p, n);
}

void fake_says(struct fake_socket *socket, const char *text)
{
    fake_say(socket, text, strlen(text));
}

void fake_stall(struct fake_socket *socket)
{
    arrive(socket, FAKE_STALL, 0);
}

void fake_end(struct fake_socket *socket)
{
    arrive(socket, FAKE_END, 0);
}

void fake_break(struct fake_socket *socket, int error)
{
    arrive(socket, FAKE_BROKEN, 0)->error = error;
}

void fake_take(struct fake_socket *socket, size_t n)
{
    socket->room = n;
    inner(socket)->changed[FB_WRITE] = n > 0;
}

void fake_break_output(struct fake_socket *socket, int error)
{
    inner(socket)->send_error = error;
    inner(socket)->changed[FB_WRITE] = true;
}

size_t fake_unread(const struct fake_socket *socket)
{
    size_t n = 0;
    struct fake_step *step;

    STAILQ_FOREACH (step, &inner(socket)->steps, link)
        n += step->n - step->at;
    return n;
}

void fake_drop_first(struct fake_inner *s)
{
    struct fake_step *step = STAILQ_FIRST(&s->steps);

    STAILQ_REMOVE_HEAD(&s->steps, link);
    free(s->lent);
    s->lent = step;
    /* what follows has arrived after it, which is a change of its own, unless it was told before */
    s->changed[FB_READ] = !STAILQ_EMPTY(&s->steps) &&
                          (step->kind == FAKE_STALL || s->source == NULL || !s->source->eof);
}
