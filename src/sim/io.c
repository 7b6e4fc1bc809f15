/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O operations of simulated sockets. The result of each operation is added to the digest; an
 * operation on a descriptor that is not open is a fault of the program. */
#include "sim/sim_private.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct io_result result_done(size_t n)
{
    return (struct io_result) { .status = IO_DONE, .n = n };
}

static struct io_result result_failed(int error)
{
    return (struct io_result) { .status = IO_FAILED, .error = error };
}

static struct io_result result_of(int error)
{
    return error != 0 ? result_failed(error) : result_done(0);
}

static struct io_result result_again(enum event_direction direction)
{
    return (struct io_result) {
        .status = direction == EVENT_READ ? IO_AGAIN_READ : IO_AGAIN_WRITE,
    };
}

/* The recorded result of an operation; EBADF where the descriptor is not open. */
#define RECORDED(s, operation, result)                                                             \
    ((s) != NULL ? record_result(s, operation, result) : result_failed(EBADF))

/* Adds the result of an operation to the digest, and returns it. */
static struct io_result record_result(
    struct sim_endpoint *s, char operation, struct io_result result)
{
    uint64_t line[] = { (uint64_t)operation, (uint64_t)s->view.fd, result.status,
        (uint64_t)result.error, result.n };

    sim_record(s->sim, line, sizeof(line));
    return result;
}

/* Answers a failed send, and takes the error of a reset: a later receive finds only an end. */
static struct io_result send_failed(struct sim_endpoint *s)
{
    struct sim_step *step = sim_find_step(s, SIM_STEP_BROKEN);

    if (step != NULL && step->error == s->send_error && !s->connecting)
        step->kind = SIM_STEP_END;
    return result_failed(s->send_error);
}

/* Whether trouble comes instead of bytes. After "again" an event follows. */
static bool has_trouble(
    struct sim_endpoint *s, enum event_direction direction, struct io_result *result)
{
    struct sim *sim = s->sim;

    if (s->view.broke || s->send_error != 0 || s->view.datagrams)
        return false;
    if (sim_happens(sim, sim->trouble.reset)) {
        sim_reset(&s->view, ECONNRESET);
        s->view.broke = true;
        if (direction == EVENT_WRITE)
            *result = send_failed(s);
        return direction == EVENT_WRITE; /* bytes that have come before are received */
    }
    if (!sim_happens(sim, sim->trouble.again))
        return false;
    sim_mark_changed(s, direction);
    *result = result_again(direction);
    return true;
}

/* A random part of n >= 2. */
static size_t part_of(struct sim *sim, size_t n)
{
    uint32_t below = n - 1 < UINT32_MAX ? (uint32_t)(n - 1) : UINT32_MAX;

    assert(n > 1);
    return 1 + sim_draw(&sim->random, below);
}

static struct io_result receive_step_bytes(struct sim_endpoint *s, struct io_span *span)
{
    struct sim *sim = s->sim;
    struct sim_step *step = STAILQ_FIRST(&s->steps);
    uint8_t *bytes = step->bytes + step->at;
    size_t n = step->n - step->at < span->n ? step->n - step->at : span->n;

    if (n > 1 && !s->view.datagrams && sim_happens(sim, sim->trouble.partial_recv)) {
        n = part_of(sim, n);
        sim_mark_changed(s, EVENT_READ); /* the rest arrives now */
    }
    if (s->view.lends)
        span->p = bytes;
    else
        memcpy(span->p, bytes, n);
    span->n = n;
    assert(n > 0 && n <= step->n - step->at);
    step->at += n;
    if (step->at == step->n)
        sim_pop_step(s);
    return result_done(n);
}

static struct io_result receive_step(struct sim_endpoint *s, struct io_span *span)
{
    struct sim_step *step = STAILQ_FIRST(&s->steps);
    struct io_result result;

