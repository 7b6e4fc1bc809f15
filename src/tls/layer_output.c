/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection with TLS: sealed in the net's buffer, and sent with one system call. The
 * socket's want of room leaves what is sealed with the layer: a record is sealed once. */
#include "net/conn_log.h"
#include "tls/layer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Records under one key, before TLS 1.3 goes over to the next: AES-GCM's limit is 2^24.5. */
#define RECORDS_OF_KEY ((uint64_t)1 << 23)

static struct io_result sent_of(enum io_status status, size_t n)
{
    return (struct io_result) { .status = status, .n = n };
}

static struct io_result send_failed_by(int error)
{
    return (struct io_result) { .status = IO_FAILED, .error = error };
}

int layer_hold(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct layer *layer = layer_of(conn);
    struct chunk *held = layer->held, *chunk;
    size_t before = held != NULL ? chunk_length(held) : 0;

    chunk = chunk_create(&conn->net->chunks, before + n);
    if (chunk == NULL)
        return -1;
    if (held != NULL) {
        memcpy(chunk->end, held->p, before);
        chunk_free(&conn->net->chunks, held);
    }
    memcpy(chunk->end + before, p, n);
    chunk->end += before + n;
    layer->held = chunk;
    layer->tickets = false;
    conn->source.held = true;
    return 0;
}

static void drop_held(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);

    chunk_free(&conn->net->chunks, layer->held);
    layer->held = NULL;
    layer->updated = layer->tickets = false;
    conn->source.held = false;
}

/* Makes the kernel seal a record that is held: the type, and its plaintext behind. */
static struct io_result push_record(struct fb_conn *conn, const uint8_t *held, size_t n)
{
    struct io_result result =
        layer_lower(conn)->send_record(&conn->source, held[0], held + 1, n - 1);

    if (result.status == IO_DONE) {
        assert(result.n == n - 1);
        layer_of(conn)->sealing.plain += result.n++;
    }
    return result;
}

/* Sends what is held: IO_DONE when all has left. A failed socket takes nothing more. */
static struct io_result push_sealed(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);
    struct chunk *held = layer->held;
    const struct iovec piece = { held->p, chunk_length(held) };
    const struct io_ops *lower = layer_lower(conn);
    struct io_result result;

    if (layer->offload == LAYER_OFFLOADED)
        result = push_record(conn, held->p, piece.iov_len);
    else if (layer->tickets && lower->send_more != NULL)
        result = lower->send_more(&conn->source, &piece, 1);
    else
        result = lower->send(&conn->source, &piece, 1);
    if (result.status == IO_FAILED)
        drop_held(conn);
    if (result.status != IO_DONE)
        return result;
    conn_note_moved(conn);
    held->p += result.n;
    if (chunk_length(held) > 0)
        return sent_of(IO_AGAIN_WRITE, 0);
    drop_held(conn);
    return result;
}

/* Sends n bytes of the buffer; what the socket does not take is held. Returns `taken` bytes. */
static struct io_result send_sealed(struct fb_conn *conn, size_t n, size_t taken)
{
    struct layers *layers = conn->net->layers;
    const struct iovec piece = { layers->out, n };
    struct io_result result = layer_lower(conn)->send(&conn->source, &piece, 1);
    size_t sent = result.status == IO_DONE ? result.n : 0;

    if (result.status == IO_FAILED)
        return result;
    if (sent < n && layer_hold(conn, layers->out + sent, n - sent) == -1)
        return send_failed_by(ENOMEM);
    return sent_of(IO_DONE, taken);
}

/* Seals a record behind `at` bytes of the buffer; returns its bytes, 0: the library failed. */
static inline size_t seal_at(struct fb_conn *conn, size_t at, enum tls_type type,
    const struct iovec *pieces, int piece_n, size_t n)
{
    struct layers *layers = conn->net->layers;
    struct layer *layer = layer_of(conn);

    assert(at + n + TLS_OVERHEAD <= sizeof(layers->out));
    return tls_record_seal(
        layers->ciphers, layer->suite, &layer->out, type, pieces, piece_n, n, layers->out + at);
}

/* Keeps a record for the kernel to seal; -1 without memory. */
static int hold_for_kernel(struct fb_conn *conn, enum tls_type type, const uint8_t *p, size_t n)
{
    uint8_t record[3] = { (uint8_t)type };

    assert(n < sizeof(record) && layer_of(conn)->held == NULL); /* an alert, the last of all */
    memcpy(record + 1, p, n);
    return layer_hold(conn, record, 1 + n);
}

int layer_add_record(struct fb_conn *conn, enum tls_type type, const uint8_t *p, size_t n)
{
    const struct iovec piece = { (uint8_t *)p, n };
    struct layer *layer = layer_of(conn);
    int status = -1;
    size_t sealed;

    if (layer->offload == LAYER_OFFLOADED) {
        status = hold_for_kernel(conn, type, p, n);
    } else {
        sealed = seal_at(conn, 0, type, &piece, 1, n);
        if (sealed > 0)
            status = layer_hold(conn, conn->net->layers->out, sealed);
    }
    if (status == -1)
        layer->ended = true; /* the peer could open no other record behind a lost one */
    return status;
}

