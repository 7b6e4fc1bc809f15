/* SPDX-License-Identifier: BSD-2-Clause */
/* The three ways of a read, and the queue before the kernel's. With O_DIRECT reads begin and end at
 * multiples of `directio_alignment`; the protocol is lent the wanted part. */
#include "worker/file_reads.h"

#include "event/file_aio.h"
#include "worker/jobs.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifndef O_DIRECT /* a system without it */
#define O_DIRECT 0
#endif

/* Alignment of memory without a directive. */
#define PAGE 4096

struct file_read {
    struct session_read base; /* the first member */
    struct file_aio_request request;
    struct fb_worker *handle;     /* the connection's protocol */
    const struct fb_pool *pool;   /* whose thread reads, if one does */
    TAILQ_ENTRY(file_read) place; /* in a list of the worker's, with kernel AIO */
    size_t alignment;             /* to read with; 1: any will do */
    size_t skipped;               /* bytes before those that were asked for */
    size_t wanted;
    size_t got; /* bytes in the memory so far */
    int error;  /* of the thread */
};

fb_aio file_reads_way(const struct fb_conn *conn)
{
    const struct worker *worker = container_of(stream_of(conn), struct worker, stream);
    fb_aio way = (fb_aio)session_server_of(conn)->settings.aio.way;

    return way == FB_AIO_ON && worker->file_reads.most == 0 ? FB_AIO_THREADS : way;
}

static size_t round_up(uint64_t n, size_t alignment)
{
    return (size_t)((n + alignment - 1) & ~(uint64_t)(alignment - 1));
}

/* Allocates a read with the aligned memory behind; NULL without memory. */
static struct file_read *create_read(
    struct fb_worker *handle, int fd, uint64_t offset, size_t n, size_t alignment)
{
    size_t skipped = (size_t)(offset & (alignment - 1)), room = round_up(skipped + n, alignment);
    size_t aligned = alignment > PAGE ? alignment : PAGE;
    struct file_read *read =
        memory_alloc(handle->worker->stream.net.memory, sizeof(*read) + aligned + room);
    char *end;

    if (read == NULL)
        return NULL;
    end = (char *)(read + 1);
    *read = (struct file_read) {
        .request = { .fd = fd, .n = room, .offset = offset - skipped },
        .handle = handle,
        .alignment = alignment,
        .skipped = skipped,
        .wanted = n,
    };
    read->request.p = end + (round_up((uintptr_t)end, aligned) - (uintptr_t)end);
    return read;
}

/* Tells the session the bytes read, or the error. */
static void end_read(struct file_read *read, int error)
{
    const struct file_aio_request *request = &read->request;
    const uint8_t *first = (const uint8_t *)request->p - read->got + read->skipped;
    fb_file_read outcome = { .offset = request->offset - read->got + read->skipped,
        .error = error };
    size_t n = error == 0 && read->got > read->skipped ? read->got - read->skipped : 0;

    if (n > 0)
        outcome.bytes = (fb_bytes) { first, n < read->wanted ? n : read->wanted };
    session_read_end(&read->handle->worker->stream, &read->base, &outcome);
}

/* Counts the bytes of a read; whether to read on: an unaligned part ends the file. */
static bool note_progress(struct file_read *read, size_t n)
{
    struct file_aio_request *request = &read->request;

    assert(n <= request->n);
    read->got += n;
    request->p = (char *)request->p + n;
    request->offset += n;
    request->n -= n;
    return n > 0 && request->n > 0 && (n & (read->alignment - 1)) == 0;
}

/* Reads in this thread; 0, or an errno. */
static int read_whole(struct file_read *read)
{
    const struct file_aio_request *request = &read->request;
    ssize_t n;

    do
        n = pread(request->fd, request->p, request->n, (off_t)request->offset);
    while (n == -1 ? errno == EINTR : note_progress(read, (size_t)n));
    return n == -1 ? errno : 0;
}

/* ---- Threads ---- */

/* A job's argument is a pointer to the read. */
static void work_read(void *arg)
{
    struct file_read *read = *(struct file_read **)arg;

    if (!atomic_load_explicit(&read->base.is_forgotten, memory_order_relaxed))
        read->error = read_whole(read);
}

static void finish_read_job(struct fb_worker *handle, void *arg)
{
    struct file_read *read = *(struct file_read **)arg;

    assert(read->handle == handle);
    end_read(read, read->error);
}

static int read_on_thread(struct file_read *read)
{
    return jobs_run(read->handle, read->pool, work_read, finish_read_job, &read, sizeof(read));
}

/* ---- Kernel AIO ---- */

