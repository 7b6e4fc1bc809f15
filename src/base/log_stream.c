/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps whole messages from `begin` to `end`, the first of which the connection has accepted up to
 * `sent`; sends, and finds the end of a connection. Never connects, logs, or waits, but for
 * log_stream_finish(). */
#include "base/log_stream.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LENGTH_MAX 12 /* "1048576 " with its terminator */

struct log_stream {
    pid_t owner;
    enum log_stream_phase phase;
    int error;         /* that has ended the last connection */
    size_t begin, end; /* of the waiting messages; equal: none waits */
    size_t sent;       /* of the first message, by the present connection */
    char bytes[LOG_STREAM_SIZE];
};

/* Memory of its own: no page is there before lines wait, and a worker's goes with the process. */
struct log_stream *log_stream_create(void)
{
    struct log_stream *stream =
        mmap(NULL, sizeof(*stream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (stream == MAP_FAILED)
        return NULL;
    stream->owner = getpid();
    assert(stream->phase == LOG_STREAM_DOWN && !log_stream_waits(stream));
    return stream;
}

void log_stream_destroy(struct log_stream **stream)
{
    if (*stream != NULL)
        munmap(*stream, sizeof(**stream));
    *stream = NULL;
}

static void set_phase(struct log_stream *stream, enum log_stream_phase phase)
{
    assert(phase != LOG_STREAM_UP || stream->phase != LOG_STREAM_DOWN);
    stream->phase = phase;
}

void log_stream_open(struct log_stream *stream)
{
    set_phase(stream, LOG_STREAM_OPENING);
    stream->sent = 0;
}

bool log_stream_separate(struct log_stream *stream)
{
    pid_t self = getpid();

    if (stream->owner == self)
        return false;
    stream->owner = self;
    stream->begin = stream->end = stream->sent = 0;
    set_phase(stream, LOG_STREAM_DOWN);
    return true;
}

enum log_stream_phase log_stream_phase(const struct log_stream *stream)
{
    return stream->phase;
}

int log_stream_error(const struct log_stream *stream)
{
    return stream->error;
}

bool log_stream_waits(const struct log_stream *stream)
{
    assert(stream->begin <= stream->end && stream->end <= LOG_STREAM_SIZE);
    return stream->begin < stream->end;
}

/* Ends the use of the connection; what it has accepted of the first message counts no more. */
static void break_connection(struct log_stream *stream, int error)
{
    set_phase(stream, LOG_STREAM_DOWN);
    stream->error = error;
    stream->sent = 0;
}

/* Whether the connection has only no room, or is not made yet. */
static bool is_busy(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM ||
           error == EINTR;
}

/* Looks for the server's end of the connection: a line sent behind it would be lost unseen. What a
 * server sends, as none should, is dropped. */
static void find_end(struct log_stream *stream, int fd)
{
    char bytes[256];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n == 0)
        break_connection(stream, EPIPE);
    else if (n == -1 && !is_busy(errno))
        break_connection(stream, errno);
}

/* Sends once; returns the number of accepted bytes. */
static size_t send_bytes(struct log_stream *stream, int fd, struct iovec *parts, unsigned part_n)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = part_n };
    ssize_t n;

    if (stream->phase == LOG_STREAM_UP)
        find_end(stream, fd);
    if (stream->phase == LOG_STREAM_DOWN)
        return 0;
    n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        set_phase(stream, LOG_STREAM_UP);
        return (size_t)n;
    }
    /* some systems say so of a connection that is not made yet */
    if (n == -1 && !is_busy(errno) && !(errno == ENOTCONN && stream->phase == LOG_STREAM_OPENING))
        break_connection(stream, errno);
    return 0;
}

/* Returns the bytes of the first waiting message, with its length in front. */
static size_t first_size(const struct log_stream *stream)
{
    const char *p = stream->bytes + stream->begin;
    size_t n = 0;

    assert(log_stream_waits(stream));
    while (isdigit((unsigned char)*p))
        n = n * 10 + (size_t)(*p++ - '0');
    assert(*p == ' ');
    return (size_t)(p + 1 - stream->bytes) - stream->begin + n;
}

