/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of simulated sockets. */
#include "support/fake_private.h"

#include <netinet/in.h>
#include <string.h>

static struct fb_io_result take_bytes(struct fake_inner *s, struct fb_span *span)
{
    struct fake_step *step = STAILQ_FIRST(&s->steps);
    uint8_t *bytes = step->bytes + step->at;
    size_t n = step->n - step->at < span->n ? step->n - step->at : span->n;

    if (s->shown.lends)
        span->p = bytes;
    else
        memcpy(span->p, bytes, n);
    span->n = n;
    step->at += n;
    if (step->at == step->n)
        fake_drop_first(s);
    return (struct fb_io_result) { .status = FB_IO_DONE, .n = n };
}

static struct fb_io_result fake_recv(struct fb_source *source, struct fb_span *span)
{
    struct fake_inner *s = fake_of(source);
    struct fake_step *step = STAILQ_FIRST(&s->steps);

    s->shown.recvs++;
    if (step == NULL)
        return (struct fb_io_result) { .status = FB_IO_AGAIN_READ };
    switch (step->kind) {
    case FAKE_BYTES:
        return take_bytes(s, span);
    case FAKE_STALL:
        fake_drop_first(s);
        return (struct fb_io_result) { .status = FB_IO_AGAIN_READ };
    case FAKE_END: /* again and again */
        return (struct fb_io_result) { .status = FB_IO_EOF };
    default:
        return (struct fb_io_result) { .status = FB_IO_FAILED, .error = step->error };
    }
}

static void keep_sent(struct fake_inner *s, const uint8_t *p, size_t n)
{
    struct fake_socket *shown = &s->shown;

    if (shown->sent_n + n + 1 > s->sent_room) {
        s->sent_room = 2 * (shown->sent_n + n + 1);
        shown->sent = realloc(shown->sent, s->sent_room);
        fb_must(shown->sent != NULL);
    }
    memcpy(shown->sent + shown->sent_n, p, n);
    shown->sent_n += n;
    shown->sent[shown->sent_n] = '\0'; /* text can be compared as a string */
}

static struct fb_io_result fake_send(struct fb_source *source, const struct iovec *pieces, int n)
{
    struct fake_inner *s = fake_of(source);
    struct fake_socket *shown = &s->shown;
    size_t most = shown->room < shown->send_most ? shown->room : shown->send_most, sent = 0;

    fb_must(n > 0 && n <= FAKE_PIECES);
    fb_must(!shown->shut);
    shown->sends++;
    memcpy(shown->pieces, pieces, (size_t)n * sizeof(*pieces));
    shown->piece_n = n;
    if (s->send_error != 0)
        return (struct fb_io_result) { .status = FB_IO_FAILED, .error = s->send_error };
    if (most == 0)
        return (struct fb_io_result) { .status = FB_IO_AGAIN_WRITE };
    for (int i = 0; i < n && sent < most; i++) {
        size_t part = pieces[i].iov_len < most - sent ? pieces[i].iov_len : most - sent;

        fb_must(pieces[i].iov_len > 0);
        keep_sent(s, pieces[i].iov_base, part);
        sent += part;
    }
    if (shown->room != SIZE_MAX)
        shown->room -= sent;
    s->changed[FB_WRITE] = shown->room > 0;
    return (struct fb_io_result) { .status = FB_IO_DONE, .n = sent };
}

static struct fb_io_result fake_accept(
    struct fb_source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct fake_inner *s = fake_of(listener), *client = STAILQ_FIRST(&s->clients);
    struct sockaddr_in peer = { .sin_family = AF_INET };

    if (s->shown.accept_error != 0)
        return (struct fb_io_result) { .status = FB_IO_FAILED, .error = s->shown.accept_error };
    if (client == NULL)
        return (struct fb_io_result) { .status = FB_IO_AGAIN_READ };
    STAILQ_REMOVE_HEAD(&s->clients, client_link);
    client->owed = true;
    *fd = client->shown.fd;
    peer.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    peer.sin_port = htons(1234);
    memcpy(address, &peer, sizeof(peer));
    *length = sizeof(peer);
    return (struct fb_io_result) { .status = FB_IO_DONE };
}

static struct fb_io_result fake_shutdown(struct fb_source *source)
{
    fake_of(source)->shown.shut = true;
    return (struct fb_io_result) { .status = FB_IO_DONE };
}

static size_t fake_pending(const struct fb_source *source)
{
    (void)source;
    return 0;
}

static void fake_close(struct fb_source *source, bool reset)
{
    struct fake_inner *s = fake_of(source);

    ck_assert_msg(s->loop == NULL, "descriptor %d is closed while it is watched", source->fd);
    s->owed = false;
    s->shown.closed = true;
    s->shown.reset = reset;
    source->fd = -1;
}

const struct fb_io_ops fake_io = {
    .recv = fake_recv,
    .send = fake_send,
    .accept = fake_accept,
    .shutdown = fake_shutdown,
    .pending = fake_pending,
    .close = fake_close,
};
