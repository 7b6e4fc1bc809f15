/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's ring, restricted to the operations of ring_ops.c, as no filter of system calls sees
 * them; and the table of watches. Invariant: a free watch has no operation with the kernel. */
#include "event/mechanisms/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MASK_SIZE 8 /* bytes of a set of signals for the kernel */

/* A single thread submits; completions are looked at within the wait, never behind a reader. */
#define SETUP_FLAGS                                                                                \
    (IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |           \
        IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP)

/* Makes the ring, not enabled yet; -1 with errno. */
static int make_ring(struct io_uring *io, unsigned entries)
{
    struct io_uring_restriction allowed[] = {
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_RECV },
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SEND },
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_POLL_ADD },
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_ASYNC_CANCEL },
        { .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
            .sqe_flags = IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS },
    };
    struct io_uring_params params = { .flags = SETUP_FLAGS, .cq_entries = 4 * entries };
    int error = io_uring_queue_init_params(entries, io, &params);

    if (error == 0) {
        /* a direct call, as below: linked dynamically, the library lacks these */
        error = io_uring_register(
            (unsigned)io->ring_fd, IORING_REGISTER_RESTRICTIONS, allowed, countof(allowed));
        if (error == 0)
            error = io_uring_ring_dontfork(io);
        if (error < 0)
            io_uring_queue_exit(io);
    }
    errno = -error;
    return error < 0 ? -1 : 0;
}

int ring_open(struct ring *ring, unsigned entries, unsigned n)
{
    void *table;
    int error;

    TAILQ_INIT(&ring->changed);
    TAILQ_INIT(&ring->unread);
    TAILQ_INIT(&ring->silent);
    TAILQ_INIT(&ring->plain);
    ring->free = UINT32_MAX;
    if (make_ring(&ring->io, entries) == -1)
        return -1;
    /* watches of sources, and of some that are gone */
    ring->watches_max = 2 * (ring->loop != NULL ? ring->loop->sources.n : 0) + 64;
    table = mmap(NULL, ring->watches_max * sizeof(struct ring_watch), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table != MAP_FAILED)
        ring->watches = table;
    if (table == MAP_FAILED || ring_buffers_init(ring, n) == -1) {
        error = errno;
        ring_close(ring);
        errno = error;
        return -1;
    }
    error = io_uring_register((unsigned)ring->io.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
    if (error < 0) {
        ring_close(ring);
        errno = -error;
        return -1;
    }
    return 0;
}

void ring_close(struct ring *ring)
{
    io_uring_queue_exit(&ring->io);
    ring_buffers_done(ring);
    if (ring->watches != NULL)
        munmap(ring->watches, ring->watches_max * sizeof(struct ring_watch));
}

bool ring_is_possible(void)
{
    struct ring ring = { .kind = RING_KIND };

    if (ring_open(&ring, 1, 1) == -1)
        return false;
    ring_close(&ring);
    return true;
}

struct io_uring_sqe *ring_entry(struct ring *ring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->io);

    if (unlikely(entry == NULL) && io_uring_submit(&ring->io) > 0)
        entry = io_uring_get_sqe(&ring->io);
    return entry;
}

int ring_enter(struct ring *ring, int timeout, const sigset_t *mask)
{
    struct io_uring_sq *queue = &ring->io.sq;
    struct __kernel_timespec limit = { timeout / 1000, timeout % 1000 * 1000000LL };
    struct io_uring_getevents_arg arg = {
        .sigmask = (uintptr_t)mask,
        .sigmask_sz = MASK_SIZE,
        .ts = timeout > 0 ? (uintptr_t)&limit : 0,
    };

    /* the library's calls would wait once more after a signal has ended the wait */
    queue->sqe_head = queue->sqe_tail;
    io_uring_smp_store_release(queue->ktail, queue->sqe_tail);
    return io_uring_enter2((unsigned)ring->io.ring_fd, io_uring_sq_ready(&ring->io), timeout != 0,
        IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, (sigset_t *)(void *)&arg, sizeof(arg));
}

struct ring_watch *ring_watch_get(struct ring *ring, struct source *source)
{
    struct ring_watch *watch = ring_watch_of(ring, source);

    if (watch != NULL)
        return watch;
    if (ring->free != UINT32_MAX) {
        watch = &ring->watches[ring->free];
        ring->free = watch->next_free;
    } else if (ring->used_n < ring->watches_max) {
        watch = &ring->watches[ring->used_n++];
    } else {
        errno = ENOBUFS;
        return NULL;
    }
    assert(!watch->in_use);
    *watch = (struct ring_watch) {
        .source = source,
        .in_use = true,
        .plain = ring_is_plain(source),
        .in.buffer = -1,
        .out.buffer = -1,
    };
    ring->in_use_n++;
    source->position = (uint32_t)(watch - ring->watches) + 1;
    if (watch->plain)
        TAILQ_INSERT_TAIL(&ring->plain, watch, silent_link);
    return watch;
}

void ring_watch_put(struct ring *ring, struct ring_watch *watch)
{
    assert(watch->in_use && watch->source == NULL && !ring_is_busy(watch));
    assert(!watch->changed && !watch->unread);
    assert(watch->in.p == NULL && watch->out.p == NULL);
    watch->in_use = false;
    watch->next_free = ring->free;
    ring->free = (uint32_t)(watch - ring->watches);
    ring->in_use_n--;
}

void ring_check(const struct ring *ring)
{
    unsigned in_use_n = 0, busy_n = 0, held_n = ring->lent_n, sent_n = 0, twice_n = 0;

    CHECK_KIND(ring, RING_KIND);
    for (uint32_t i = 0; i < ring->used_n; i++) {
        const struct ring_watch *watch = &ring->watches[i];
        const struct source *source = watch->source;
        bool reports = watch->in.p != NULL || watch->in.eof || watch->in.error != 0;

        if (!watch->in_use)
            continue;
        in_use_n++;
        assert(source == NULL || (source->in_use && source->position == i + 1));
        assert(source == NULL || watch->plain == ring_is_plain(source));
        assert(source != NULL || watch->changed || ring_is_busy(watch));
        assert(watch->in.p == NULL || watch->in.at < watch->in.end);
        assert(watch->out.p == NULL || watch->out.at < watch->out.end);
        assert(watch->unread == (source != NULL && watch->wanted[EVENT_READ] && reports));
        assert(watch->out.p == NULL || watch->busy[RING_SEND] || watch->changed);
        for (int op = 0; op < RING_OPS; op++)
            busy_n += watch->busy[op];
        held_n += watch->in.buffer != -1;
        sent_n += watch->out.buffer != -1;
    }
    for (unsigned i = 0; i < ring->buffer_n; i++)
        twice_n += ring->uses[i] > 1 ? ring->uses[i] - 1u : 0;
    assert(in_use_n == ring->in_use_n && busy_n == ring->busy_n && sent_n == ring->sent_n);
    assert(held_n + sent_n - twice_n == ring->held_n); /* no buffer is lost */
}
