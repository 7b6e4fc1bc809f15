/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a ring: receive buffers, chosen by the kernel, and buffers for output. Invariant: a
 * buffer is the kernel's exactly when `uses` is 0; at least half of the buffers are never sent
 * from, so that clients without reading cannot stop other receives. */
#include "event/mechanisms/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The most spare buffers for output. */
#define SPARE_MAX 64

static void *map_ring_memory(size_t size)
{
    void *memory = mmap(
        NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, size, MADV_DONTFORK); /* the kernel writes here, for this process alone */
    return memory;
}

/* Gives a free buffer to the kernel. */
static void provide(struct ring *ring, unsigned buffer)
{
    io_uring_buf_ring_add(ring->provided, ring->buffers + buffer * RING_BUFFER_SIZE,
        RING_BUFFER_SIZE, (unsigned short)buffer, (int)ring->provided_mask, 0);
    io_uring_buf_ring_advance(ring->provided, 1);
}

int ring_buffers_init(struct ring *ring, unsigned n)
{
    struct io_uring_buf_reg group = { .bgid = RING_GROUP };
    unsigned places = 1;
    int error;

    assert(n > 0 && n <= 1u << 15);
    while (places < n)
        places *= 2;
    ring->buffer_n = n;
    ring->provided_mask = places - 1;
    ring->provided_size = places * sizeof(struct io_uring_buf);
    ring->provided = map_ring_memory(ring->provided_size);
    ring->buffers = map_ring_memory(n * RING_BUFFER_SIZE);
    ring->uses = calloc(n, sizeof(*ring->uses));
    ring->lent = calloc(n, sizeof(*ring->lent));
    if (ring->provided == NULL || ring->buffers == NULL || ring->uses == NULL ||
        ring->lent == NULL) {
        errno = ENOMEM;
        return -1;
    }
    io_uring_buf_ring_init(ring->provided);
    group.ring_addr = (uintptr_t)ring->provided;
    group.ring_entries = places;
    error = io_uring_register_buf_ring(&ring->io, &group, 0);
    if (error < 0) {
        errno = -error;
        return -1;
    }
    for (unsigned i = 0; i < n; i++)
        provide(ring, i);
    return 0;
}

void ring_buffers_done(struct ring *ring)
{
    struct ring_spare *spare;

    if (ring->provided != NULL)
        munmap(ring->provided, ring->provided_size);
    if (ring->buffers != NULL)
        munmap(ring->buffers, ring->buffer_n * RING_BUFFER_SIZE);
    free(ring->uses);
    free(ring->lent);
    while ((spare = ring->spare) != NULL) {
        ring->spare = spare->next;
        free(spare);
    }
}

uint8_t *ring_buffer_taken(struct ring *ring, int buffer)
{
    assert(buffer >= 0 && (unsigned)buffer < ring->buffer_n && ring->uses[buffer] == 0);
    ring->uses[buffer] = 1;
    ring->held_n++;
    return ring->buffers + (size_t)buffer * RING_BUFFER_SIZE;
}

void ring_buffer_release(struct ring *ring, int buffer)
{
    assert(buffer >= 0 && (unsigned)buffer < ring->buffer_n && ring->uses[buffer] > 0);
    if (--ring->uses[buffer] > 0)
        return;
    assert(ring->held_n > 0);
    ring->held_n--;
    provide(ring, (unsigned)buffer);
}

void ring_buffers_take_back(struct ring *ring)
{
    while (ring->lent_n > 0)
        ring_buffer_release(ring, ring->lent[--ring->lent_n]);
}

/* The input has been taken: its buffer is lent until the next wait. */
static void finish_input(struct ring *ring, struct ring_watch *watch, bool lends)
{
    struct ring_input *in = &watch->in;

    if (in->p == NULL)
        return;
    if (in->buffer == -1)
        free(in->p);
    else if (lends)
        ring->lent[ring->lent_n++] = (uint16_t)in->buffer;
    else
        ring_buffer_release(ring, in->buffer);
    in->p = NULL;
    in->buffer = -1;
    in->at = in->end = 0;
}

