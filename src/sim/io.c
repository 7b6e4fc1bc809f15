/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of simulated sockets. */
#include "sim/sim_private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static struct fb_io_result done(size_t n)
{
    return (struct fb_io_result) { .status = FB_IO_DONE, .n = n };
}

static struct fb_io_result failed(int error)
{
    return (struct fb_io_result) { .status = FB_IO_FAILED, .error = error };
}

static struct fb_io_result again(enum fb_direction direction)
{
    return (struct fb_io_result) {
        .status = direction == FB_READ ? FB_IO_AGAIN_READ : FB_IO_AGAIN_WRITE,
    };
}

/* What an operation has answered. */
static struct fb_io_result answer(
    struct fb_sim_inner *s, char operation, struct fb_io_result result)
{
    uint64_t line[] = { (uint64_t)operation, (uint64_t)s->shown.fd, result.status,
        (uint64_t)result.error, result.n };

    fb_sim_record(s->sim, line, sizeof(line));
    return result;
}

struct fb_sim_inner *fb_sim_socket_of(const struct fb_source *source, const char *operation)
{
    struct fb_sim *sim = ((struct fb_sim_loop *)source->io_state)->sim;
    struct fb_sim_inner *s = fb_sim_find(sim, source->fd);

    if (s != NULL && !s->shown.closed)
        return s;
    fb_sim_fault(sim, source->fd, "%s although it is not open", operation);
    return NULL;
}

/* Trouble that comes instead of bytes; whoever is told "again" is told to go on later. */
static bool comes_to_grief(
    struct fb_sim_inner *s, enum fb_direction direction, struct fb_io_result *result)
{
    struct fb_sim *sim = s->sim;

    if (s->shown.broke || s->send_error != 0)
        return false;
    if (fb_sim_happens(sim, sim->trouble.reset)) {
        fb_sim_break_both(s, ECONNRESET);
        s->shown.broke = true;
        *result = failed(ECONNRESET);
        return true;
    }
    if (!fb_sim_happens(sim, sim->trouble.again))
        return false;
    fb_sim_changed(s, direction);
    *result = again(direction);
    return true;
}

/* A part of n. */
static size_t part_of(struct fb_sim *sim, size_t n)
{
    uint32_t below = n - 1 < UINT32_MAX ? (uint32_t)(n - 1) : UINT32_MAX;

    return 1 + fb_sim_any(sim, below);
}

static struct fb_io_result take_bytes(struct fb_sim_inner *s, struct fb_span *span)
{
    struct fb_sim *sim = s->sim;
    struct fb_sim_step *step = STAILQ_FIRST(&s->steps);
    uint8_t *bytes = step->bytes + step->at;
    size_t n = step->n - step->at < span->n ? step->n - step->at : span->n;

    if (n > 1 && fb_sim_happens(sim, sim->trouble.partial_recv)) {
        n = part_of(sim, n);
        fb_sim_changed(s, FB_READ); /* the rest arrives now */
    }
    if (s->shown.lends)
        span->p = bytes;
    else
        memcpy(span->p, bytes, n);
    span->n = n;
    step->at += n;
    if (step->at == step->n)
        fb_sim_drop_first(s);
    return done(n);
}

static struct fb_io_result receive(struct fb_sim_inner *s, struct fb_span *span)
{
    struct fb_sim_step *step = STAILQ_FIRST(&s->steps);
    struct fb_io_result result;

    s->shown.recvs++;
    if (span->n == 0)
        fb_sim_fault(s->sim, s->shown.fd, "recv() without room");
    if (s->connecting || step == NULL || span->n == 0)
        return again(FB_READ);
    if (comes_to_grief(s, FB_READ, &result))
        return result;
    switch (step->kind) {
    case FB_SIM_BYTES:
        return take_bytes(s, span);
    case FB_SIM_STALL:
        fb_sim_drop_first(s);
        return again(FB_READ);
    case FB_SIM_END: /* again and again */
        return (struct fb_io_result) { .status = FB_IO_EOF };
    default:
        return failed(step->error);
    }
}