    s->view.recvs++;
    if (span->n == 0)
        sim_fault(s->sim, s->view.fd, "recv() without room");
    if (s->connecting || step == NULL || span->n == 0)
        return result_again(EVENT_READ);
    if (has_trouble(s, EVENT_READ, &result))
        return result;
    switch (step->kind) {
    case SIM_STEP_BYTES:
        return receive_step_bytes(s, span);
    case SIM_STEP_STALL:
        sim_pop_step(s);
        return result_again(EVENT_READ);
    case SIM_STEP_END: /* stays, to be received again */
        return (struct io_result) { .status = IO_EOF };
    default:
        return result_failed(step->error);
    }
}

static struct io_result socket_recv(struct source *source, struct io_span *span)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "recv()");

    return RECORDED(s, 'r', receive_step(s, span));
}

/* Whether sealed bytes wait for room, before which nothing more is taken. */
static bool sealed_waits(const struct sim_endpoint *s)
{
    return s->seal != NULL && s->seal->n > 0;
}

/* Returns how many of n bytes are sent now; 0 if the caller must return *result. */
static size_t count_sendable(struct sim_endpoint *s, size_t n, struct io_result *result)
{
    struct sim_socket *view = &s->view;
    struct sim *sim = s->sim;
    size_t most = view->room < view->send_most ? view->room : view->send_most;

    view->sends++;
    if (view->shut) {
        sim_fault(sim, view->fd, "send() after shutdown()");
        *result = result_failed(EPIPE);
        return 0;
    }
    if (has_trouble(s, EVENT_WRITE, result))
        return 0;
    *result = s->send_error != 0 ? send_failed(s) : result_again(EVENT_WRITE);
    if (s->send_error != 0 || s->connecting || most == 0 || sealed_waits(s))
        return 0;
    if (n > 1 && !s->view.datagrams && sim_happens(sim, sim->trouble.partial_send))
        n = part_of(sim, n);
    return n < most ? n : most;
}

/* Takes bytes of a send, in the end to be sent. */
static void take_sendable(struct sim_endpoint *s, const uint8_t *p, size_t n)
{
    if (s->seal != NULL)
        sim_seal_add(s->seal, TLS_DATA, p, n);
    else
        sim_append_sent(s, p, n);
}

static struct io_result count_sent(struct sim_endpoint *s, size_t sent, size_t offered)
{
    struct sim_socket *view = &s->view;

    assert(sent > 0 && sent <= offered && sent <= view->room);
    if (s->seal != NULL)
        sim_io_push_sealed(s);
    else if (view->room != SIZE_MAX)
        view->room -= sent;
    if (sent < offered && view->room > 0)
        sim_mark_changed(s, EVENT_WRITE); /* room comes back at once */
    return result_done(sent);
}

static struct io_result send_iovecs(struct sim_endpoint *s, const struct iovec *pieces, int n)
{
    size_t offered = 0, most, sent = 0;
    struct io_result result;

    for (int i = 0; i < n; i++)
        offered += pieces[i].iov_len;
    if (n < 1 || n > IOV_MAX || offered == 0) {
        sim_fault(s->sim, s->view.fd, "send() of %zu bytes in %d pieces", offered, n);
        return result_failed(EINVAL);
    }
    s->view.piece_n = n < SIM_PIECES ? n : SIM_PIECES;
    memcpy(s->view.pieces, pieces, (size_t)s->view.piece_n * sizeof(*pieces));
    most = count_sendable(s, offered, &result);
    if (most == 0)
        return result;
    for (int i = 0; sent < most; i++) {
        size_t part = pieces[i].iov_len < most - sent ? pieces[i].iov_len : most - sent;

        take_sendable(s, pieces[i].iov_base, part);
        sent += part;
    }
    return count_sent(s, sent, offered);
}

static struct io_result socket_send(struct source *source, const struct iovec *pieces, int n)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "send()");

    return RECORDED(s, 's', send_iovecs(s, pieces, n));
}

static struct io_result socket_send_more(struct source *source, const struct iovec *pieces, int n)
{
    sim_endpoint_of(source, "send()")->view.more_sends++;
    return socket_send(source, pieces, n);
}

static struct io_result send_file_bytes(struct sim_endpoint *s, int fd, off_t *offset, size_t n)
{
    uint8_t bytes[16384];
    struct io_result result;
    size_t most = count_sendable(s, n, &result), sent = 0;
    ssize_t part = 0;

