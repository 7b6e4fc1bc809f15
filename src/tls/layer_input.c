/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of a connection with TLS: all whole records of a receive are opened in the net's buffer,
 * and their plaintext is lent in one piece. What the peer may not send ends the session
 * with an alert; the plaintext before it is delivered first. */
#include "net/conn_log.h"
#include "tls/layer.h"
#include "tls/link.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The debt for a record without data, which as many bytes of data pay; and the greatest debt. A
 * peer that sends little but empty records, KeyUpdates or warnings costs work, and no protocol sees
 * it. */
#define RECORD_DEBT (32 * 1024)
#define DEBT_MOST (1024 * 1024)

enum { KEY_UPDATE = 24, NEW_SESSION_TICKET = 4 }; /* messages of a handshake */

void layer_end_tickets(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);

    if (layer->awaits != 0 && conn->net->layers->link != NULL)
        tls_link_forget(conn->net->layers->link, layer->awaits);
    layer->awaits = 0;
}

static COLD void fail_layer(struct fb_conn *conn, enum tls_alert alert, const char *why)
{
    const uint8_t message[] = { 2, (uint8_t)alert };
    struct layer *layer = layer_of(conn);

    conn_log(conn, conn->outgoing ? LEVEL_ERROR : LEVEL_INFO, 0, "TLS: %s; alert %u is sent", why,
        (unsigned)alert);
    if (!layer->ended && layer_add_record(conn, TLS_ALERT, message, sizeof(message)) == 0)
        layer->ended = true;
    layer_end_tickets(conn);
    layer_set_phase(layer, LAYER_FAILED);
}

/* Takes a record without data; false: the session has ended. */
static bool take_empty(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);

    if (layer->debt < DEBT_MOST) {
        layer->debt += RECORD_DEBT;
        return true;
    }
    fail_layer(conn, TLS_UNEXPECTED_MESSAGE, "too many records without data");
    return false;
}

static void take_alert(struct fb_conn *conn, const struct tls_opened *record)
{
    struct layer *layer = layer_of(conn);
    bool is_1_3 = layer->suite->version == TLS_1_3;

    if (record->n != 2) {
        fail_layer(conn, TLS_DECODE_ERROR, "an alert has not two bytes");
    } else if (record->p[1] == TLS_CLOSE_NOTIFY) {
        conn_debug(conn, "TLS: close_notify");
        layer_set_phase(layer, LAYER_CLOSED);
    } else if (is_1_3 ? record->p[1] == TLS_USER_CANCELED : record->p[0] == 1) {
        take_empty(conn);
    } else {
        conn_log(conn, conn->outgoing ? LEVEL_ERROR : LEVEL_INFO, 0,
            "TLS: the peer has ended the session with alert %u", (unsigned)record->p[1]);
        layer->ended = true; /* no answer */
        layer_set_phase(layer, LAYER_FAILED);
    }
}

/* Passes over tickets at the begin of n bytes; returns how many bytes that are. */
static size_t skip_tickets(struct layer *layer, const uint8_t *p, size_t n)
{
    size_t at = 0;

    for (;;) {
        size_t part = layer->ticket_left < n - at ? layer->ticket_left : n - at;

        at += part;
        layer->ticket_left -= (uint32_t)part;
        if (n - at < 4 || p[at] != NEW_SESSION_TICKET) /* type and length */
            return at;
        layer->ticket_left = 4 + ((uint32_t)p[at + 1] << 16 | (uint32_t)p[at + 2] << 8 | p[at + 3]);
    }
}

/* Takes messages of a handshake, which TLS 1.3 alone may send behind the handshake: tickets of a
 * server, and at the end of a record a KeyUpdate. */