void ring_input_drop(struct ring *ring, struct ring_watch *watch)
{
    finish_input(ring, watch, false);
}

size_t ring_input_take(struct ring *ring, struct ring_watch *watch, struct io_span *span)
{
    struct ring_input *in = &watch->in;
    size_t n = in->end - in->at;

    assert(in->p != NULL && n > 0 && span->n > 0);
    if (n > span->n)
        n = span->n;
    if (in->buffer == -1)
        memcpy(span->p, in->p + in->at, n);
    else
        span->p = in->p + in->at;
    span->n = n;
    in->at += (uint32_t)n;
    if (in->at == in->end)
        finish_input(ring, watch, true);
    return n;
}

void ring_input_keep(struct ring *ring, struct ring_watch *watch)
{
    struct ring_input *in = &watch->in;
    uint32_t n = in->end - in->at;
    uint8_t *copy;

    if (in->buffer == -1)
        return;
    copy = malloc(n);
    if (copy == NULL)
        return;
    memcpy(copy, in->p + in->at, n);
    finish_input(ring, watch, true); /* a reader may have a part of the buffer */
    in->p = copy;
    in->end = n;
}

void ring_output_drop(struct ring *ring, struct ring_watch *watch)
{
    struct ring_output *out = &watch->out;
    struct ring_spare *spare = (struct ring_spare *)(void *)out->p;

    assert(!watch->busy[RING_SEND]);
    if (out->p == NULL)
        return;
    if (out->buffer != -1) {
        ring->sent_n--;
        ring_buffer_release(ring, out->buffer);
    } else if (ring->spare_n < SPARE_MAX) {
        spare->next = ring->spare;
        ring->spare = spare;
        ring->spare_n++;
    } else {
        free(out->p);
    }
    out->p = NULL;
    out->buffer = -1;
    out->at = out->end = 0;
    out->waits = false;
}

/* Sends bytes from the receive buffer of a reader; false: to be copied. */
static bool send_from_buffer(struct ring *ring, struct ring_output *out, const struct iovec *piece)
{
    size_t at = (uintptr_t)piece->iov_base - (uintptr_t)ring->buffers;
    size_t buffer = at / RING_BUFFER_SIZE;

    if (buffer >= ring->buffer_n || ring->sent_n >= ring->buffer_n / 2)
        return false;
    assert(ring->uses[buffer] > 0 && ring->uses[buffer] < UINT16_MAX);
    assert(piece->iov_len <= RING_BUFFER_SIZE - at % RING_BUFFER_SIZE);
    ring->uses[buffer]++;
    ring->sent_n++;
    *out = (struct ring_output) {
        .p = piece->iov_base, .end = (uint32_t)piece->iov_len, .buffer = (int)buffer
    };
    return true;
}

size_t ring_output_add(
    struct ring *ring, struct ring_watch *watch, const struct iovec *pieces, int n)
{
    struct ring_output *out = &watch->out;
    struct ring_spare *spare = ring->spare;
    size_t sum = 0;

    assert(!watch->busy[RING_SEND] && out->at == 0);
    errno = 0;
    if (out->p == NULL && n == 1 && send_from_buffer(ring, out, pieces))
        return pieces->iov_len;
    if (out->p == NULL && spare != NULL) {
        ring->spare = spare->next;
        ring->spare_n--;
        out->p = (uint8_t *)spare;
    } else if (out->p == NULL) {
        out->p = malloc(RING_BUFFER_SIZE);
    }
    if (out->p == NULL || out->buffer != -1)
        return 0;
    for (int i = 0; i < n && out->end < RING_BUFFER_SIZE; i++) {
        size_t part = RING_BUFFER_SIZE - out->end;

        if (part > pieces[i].iov_len)
            part = pieces[i].iov_len;
        memcpy(out->p + out->end, pieces[i].iov_base, part);
        out->end += (uint32_t)part;
        sum += part;
    }
    assert(out->end > 0);
    return sum;
}