static struct fb_io_result sim_recv(struct fb_source *source, struct fb_span *span)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "recv()");

    return s != NULL ? answer(s, 'r', receive(s, span)) : failed(EBADF);
}

/* How many of n bytes leave now; 0 when something else is to be answered. */
static size_t allowance(struct fb_sim_inner *s, size_t n, struct fb_io_result *result)
{
    struct fb_sim_socket *shown = &s->shown;
    struct fb_sim *sim = s->sim;
    size_t most = shown->room < shown->send_most ? shown->room : shown->send_most;

    shown->sends++;
    if (shown->shut) {
        fb_sim_fault(sim, shown->fd, "send() after shutdown()");
        *result = failed(EPIPE);
        return 0;
    }
    if (comes_to_grief(s, FB_WRITE, result))
        return 0;
    if (s->send_error != 0)
        *result = failed(s->send_error);
    else
        *result = again(FB_WRITE);
    if (s->send_error != 0 || s->connecting || most == 0)
        return 0;
    if (n > 1 && fb_sim_happens(sim, sim->trouble.partial_send))
        n = part_of(sim, n);
    return n < most ? n : most;
}

static struct fb_io_result leave(struct fb_sim_inner *s, size_t sent, size_t offered)
{
    struct fb_sim_socket *shown = &s->shown;

    if (shown->room != SIZE_MAX)
        shown->room -= sent;
    if (sent < offered && shown->room > 0)
        fb_sim_changed(s, FB_WRITE); /* room comes back at once */
    return done(sent);
}

static void note_pieces(struct fb_sim_socket *shown, const struct iovec *pieces, int n)
{
    shown->piece_n = n < FB_SIM_PIECES ? n : FB_SIM_PIECES;
    memcpy(shown->pieces, pieces, (size_t)shown->piece_n * sizeof(*pieces));
}

static struct fb_io_result send_pieces(struct fb_sim_inner *s, const struct iovec *pieces, int n)
{
    size_t offered = 0, most, sent = 0;
    struct fb_io_result result;

    for (int i = 0; i < n; i++)
        offered += pieces[i].iov_len;
    if (n < 1 || n > IOV_MAX || offered == 0) {
        fb_sim_fault(s->sim, s->shown.fd, "send() of %zu bytes in %d pieces", offered, n);
        return failed(EINVAL);
    }
    note_pieces(&s->shown, pieces, n);
    most = allowance(s, offered, &result);
    if (most == 0)
        return result;
    for (int i = 0; sent < most; i++) {
        size_t part = pieces[i].iov_len < most - sent ? pieces[i].iov_len : most - sent;

        fb_sim_record(s->sim, pieces[i].iov_base, part);
        fb_sim_keep_sent(s, pieces[i].iov_base, part);
        sent += part;
    }
    return leave(s, sent, offered);
}

static struct fb_io_result sim_send(struct fb_source *source, const struct iovec *pieces, int n)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "send()");

    return s != NULL ? answer(s, 's', send_pieces(s, pieces, n)) : failed(EBADF);
}

static struct fb_io_result send_file(struct fb_sim_inner *s, int fd, off_t *offset, size_t n)
{
    uint8_t bytes[16384];
    struct fb_io_result result;
    size_t most = allowance(s, n, &result), sent = 0;
    ssize_t part = 0;

    s->shown.piece_n = 0;
    if (most == 0)
        return result;
    do {
        size_t wanted = most - sent < sizeof(bytes) ? most - sent : sizeof(bytes);

        part = pread(fd, bytes, wanted, *offset);
        if (part <= 0)
            break;
        fb_sim_record(s->sim, bytes, (size_t)part);
        fb_sim_keep_sent(s, bytes, (size_t)part);
        *offset += part;
        sent += (size_t)part;
    } while (sent < most);
    if (sent > 0)
        return leave(s, sent, n);
    if (part == 0)
        return (struct fb_io_result) { .status = FB_IO_EOF };
    return failed(errno);
}