static void take_late_messages(struct fb_conn *conn, const struct tls_opened *record)
{
    struct layer *layer = layer_of(conn);
    bool is_1_3 = layer->suite->version == TLS_1_3;
    size_t skipped = is_1_3 && conn->outgoing ? skip_tickets(layer, record->p, record->n) : 0;
    const uint8_t *p = record->p + skipped;
    size_t n = record->n - skipped;

    if (skipped > 0 && n == 0) {
        take_empty(conn);
        return;
    }
    layer_end_tickets(conn);
    if (!is_1_3 || n < 4 || p[0] != KEY_UPDATE) {
        fail_layer(conn, TLS_UNEXPECTED_MESSAGE, "a handshake within the session");
    } else if (n != 5 || p[1] != 0 || p[2] != 0 || p[3] != 1 || p[4] > 1) {
        fail_layer(conn, TLS_DECODE_ERROR, "a KeyUpdate is not well formed");
    } else if (take_empty(conn)) {
        conn_debug(conn, "TLS: KeyUpdate");
        if (tls_keys_update(conn->net->layers->ciphers, &layer->in, layer->suite) == -1 ||
            (p[4] == 1 && !layer->ended && !layer->updated && layer_update_keys(conn) == -1))
            fail_layer(conn, TLS_INTERNAL_ERROR, "the keys cannot be updated");
    }
}

static void take_opened_record(struct fb_conn *conn, const struct tls_opened *record)
{
    struct layer *layer = layer_of(conn);

    if (unlikely((layer->awaits | layer->ticket_left) != 0) && record->type != TLS_HANDSHAKE) {
        layer_end_tickets(conn);
        if (layer->ticket_left > 0) {
            fail_layer(conn, TLS_UNEXPECTED_MESSAGE, "a record within a ticket");
            return;
        }
    }
    switch (record->type) {
    case TLS_DATA:
        if (record->n == 0)
            take_empty(conn);
        else
            layer->debt -= record->n < layer->debt ? (uint32_t)record->n : layer->debt;
        break;
    case TLS_ALERT:
        take_alert(conn, record);
        break;
    case TLS_HANDSHAKE:
        take_late_messages(conn, record);
        break;
    default:
        fail_layer(conn, TLS_UNEXPECTED_MESSAGE, "a record of a type that is not allowed here");
    }
}

/* Hands on a record of tickets, as the record came. */
static COLD void hand_on_ticket(struct fb_conn *conn, size_t n)
{
    struct layers *layers = conn->net->layers;
    struct layer *layer = layer_of(conn);

    if (layers->link == NULL ||
        !tls_link_ticket(layers->link, layer->awaits, (fb_bytes) { layers->file, n }))
        layer->awaits = 0;
}

/* Opens the whole records among n bytes of the buffer; returns the bytes of plaintext, which lie at
 * its begin then, and in *used those of the records. */
static size_t open_records(struct fb_conn *conn, size_t n, size_t *used)
{
    struct layers *layers = conn->net->layers;
    struct layer *layer = layer_of(conn);
    uint8_t *p = layers->in;
    size_t plain = 0, at = 0;

    while (layer->phase == LAYER_OPEN) {
        enum tls_alert alert = TLS_DECODE_ERROR;
        int length = tls_record_length(p + at, n - at, &alert);
        struct tls_opened opened;

        if (length == 0 || (length > 0 && (size_t)length > n - at))
            break;
        if (unlikely(layer->awaits != 0) && length > 0)
            memcpy(layers->file, p + at, (size_t)length);
        if (length < 0 || tls_record_open(layers->ciphers, layer->suite, &layer->in, p + at,
                              (size_t)length, &opened, &alert) == -1) {
            fail_layer(conn, alert, "a record cannot be opened");
            break;
        }
        take_opened_record(conn, &opened);
        if (unlikely(layer->awaits != 0))
            hand_on_ticket(conn, (size_t)length);
        if (opened.type == TLS_DATA && opened.n > 0 && likely(layer->phase == LAYER_OPEN)) {
            memmove(p + plain, opened.p, opened.n);
            plain += opened.n;
        }
        at += (size_t)length;
    }
    *used = at;
    return plain;
}

/* Moves bytes kept from before behind n bytes of the buffer, as many as it has room for; returns
 * their number. */