/* Gives a waiting read to the kernel, or to a thread; false: not before a running read ends. */
static bool submit_read(struct file_reads *reads, struct file_read *read)
{
    bool is_taken = file_aio_submit(&read->handle->worker->stream.net.loop, &read->request) == 0;

    if (!is_taken && errno == EAGAIN && reads->under_way_n > 0)
        return false;
    TAILQ_REMOVE(&reads->waiting, read, place);
    if (is_taken) {
        TAILQ_INSERT_TAIL(&reads->under_way, read, place);
        reads->under_way_n++;
    } else if (read_on_thread(read) == -1) {
        end_read(read, EIO);
    }
    return true;
}

/* Gives waiting reads to the kernel; forgotten ones, perhaps with a closed descriptor, go. */
static void submit_waiting(struct file_reads *reads)
{
    struct file_read *read;

    while ((read = TAILQ_FIRST(&reads->waiting)) != NULL)
        if (read->base.use == NULL) {
            TAILQ_REMOVE(&reads->waiting, read, place);
            end_read(read, 0);
        } else if (reads->under_way_n >= reads->most || !submit_read(reads, read)) {
            return;
        }
}

static void request_ended(struct loop *loop, struct file_aio_request *request)
{
    struct file_read *read = container_of(request, struct file_read, request);
    struct file_reads *reads = &worker_of_loop(loop)->file_reads;
    int64_t result = request->result;

    assert(reads->under_way_n > 0);
    TAILQ_REMOVE(&reads->under_way, read, place);
    reads->under_way_n--;
    if (result < 0)
        end_read(read, (int)-result);
    else if (note_progress(read, (size_t)result) && read->base.use != NULL)
        TAILQ_INSERT_HEAD(&reads->waiting, read, place);
    else
        end_read(read, 0);
    submit_waiting(reads);
}

int file_reads_begin(
    struct fb_conn *conn, int fd, uint64_t offset, size_t n, session_read_done *done)
{
    struct worker *worker = container_of(stream_of(conn), struct worker, stream);
    const struct server *server = session_server_of(conn);
    const struct server_settings *settings = &server->settings;
    int flags = fcntl(fd, F_GETFL);
    bool direct = flags != -1 && (flags & O_DIRECT) != 0;
    fb_aio way = file_reads_way(conn);
    struct file_read *read;

    if (n == 0 || n > FB_READ_MAX || offset > INT64_MAX - 2 * FB_READ_MAX)
        return -1;
    read = create_read(&worker->protocols[server->protocol_index], fd, offset, n,
        direct ? (size_t)settings->directio_alignment : 1);
    if (read == NULL)
        return -1;
    read->pool = settings->aio.pool != NULL ? settings->aio.pool : &worker->cycle->core.pool;
    if (session_read_begin(conn, &read->base, done) == -1) {
        memory_release(worker->stream.net.memory, read);
        return -1;
    }
    if (way == FB_AIO_ON && direct) {
        TAILQ_INSERT_TAIL(&worker->file_reads.waiting, read, place);
        submit_waiting(&worker->file_reads);
    } else if (way == FB_AIO_OFF) {
        end_read(read, read_whole(read));
    } else if (read_on_thread(read) == -1) {
        session_read_cancel(&read->base);
        return -1;
    }
    return 0;
}

void file_reads_open(struct worker *worker)
{
    struct file_reads *reads = &worker->file_reads;
    struct loop *loop = &worker->stream.net.loop;
    unsigned most = (unsigned)worker->cycle->events.worker_aio_requests;
    const struct server *server;

    TAILQ_INIT(&reads->under_way);
    TAILQ_INIT(&reads->waiting);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->settings.aio.way == FB_AIO_ON)
            break;
    if (server == NULL || loop->mechanism->self != NULL) /* simulated */
        return;
    if (file_aio_open(loop, most, request_ended) == 0)
        reads->most = most;
    else
        log_write(&worker->log, LEVEL_WARN, errno,
            "the kernel refuses \"aio on\" with %u \"worker_aio_requests\", files are read on "
            "threads",
            most);
}

void file_reads_close(struct worker *worker)
{
    struct file_reads *reads = &worker->file_reads;
    struct file_read *read;

    if (reads->most == 0)
        return;
    file_aio_close(&worker->stream.net.loop); /* the kernel writes nothing more */
    TAILQ_CONCAT(&reads->waiting, &reads->under_way, place);
    while ((read = TAILQ_FIRST(&reads->waiting)) != NULL) {
        TAILQ_REMOVE(&reads->waiting, read, place);
        end_read(read, 0);
    }
    reads->under_way_n = reads->most = 0;
}
