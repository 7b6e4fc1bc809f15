/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of kqueue's sources, without calls for numbers known from the kernel: a peer's
 * end, its errno, and the last accept of several. Invariant: a number is at most too great, by
 * bytes that others have moved, and leads to the call; clients count until the next wait. */
#include "event/mechanisms/kqueue_told.h"

#include "base/check.h"

#include <stdlib.h>

#define KQUEUE_TELLING_KIND KIND('k', 'q', 't', 'e')

static struct kqueue_told *told_of(
    const struct kqueue_telling *telling, const struct source *source)
{
    CHECK_KIND(telling, KQUEUE_TELLING_KIND);
    return &telling->told[source_index(telling->sources, source)];
}

int kqueue_telling_init(struct kqueue_telling *telling, const struct source_table *sources)
{
    struct kqueue_told *told = calloc(sources->n, sizeof(*told)); /* touched when it is used */

    *telling = (struct kqueue_telling) {
        .kind = KQUEUE_TELLING_KIND,
        .wait = 1,
        .sources = sources,
        .told = told,
    };
    return told == NULL ? -1 : 0;
}

void kqueue_telling_done(struct kqueue_telling *telling)
{
    free(telling->told);
    telling->kind = 0;
}

void kqueue_tell_nothing(struct kqueue_telling *telling, const struct source *source)
{
    *told_of(telling, source) = (struct kqueue_told) { .left = 0 };
}

static uint32_t limit_count(int64_t n)
{
    if (n < 0)
        return 0;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

void kqueue_tell_end(struct kqueue_telling *telling, const struct source *source,
    enum event_direction direction, int64_t bytes, int error)
{
    struct kqueue_told *told = told_of(telling, source);

    if (error != 0)
        told->error = error;
    if (direction == EVENT_WRITE) {
        told->unwritable = error != 0;
        return;
    }
    told->ended = true;
    told->left = limit_count(bytes);
}

void kqueue_tell_clients(struct kqueue_telling *telling, const struct source *source, int64_t n)
{
    struct kqueue_told *told = told_of(telling, source);

    told->left = limit_count(n);
    told->wait = told->left > 0 ? telling->wait : 0;
}

static struct io_result recv_told(struct source *source, struct io_span *span)
{
    struct kqueue_told *told = told_of(source->io_state, source);
    struct io_result result;

    if (unlikely(told->ended) && told->left == 0) {
        if (told->error != 0)
            return (struct io_result) { .status = IO_FAILED, .error = told->error };
        return (struct io_result) { .status = IO_EOF };
    }
    result = io_socket_recv(source, span);
    if (unlikely(told->ended) && result.status == IO_DONE)
        told->left -= result.n < told->left ? (uint32_t)result.n : told->left;
    return result;
}

static struct io_result accept_told(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    const struct kqueue_telling *telling = listener->io_state;
    struct kqueue_told *told = told_of(telling, listener);
    struct io_result result;

    if (told->wait != telling->wait)
        return io_socket_accept(listener, fd, address, length);
    if (told->left == 0) {
        told->wait = 0; /* a second question wants to know */
        return (struct io_result) { .status = IO_AGAIN_READ };
    }
    result = io_socket_accept(listener, fd, address, length);
    told->left--;
    return result;
}

static struct io_result connected_told(struct source *source)
{
    const struct kqueue_told *told = told_of(source->io_state, source);

    if (told->unwritable)
        return (struct io_result) { .status = IO_FAILED, .error = told->error };
    return io_socket_connected(source);
}

const struct io_ops kqueue_io = {
    IO_SOCKET_COMMON,
    IO_SOCKET_SYSTEM,
    .recv = recv_told,
    .accept = accept_told,
    .connected = connected_told,
};