static size_t take_unread(struct fb_conn *conn, size_t n)
{
    struct layers *layers = conn->net->layers;
    struct layer *layer = layer_of(conn);
    struct chunk *unread = layer->unread;
    size_t room = sizeof(layers->in) - n, taken;

    if (likely(unread == NULL))
        return 0;
    taken = chunk_length(unread) < room ? chunk_length(unread) : room;
    memcpy(layers->in + n, unread->p, taken);
    unread->p += taken;
    if (chunk_length(unread) == 0) {
        chunk_free(&conn->net->chunks, unread);
        layer->unread = NULL;
        conn->source.partial = false;
    }
    return taken;
}

/* Keeps the begin of a record; false without memory. */
static bool keep_unread(struct fb_conn *conn, const uint8_t *p, size_t n)
{
    struct layer *layer = layer_of(conn);

    if (n == 0 || layer->phase != LAYER_OPEN)
        return true;
    if (layer->unread != NULL) { /* from where the bytes were taken */
        assert((size_t)(layer->unread->p - layer->unread->data) >= n && layer->more);
        layer->unread->p -= n;
        return true;
    }
    layer->unread = chunk_create(&conn->net->chunks, n);
    if (layer->unread == NULL)
        return false;
    memcpy(layer->unread->end, p, n);
    layer->unread->end += n;
    conn->source.partial = true;
    return true;
}

/* Receives behind *n bytes of the buffer, unless a whole record is there. */
static struct io_result receive_records(struct fb_conn *conn, size_t *n)
{
    struct layers *layers = conn->net->layers;
    struct layer *layer = layer_of(conn);
    struct io_span span = { layers->in + *n, sizeof(layers->in) - *n };
    struct io_result result;
    enum tls_alert alert;
    int length = tls_record_length(layers->in, *n, &alert);

    if (length < 0 || (length > 0 && (size_t)length <= *n))
        return (struct io_result) { .status = IO_DONE };
    assert(layer->unread == NULL && span.n > TLS_SEALED_MOST); /* the rest begins with a record */
    result = layer_lower(conn)->recv(&conn->source, &span);
    if (result.status != IO_DONE) {
        layer->more = false;
        return result;
    }
    if (span.p != layers->in + *n) /* in memory of the operation's own */
        memcpy(layers->in + *n, span.p, span.n);
    *n += span.n;
    layer->more = *n == sizeof(layers->in) || conn->source.eof;
    return result;
}

/* Says why there is nothing to receive. */
static COLD struct io_result end_of_records(struct fb_conn *conn, struct io_result result)
{
    struct layer *layer = layer_of(conn);

    if (layer->phase == LAYER_FAILED)
        return (struct io_result) { .status = IO_FAILED, .error = EPROTO };
    if (layer->phase == LAYER_CLOSED)
        return (struct io_result) { .status = IO_EOF };
    if (result.status == IO_EOF && !layer->truncated) {
        conn_log(conn, LEVEL_INFO, 0, "TLS: the peer has ended without close_notify");
        layer->truncated = true;
    }
    return result;
}

struct io_result layer_recv(struct source *source, struct io_span *span)
{
    struct fb_conn *conn = layer_conn(source);
    struct layer *layer = layer_of(conn);
    uint8_t *p = conn->net->layers->in;
    struct io_result result = { .status = IO_DONE };
    size_t n = 0, used, plain;

    for (;;) {
        n += take_unread(conn, n);
        if (likely(layer->phase == LAYER_OPEN))
            result = receive_records(conn, &n);
        plain = open_records(conn, n, &used);
        n -= used;
        if (source->held)
            conn_mark_dirty(conn);
        if (likely(plain > 0) || layer->phase != LAYER_OPEN || result.status != IO_DONE)
            break;
        memmove(p, p + used, n);
        if (!layer_has_more(conn)) {
            used = 0;
            result.status = IO_AGAIN_READ;
            break;
        }
    }
    if (!keep_unread(conn, p + used, n))
        return (struct io_result) { .status = IO_FAILED, .error = ENOMEM };
    if (plain == 0)
        return end_of_records(conn, result);
    span->p = p;
    span->n = plain;
    return (struct io_result) { .status = IO_DONE, .n = plain };
}