/* Forgets the messages that were sent. */
static void forget_sent(struct log_stream *stream)
{
    while (log_stream_waits(stream)) {
        size_t n = first_size(stream);

        if (stream->sent < n)
            break;
        stream->begin += n;
        stream->sent -= n;
    }
    assert(stream->begin + stream->sent <= stream->end);
    if (!log_stream_waits(stream))
        stream->begin = stream->end = 0;
}

void log_stream_flush(struct log_stream *stream, int fd)
{
    while (log_stream_waits(stream)) {
        struct iovec rest = { .iov_base = stream->bytes + stream->begin + stream->sent,
            .iov_len = stream->end - stream->begin - stream->sent };
        size_t n = send_bytes(stream, fd, &rest, 1);

        if (n == 0)
            return;
        stream->sent += n;
        forget_sent(stream);
    }
}

/* Whether there is room for n bytes more. What waits is moved only once half of the room is in
 * front of it, so that few bytes are moved for each message. */
static bool make_room(struct log_stream *stream, size_t n)
{
    if (LOG_STREAM_SIZE - stream->end >= n)
        return true;
    if (stream->begin >= LOG_STREAM_SIZE / 2) {
        memmove(stream->bytes, stream->bytes + stream->begin, stream->end - stream->begin);
        stream->end -= stream->begin;
        stream->begin = 0;
    }
    return LOG_STREAM_SIZE - stream->end >= n;
}

static void append(struct log_stream *stream, const struct iovec *parts, unsigned part_n)
{
    for (unsigned i = 0; i < part_n; i++) {
        assert(LOG_STREAM_SIZE - stream->end >= parts[i].iov_len);
        memcpy(stream->bytes + stream->end, parts[i].iov_base, parts[i].iov_len);
        stream->end += parts[i].iov_len;
    }
}

bool log_stream_put(struct log_stream *stream, int fd, const struct iovec *parts, unsigned part_n)
{
    struct iovec framed[LOG_STREAM_PARTS + 1];
    char length[LENGTH_MAX];
    size_t n = 0;

    assert(part_n <= LOG_STREAM_PARTS);
    for (unsigned i = 0; i < part_n; i++) {
        framed[i + 1] = parts[i];
        n += parts[i].iov_len;
    }
    if (n > LOG_STREAM_SIZE - LENGTH_MAX) {
        errno = EMSGSIZE;
        return false;
    }
    framed[0].iov_base = length;
    framed[0].iov_len = (size_t)snprintf(length, sizeof(length), "%zu ", n);
    n += framed[0].iov_len;
    log_stream_flush(stream, fd);
    if (!log_stream_waits(stream)) {
        size_t sent = send_bytes(stream, fd, framed, part_n + 1);

        if (sent == n)
            return true;
        stream->sent = sent;
    }
    if (!make_room(stream, n)) {
        errno = stream->phase == LOG_STREAM_DOWN && stream->error != 0 ? stream->error : EAGAIN;
        return false;
    }
    append(stream, framed, part_n + 1);
    return true;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void log_stream_finish(struct log_stream *stream, int fd, int ms)
{
    int64_t until = now_ms() + ms, left = ms;

    for (; left > 0; left = until - now_ms()) {
        struct pollfd end = { .fd = fd, .events = POLLOUT };

        log_stream_flush(stream, fd);
        if (!log_stream_waits(stream) || stream->phase == LOG_STREAM_DOWN)
            return;
        poll(&end, 1, (int)left);
    }
}

unsigned log_stream_drop(struct log_stream *stream)
{
    unsigned n = 0;

    stream->sent = 0;
    for (; log_stream_waits(stream); n++)
        stream->begin += first_size(stream);
    stream->begin = stream->end = 0;
    return n;
}

unsigned log_stream_move(struct log_stream *from, struct log_stream *to)
{
    unsigned lost = 0;

    assert(from != to && to->owner == getpid());
    log_stream_separate(from);
    while (log_stream_waits(from)) {
        struct iovec message = { .iov_base = from->bytes + from->begin,
            .iov_len = first_size(from) };

        if (make_room(to, message.iov_len))
            append(to, &message, 1);
        else
            lost++;
        from->begin += message.iov_len;
    }
    from->begin = from->end = from->sent = 0;
    return lost;
}