    s->view.piece_n = 0;
    if (most == 0)
        return result;
    do {
        size_t wanted = most - sent < sizeof(bytes) ? most - sent : sizeof(bytes);

        part = pread(fd, bytes, wanted, *offset);
        if (part <= 0)
            break;
        take_sendable(s, bytes, (size_t)part);
        *offset += part;
        sent += (size_t)part;
    } while (sent < most);
    if (sent > 0)
        return count_sent(s, sent, n);
    if (part == 0)
        return (struct io_result) { .status = IO_EOF };
    return result_failed(errno);
}

static struct io_result socket_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "sendfile()");

    return RECORDED(s, 'f', send_file_bytes(s, fd, offset, n));
}

static void copy_socket_address(const struct sockaddr_storage *what, socklen_t what_length,
    struct sockaddr *address, socklen_t *length)
{
    memcpy(address, what, *length < what_length ? *length : what_length);
    *length = what_length;
}

static struct io_result accept_client(
    struct sim_endpoint *s, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct sim_endpoint *client = STAILQ_FIRST(&s->clients);
    struct sim *sim = s->sim;

    if (s->view.accept_error != 0)
        return result_failed(s->view.accept_error);
    if (client == NULL || sim_happens(sim, sim->trouble.again))
        return result_again(EVENT_READ);
    STAILQ_REMOVE_HEAD(&s->clients, line_link);
    s->view.waiting--;
    if (sim_happens(sim, sim->trouble.aborted)) {
        client->view.broke = client->view.closed = true;
        return result_failed(ECONNABORTED);
    }
    assert(!client->must_close && !client->view.closed);
    client->must_close = true;
    *fd = client->view.fd;
    copy_socket_address(&client->view.peer, client->view.peer_length, address, length);
    return result_done(0);
}

static struct io_result socket_accept(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct sim_endpoint *s = sim_endpoint_of(listener, "accept()");

    return RECORDED(s, 'a', accept_client(s, fd, address, length));
}

static bool socket_waits(const struct source *listener)
{
    const struct sim_endpoint *s = sim_endpoint_of(listener, "poll()");

    return s == NULL || s->view.accept_error != 0 || !STAILQ_EMPTY(&s->clients);
}

static struct io_result socket_connect(struct source *source, const struct sockaddr *address,
    socklen_t length, struct io_connect *options)
{
    struct sim *sim = sim_loop_of(source)->sim;
    struct sim_endpoint *s;
    bool at_once;

    if (sim->connect_error != 0) {
        sim_record(sim, &sim->connect_error, sizeof(sim->connect_error));
        return result_failed(sim->connect_error);
    }
    s = sim_connect(source, address, length, options);
    at_once = s->view.datagrams || (!s->connecting && s->server != NULL && s->server->at_once) ||
              (options != NULL && options->failed != IO_CONNECT);
    return record_result(s, 'o', at_once ? result_of(s->connect_error) : result_again(EVENT_WRITE));
}

static struct io_result socket_connected(struct source *source)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "connected()");

    if (s != NULL && s->connecting)
        return record_result(s, 'O', result_again(EVENT_WRITE));
    return RECORDED(s, 'O',
        result_of(s->connect_error == 0 && sim_is_broken(s) ? s->send_error : s->connect_error));
}

static struct io_result socket_ended(const struct source *source)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "ended()");
    const struct sim_step *step = s != NULL ? STAILQ_FIRST(&s->steps) : NULL;

    while (step != NULL && step->kind == SIM_STEP_STALL)
        step = STAILQ_NEXT(step, link);
    if (s == NULL)
        return result_failed(EBADF);
    if (s->connecting || step == NULL || step->kind == SIM_STEP_BYTES)
        return record_result(s, 'p', result_again(EVENT_READ));
    if (step->kind == SIM_STEP_BROKEN)
        return record_result(s, 'p', result_failed(step->error));
    return record_result(s, 'p', (struct io_result) { .status = IO_EOF });
}