static struct fb_io_result sim_sendfile(struct fb_source *source, int fd, off_t *offset, size_t n)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "sendfile()");

    return s != NULL ? answer(s, 'f', send_file(s, fd, offset, n)) : failed(EBADF);
}

static void tell(const struct sockaddr_storage *what, socklen_t what_length,
    struct sockaddr *address, socklen_t *length)
{
    memcpy(address, what, *length < what_length ? *length : what_length);
    *length = what_length;
}

static struct fb_io_result take_client(
    struct fb_sim_inner *s, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct fb_sim_inner *client = STAILQ_FIRST(&s->clients);
    struct fb_sim *sim = s->sim;

    if (s->shown.accept_error != 0)
        return failed(s->shown.accept_error);
    if (client == NULL || fb_sim_happens(sim, sim->trouble.again))
        return again(FB_READ);
    STAILQ_REMOVE_HEAD(&s->clients, line_link);
    if (fb_sim_happens(sim, sim->trouble.aborted)) {
        client->shown.broke = client->shown.closed = true;
        return failed(ECONNABORTED);
    }
    client->owed = true;
    *fd = client->shown.fd;
    tell(&client->shown.peer, client->shown.peer_length, address, length);
    return done(0);
}

static struct fb_io_result sim_accept(
    struct fb_source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct fb_sim_inner *s = fb_sim_socket_of(listener, "accept()");

    return s != NULL ? answer(s, 'a', take_client(s, fd, address, length)) : failed(EBADF);
}

static struct fb_io_result sim_connect(
    struct fb_source *source, const struct sockaddr *address, socklen_t length)
{
    struct fb_sim_inner *s = fb_sim_connect(source, address, length);

    if (s->connecting || !fb_sim_server_is_quick(s))
        return answer(s, 'o', again(FB_WRITE));
    return answer(s, 'o', s->connect_error != 0 ? failed(s->connect_error) : done(0));
}

static struct fb_io_result sim_connected(struct fb_source *source)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "connected()");

    if (s == NULL)
        return failed(EBADF);
    if (s->connecting)
        return answer(s, 'O', again(FB_WRITE));
    return answer(s, 'O', s->connect_error != 0 ? failed(s->connect_error) : done(0));
}

static int sim_name(const struct fb_source *source, struct sockaddr *address, socklen_t *length)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "name()");

    if (s == NULL || s->shown.local_length == 0)
        return -1;
    tell(&s->shown.local, s->shown.local_length, address, length);
    return 0;
}

static struct fb_io_result sim_shutdown(struct fb_source *source)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "shutdown()");

    if (s == NULL)
        return failed(EBADF);
    if (s->connecting)
        return answer(s, 'h', failed(ENOTCONN));
    s->shown.shut = true;
    return answer(s, 'h', done(0));
}

static size_t sim_pending(const struct fb_source *source)
{
    fb_sim_socket_of(source, "pending()");
    return 0;
}

static void sim_close(struct fb_source *source, bool reset)
{
    struct fb_sim_inner *s = fb_sim_socket_of(source, "close()");
    struct fb_sim_watch *watch;

    source->fd = -1;
    if (s == NULL)
        return;
    while ((watch = TAILQ_FIRST(&s->watches)) != NULL) {
        fb_sim_fault(s->sim, s->shown.fd, "close() while it is watched");
        fb_sim_unwatch(watch);
    }
    s->owed = false;
    s->shown.closed = true;
    s->shown.reset = reset;
    answer(s, 'c', done(reset));
}

const struct fb_io_ops fb_io_sim = {
    .recv = sim_recv,
    .send = sim_send,
    .accept = sim_accept,
    .connect = sim_connect,
    .connected = sim_connected,
    .name = sim_name,
    .sendfile = sim_sendfile,
    .shutdown = sim_shutdown,
    .pending = sim_pending,
    .close = sim_close,
};
