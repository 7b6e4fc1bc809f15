/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel AIO by libaio. An eventfd counts ended requests. A child of fork() has no context. */
#include "event/file_aio.h"

#include "base/check.h"
#include "event/loop.h"

#include <errno.h>
#include <libaio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILE_AIO_KIND KIND('F', 'A', 'I', 'O')
/* Ended requests that one system call tells. */
#define EVENTS_A_CALL 64

struct file_aio {
    unsigned kind;
    unsigned taken; /* requests that the kernel has */
    io_context_t context;
    struct source *source; /* the eventfd */
    void (*ended)(struct loop *loop, struct file_aio_request *request);
};

bool file_aio_built(void)
{
    return true;
}

static void requests_ended(struct loop *loop, struct source *source)
{
    struct file_aio *aio = loop->file_aio;
    struct io_event events[EVENTS_A_CALL];
    struct timespec none = { 0, 0 };
    uint64_t count;
    int n;

    CHECK_KIND(aio, FILE_AIO_KIND);
    assert(source == aio->source);
    while (read(source->fd, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
    source->events[EVENT_READ].ready = false;
    do {
        n = io_getevents(aio->context, 0, EVENTS_A_CALL, events, &none);
        for (int i = 0; i < n; i++) {
            struct file_aio_request *request = events[i].data;

            assert(aio->taken > 0);
            aio->taken--;
            request->result = (int64_t)events[i].res;
            aio->ended(loop, request);
        }
    } while (n == EVENTS_A_CALL || n == -EINTR);
}

/* Makes a watched source of the eventfd; NULL with errno, and it is closed. */
static struct source *watch_eventfd(struct loop *loop, int fd)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = requests_ended } };
    struct source *source = fd == -1 ? NULL : source_get(&loop->sources);
    int error = errno;

    if (source == NULL && fd != -1) {
        close(fd);
        error = EMFILE; /* no slot */
    }
    if (source != NULL) {
        source->fd = fd;
        source->ops = &ops;
        source->io = &io_socket;
        if (source_arm(loop, source, EVENT_READ) == 0)
            return source;
        error = errno;
        source_close(loop, source, false);
    }
    errno = error;
    return NULL;
}

int file_aio_open(struct loop *loop, unsigned requests,
    void (*ended)(struct loop *loop, struct file_aio_request *request))
{
    struct file_aio *aio = calloc(1, sizeof(*aio));
    int error;

    assert(loop->file_aio == NULL && requests > 0 && ended != NULL);
    if (aio == NULL)
        return -1;
    aio->kind = FILE_AIO_KIND;
    aio->ended = ended;
    error = -io_setup((int)requests, &aio->context);
    if (error == 0) {
        aio->source = watch_eventfd(loop, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        if (aio->source != NULL) {
            loop->file_aio = aio;
            return 0;
        }
        error = errno;
        io_destroy(aio->context);
    }
    free(aio);
    errno = error;
    return -1;
}

int file_aio_submit(struct loop *loop, struct file_aio_request *request)
{
    struct file_aio *aio = loop->file_aio;
    struct iocb block, *blocks[] = { &block };
    int n;

    CHECK_KIND(aio, FILE_AIO_KIND);
    io_prep_pread(&block, request->fd, request->p, request->n, (long long)request->offset);
    io_set_eventfd(&block, aio->source->fd);
    block.data = request;
    n = io_submit(aio->context, 1, blocks); /* copies the block */
    if (n == 1) {
        aio->taken++;
        return 0;
    }
    errno = n < 0 ? -n : EAGAIN;
    return -1;
}

void file_aio_close(struct loop *loop)
{
    struct file_aio *aio = loop->file_aio;

    if (aio == NULL)
        return;
    CHECK_KIND(aio, FILE_AIO_KIND);
    io_destroy(aio->context);
    source_close(loop, aio->source, false);
    loop->file_aio = NULL;
    aio->kind = 0;
    free(aio);
}