int layer_update_keys(struct fb_conn *conn)
{
    static const uint8_t message[] = { 24, 0, 0, 1, 0 }; /* KeyUpdate, update_not_requested */
    struct layer *layer = layer_of(conn);

    assert(layer->suite->version == TLS_1_3);
    if (layer->offload == LAYER_OFFLOADED)
        return -1;
    if (layer_add_record(conn, TLS_HANDSHAKE, message, sizeof(message)) == -1)
        return -1;
    layer->updated = true;
    return tls_keys_update(conn->net->layers->ciphers, &layer->out, layer->suite);
}

/* Whether nothing is to be sent before new output: else *result says why it has to wait. */
static inline bool may_seal(struct fb_conn *conn, struct io_result *result)
{
    struct layer *layer = layer_of(conn);

    if (unlikely(layer->ended)) { /* by an alert, which leaves before the reset for the output */
        layer_flush(&conn->source, false);
        *result = send_failed_by(EPROTO);
        return false;
    }
    if (unlikely(layer->out.sequence >= RECORDS_OF_KEY && layer->suite->version == TLS_1_3) &&
        layer_update_keys(conn) == -1) {
        *result = send_failed_by(ENOMEM);
        return false;
    }
    if (likely(layer->held == NULL))
        return true;
    *result = push_sealed(conn);
    return result->status == IO_DONE;
}

/* Places of the bytes to send. */
struct gather {
    const struct iovec *pieces;
    int left;
    size_t at; /* in the first piece */
};

/* Fills `record` with the pieces of the next record, up to `most` bytes; returns how many. */
static size_t gather_record(struct gather *from, struct iovec *record, int *n, size_t most)
{
    size_t total = 0;

    for (*n = 0; from->left > 0 && total < most;) {
        size_t left = from->pieces->iov_len - from->at, room = most - total;
        size_t part = left < room ? left : room;

        if (part > 0)
            record[(*n)++] = (struct iovec) { (uint8_t *)from->pieces->iov_base + from->at, part };
        total += part;
        from->at += part;
        if (part == left) {
            from->pieces++;
            from->left--;
            from->at = 0;
        }
    }
    return total;
}

struct io_result layer_send(struct source *source, const struct iovec *pieces, int n)
{
    struct fb_conn *conn = layer_conn(source);
    struct gather from = { pieces, n, 0 };
    struct iovec record[NET_PIECES];
    struct io_result result;
    size_t at = 0, taken = 0, most = layer_of(conn)->plain_most;

    if (unlikely(!may_seal(conn, &result)))
        return result;
    while (from.left > 0 && at + most + TLS_OVERHEAD <= sizeof(conn->net->layers->out)) {
        int record_n;
        size_t part = gather_record(&from, record, &record_n, most), sealed;

        if (part == 0)
            break;
        sealed = seal_at(conn, at, TLS_DATA, record, record_n, part);
        if (sealed == 0) {
            conn_log(conn, LEVEL_ALERT, 0, "TLS: a record cannot be sealed");
            return send_failed_by(EPROTO);
        }
        at += sealed;
        taken += part;
    }
    return send_sealed(conn, at, taken);
}

struct io_result layer_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    struct fb_conn *conn = layer_conn(source);
    uint8_t *bytes = conn->net->layers->file;
    struct io_result result;
    ssize_t got;

    if (unlikely(!may_seal(conn, &result)))
        return result;
    if (n >= LAYER_FILE_LEAST && layer_of(conn)->offload == LAYER_MAY &&
        source->io->offload(source) && layer_of(conn)->offload == LAYER_OFFLOADED)
        return source->io->sendfile(source, fd, offset, n);
    got = pread(fd, bytes, n < LAYER_PLAIN ? n : LAYER_PLAIN, *offset);
    if (got == -1)
        return send_failed_by(errno);
    if (got == 0)
        return sent_of(IO_EOF, 0);
    result = layer_send(source, &(struct iovec) { bytes, (size_t)got }, 1);
    if (result.status == IO_DONE)
        *offset += (off_t)result.n;
    return result;
}

/* Whether the end may follow what the kernel has sealed; else the kernel goes on by itself. */
static struct io_result await_kernel(struct fb_conn *conn)
{
    struct source *source = &conn->source;
    enum io_sealed sealed = layer_lower(conn)->sealed(source, &layer_of(conn)->sealing);

    if (sealed == IO_SEALED_LEFT)
        return sent_of(IO_DONE, 0);
    conn_trace(conn, "the kernel has sealed more than the socket has taken");
    if (sealed == IO_SEALED_SOON)
        loop_post(&conn->net->loop, &source->events[EVENT_WRITE], QUEUE_NEXT);
    return sent_of(IO_AGAIN_WRITE, 0);
}

struct io_result layer_flush(struct source *source, bool ends)
{
    static const uint8_t close_notify[] = { 1, TLS_CLOSE_NOTIFY };
    struct fb_conn *conn = layer_conn(source);
    struct layer *layer = layer_of(conn);
    const struct io_ops *lower = layer_lower(conn);
    struct io_result result;

    if (ends && !layer->ended && layer->phase != LAYER_FAILED) {
        if (layer_add_record(conn, TLS_ALERT, close_notify, sizeof(close_notify)) == -1)
            return send_failed_by(ENOMEM);
        layer->ended = true;
    }
    if (layer->held != NULL) {
        result = push_sealed(conn);
        if (result.status != IO_DONE)
            return result;
    }
    if (ends && layer->offload == LAYER_OFFLOADED)
        return await_kernel(conn);
    return lower->flush != NULL ? lower->flush(source, ends) : sent_of(IO_DONE, 0);
}
