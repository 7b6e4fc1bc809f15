/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives a worker's requests, has them carried out, and sends replies, a request after the other:
 * behind a full socket no request is read. So a worker that does not read holds up itself alone,
 * and the memory of one reply is enough. Secrets in packets are overwritten once sent. */
#include "keeper/keeper_link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Requests in a turn, before the master's messages. */
#define REQUESTS_A_TURN 32

void keeper_link_close(struct keeper *keeper)
{
    if (keeper->link == NULL)
        return;
    source_close(&keeper->loop, keeper->link, false);
    keeper->link = NULL;
    keeper->reply = NULL;
    if (keeper->handshakes != NULL) /* the engine is loaded */
        tls_handshakes_end_all(keeper->handshakes);
}

/* Watches for requests, or, with a reply under way, for room. */
static void watch_worker(struct keeper *keeper)
{
    bool replies = keeper->reply != NULL;

    if (source_watch_level(&keeper->loop, keeper->link, !replies, replies) == 0)
        return;
    log_write(&keeper->log, LEVEL_ALERT, errno, "the link to the worker process cannot be watched");
    keeper_link_close(keeper);
}

static void break_worker_rule(struct keeper *keeper, const char *rule)
{
    log_write(&keeper->log, LEVEL_ALERT, 0, "the worker process has broken a rule of its link (%s)",
        rule);
    keeper_link_close(keeper);
}

/* Sends the parts of the reply under way; false: the socket is full, or the link has failed. */
static bool send_reply_parts(struct keeper *keeper)
{
    while (keeper->reply != NULL) {
        const struct tls_reply *reply = keeper->reply;
        size_t n = tls_message_write_part(
            keeper->reply_number, keeper->reply_step, reply, keeper->reply_from, keeper->packet);
        ssize_t sent;
        int error;

        do
            sent = send(keeper->link->fd, keeper->packet, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent == -1 && errno == EINTR);
        error = errno;
        explicit_bzero(keeper->packet, n);
        if (sent == -1 && (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS))
            return false;
        if (sent == -1) {
            if (error != EPIPE && error != ECONNRESET)
                log_write(&keeper->log, LEVEL_ALERT, error, "send() to the worker process failed");
            keeper_link_close(keeper);
            return false;
        }
        keeper->reply_from += TLS_PART_MOST;
        if (keeper->reply_from >= reply->out_n)
            keeper->reply = NULL;
    }
    return true;
}

/* Sends the reply of the step that a handshake has come to; false: no more can be done now. */
static bool send_step(struct keeper *keeper, uint32_t number, const struct tls_reply *reply)
{
    if (keeper->reply_step == TLS_LATER)
        return true;
    keeper->reply = reply;
    keeper->reply_number = number;
    keeper->reply_from = 0;
    return send_reply_parts(keeper);
}

/* Carries out a packet of n bytes; false: no more can be done now. */
static bool carry_out_packet(struct keeper *keeper, size_t n)
{
    struct tls_request request;
    struct tls_reply *reply;

    if (tls_message_read_request(&request, keeper->packet, n) == -1) {
        break_worker_rule(keeper, "a malformed message");
        return false;
    }
    if (request.kind == TLS_CANCEL) {
        tls_handshakes_cancel(keeper->handshakes, request.number);
        return true;
    }
    if (request.kind == TLS_TICKET) {
        if (tls_handshakes_ticket(keeper->handshakes, &request) == 0)
            return true;
        break_worker_rule(keeper, "a ticket within a handshake");
        return false;
    }
    if (tls_handshakes_feed(keeper->handshakes, &request, keeper->heritage->cycle->tls.n,
            &keeper->reply_step, &reply) == -1) {
        break_worker_rule(keeper, "a request that fits no handshake");
        return false;
    }
    return send_step(keeper, request.number, reply);
}

static void run_worker_read(struct loop *loop, struct source *source)
{
    struct keeper *keeper = container_of(loop, struct keeper, loop);

    assert(source == keeper->link && keeper->reply == NULL);
    for (unsigned i = 0; i < REQUESTS_A_TURN; i++) {
        ssize_t n = recv(source->fd, keeper->packet, sizeof(keeper->packet), MSG_DONTWAIT);

        if (n == -1 && (errno == EINTR || errno == ECONNRESET))
            continue; /* a close with unread replies is reported before the last requests */
        if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) { /* the worker has gone, and the master brings the next */
            keeper_link_close(keeper);
            return;
        }
        if (!carry_out_packet(keeper, (size_t)n))
            break;
    }
    if (keeper->link != NULL)
        watch_worker(keeper);
}

void keeper_link_resume(struct keeper *keeper)
{
    struct tls_reply *reply;
    uint32_t number;

    if (keeper->link == NULL || keeper->reply != NULL)
        return;
    while (tls_handshakes_resume(
        keeper->handshakes, &keeper->resume_from, &number, &keeper->reply_step, &reply))
        if (!send_step(keeper, number, reply)) {
            if (keeper->link != NULL)
                watch_worker(keeper);
            return;
        }
    keeper->resumes = false;
}

static void run_worker_write(struct loop *loop, struct source *source)
{
    struct keeper *keeper = container_of(loop, struct keeper, loop);

    assert(source == keeper->link && keeper->reply != NULL);
    if (send_reply_parts(keeper))
        watch_worker(keeper);
}

static bool is_packet_link(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

void keeper_link_open(struct keeper *keeper, int fd)
{
    struct source *source;

    assert(fd >= 0);
    keeper_link_close(keeper);
    source = is_packet_link(fd) ? source_get(&keeper->loop.sources) : NULL;
    if (source == NULL) {
        log_write(&keeper->log, LEVEL_ALERT, 0, "the worker process cannot be reached");
        close(fd);
        return;
    }
    keeper->link_ops = (struct source_ops) {
        .run = { [EVENT_READ] = run_worker_read, [EVENT_WRITE] = run_worker_write }
    };
    source->fd = fd;
    source->io = &io_socket;
    source->ops = &keeper->link_ops;
    source->level = true;
    keeper->link = source;
    watch_worker(keeper);
}