static int socket_name(const struct source *source, struct sockaddr *address, socklen_t *length)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "name()");

    if (s == NULL || s->view.local_length == 0)
        return -1;
    copy_socket_address(&s->view.local, s->view.local_length, address, length);
    return 0;
}

/* Moves received bytes into a pipe of the real kernel, which has room. */
static struct io_result splice_in(struct sim_endpoint *s, int pipe, size_t n)
{
    uint8_t bytes[PIPE_BUF];
    struct io_span span = { bytes, n < sizeof(bytes) ? n : sizeof(bytes) };
    struct pollfd entry = { .fd = pipe, .events = POLLOUT };
    struct io_result result;

    if (poll(&entry, 1, 0) != 1)
        return result_again(EVENT_READ);
    s->view.splices++;
    result = receive_step(s, &span);
    if (result.status == IO_DONE && write(pipe, span.p, span.n) != (ssize_t)span.n)
        sim_fault(s->sim, s->view.fd, "a pipe has no room for %zu bytes", span.n);
    return result;
}

static struct io_result socket_splice_in(struct source *source, int pipe, size_t n)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "splice()");

    return RECORDED(s, 'i', splice_in(s, pipe, n));
}

static struct io_result splice_out(struct sim_endpoint *s, int pipe, size_t n)
{
    uint8_t bytes[65536];
    struct io_result result;
    size_t most = count_sendable(s, n < sizeof(bytes) ? n : sizeof(bytes), &result);
    ssize_t taken;

    if (most == 0)
        return result;
    taken = read(pipe, bytes, most);
    if (taken <= 0)
        return result_failed(taken == 0 ? EPIPE : errno);
    take_sendable(s, bytes, (size_t)taken);
    return count_sent(s, (size_t)taken, n);
}

static struct io_result socket_splice_out(struct source *source, int pipe, size_t n)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "splice()");

    return RECORDED(s, 'q', splice_out(s, pipe, n));
}

static size_t socket_queued(const struct source *source)
{
    const struct sim_endpoint *s = sim_endpoint_of(source, "queued()");

    return s != NULL ? s->view.queued + s->lost : 0;
}

static struct io_result socket_shutdown(struct source *source)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "shutdown()");

    if (s != NULL && !s->connecting)
        s->view.shut = true;
    if (s != NULL && sealed_waits(s))
        sim_fault(s->sim, s->view.fd, "sealed bytes are lost by shutdown()");
    return RECORDED(s, 'h', result_of(s->connecting ? ENOTCONN : 0));
}

static size_t socket_pending(const struct source *source)
{
    sim_endpoint_of(source, "pending()");
    return 0;
}

static void socket_close(struct source *source, bool reset)
{
    struct sim_endpoint *s = sim_endpoint_of(source, "close()");
    struct sim_watch *watch;

    source->fd = -1;
    if (s == NULL)
        return;
    while ((watch = TAILQ_FIRST(&s->watches)) != NULL) {
        sim_fault(s->sim, s->view.fd, "close() while watched");
        sim_unwatch(watch);
    }
    assert(TAILQ_EMPTY(&s->watches));
    s->must_close = false;
    s->view.closed = true;
    s->view.reset = s->view.reset || reset;
    if (reset)
        sim_lose_queued(s);
    record_result(s, 'c', result_done(reset));
}

#define OPERATIONS                                                                                 \
    .recv = socket_recv, .send = socket_send, .send_more = socket_send_more,                       \
    .accept = socket_accept, .waits = socket_waits, .connect = socket_connect,                     \
    .connected = socket_connected, .ended = socket_ended, .name = socket_name,                     \
    .sendfile = socket_sendfile, .queued = socket_queued, .shutdown = socket_shutdown,             \
    .pending = socket_pending, .close = socket_close

const struct io_ops sim_io = { OPERATIONS };
const struct io_ops sim_io_splicing = {
    OPERATIONS,
    .splice_in = socket_splice_in,
    .splice_out = socket_splice_out,
    .seal = sim_io_seal,
    .send_record = sim_io_send_record,
    .sealed = sim_io_sealed,
};
