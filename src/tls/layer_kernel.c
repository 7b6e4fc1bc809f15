/* SPDX-License-Identifier: BSD-2-Clause */
/* Output that the kernel seals: files and pipes need not come through this process.
 *
 * Responsible for the moment at which the kernel takes the keys over, in the middle of a
 * connection, and for what is sent from there on. Never offloads input: a kernel before Linux 6.14
 * cannot follow a peer's KeyUpdate, and one record that it cannot open ends the session. Invariant:
 * whatever the kernel refuses, the layer goes on as before; a socket is given no plaintext before
 * the kernel has its keys. */
#include "net/conn_log.h"
#include "os/kernel_tls.h"
#include "tls/layer.h"

#include <errno.h>

static_assert((int)OS_TLS_PLAIN == (int)CIPHER_PLAIN, "the system's ciphers differ");
static_assert((int)OS_TLS_AES_128_GCM == (int)CIPHER_AES_128_GCM, "the system's ciphers differ");
static_assert((int)OS_TLS_AES_256_GCM == (int)CIPHER_AES_256_GCM, "the system's ciphers differ");
static_assert((int)OS_TLS_CHACHA20_POLY1305 == (int)CIPHER_CHACHA20_POLY1305 &&
                  (int)OS_TLS_CIPHERS == (int)CIPHERS,
    "the system's ciphers differ");

/* Bytes of the shortest record that the kernel makes of much output: a page. */
#define RECORD_LEAST 4096
/* Records under a key of TLS 1.3, as long as no kernel takes another: AES-GCM's limit is 2^24.5. */
#define RECORDS_MOST ((uint64_t)1 << 24)

/* Returns the bytes by which a record is longer than its plaintext. */
static size_t record_overhead(const struct tls_suite *suite)
{
    return tls_record_front(suite) + (suite->version == TLS_1_3) + CIPHER_TAG;
}

/* Whether the kernel can ever seal the output. */
static bool suits_kernel(const struct fb_conn *conn)
{
    const struct layer *layer = layer_of(conn);

    return layer->offload == LAYER_MAY && layer_lower(conn)->seal != NULL &&
           layer->plain_most == TLS_PLAIN_MOST && conn->peer.family != AF_UNIX &&
           (conn->net->layers->lacks >> layer->suite->cipher & 1) == 0;
}

/* The kernel has not taken the keys. Says so where it lacks the cipher, once in a worker. */
static COLD void note_refused(struct fb_conn *conn, int error)
{
    struct layer *layer = layer_of(conn);

    layer->offload = LAYER_SEALS;
    if (error == ENOTCONN || error == EPIPE || error == ENOMEM || error == ENOBUFS)
        return; /* an affair of this connection */
    conn->net->layers->lacks |= 1u << layer->suite->cipher;
    conn_log(conn, LEVEL_NOTICE, error, "TLS: the kernel does not seal by %s, so the worker does",
        layer->suite->name);
}

bool layer_kernel_take(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);
    const struct os_tls_keys keys = {
        .version = (uint16_t)layer->suite->version,
        .cipher = (enum os_tls_cipher)layer->suite->cipher,
        .key = layer->out.key,
        .iv = layer->out.iv,
        .sequence = layer->out.sequence,
    };
    struct io_sealing sealing = {
        .cipher = (uint8_t)keys.cipher,
        .overhead = (uint8_t)record_overhead(layer->suite),
        .sequence = keys.sequence,
        .most = keys.sequence,
    };

    if (!suits_kernel(conn) || layer->ended)
        return false;
    if (layer->held != NULL) /* output of our own keys */
        return true;
    if (layer_lower(conn)->seal(&conn->source, &keys, &sealing) == -1) {
        if (errno == EAGAIN)
            return true;
        note_refused(conn, errno);
        return false;
    }
    conn_debug(conn, "TLS: the kernel seals from here on");
    tls_keys_wipe(&layer->out);
    layer->sealing = sealing;
    layer->offload = LAYER_OFFLOADED;
    return true;
}

/* Whether the kernel may seal more; else *result says why not. An alert, or the end, was last. */
static inline bool may_give(struct fb_conn *conn, struct io_result *result)
{
    struct layer *layer = layer_of(conn);
    struct io_sealing *sealing = &layer->sealing;

    assert(layer->offload == LAYER_OFFLOADED && (layer->held == NULL || layer->ended));
    *result = (struct io_result) { .status = IO_FAILED, .error = EPROTO };
    if (unlikely(layer->ended)) {
        layer_flush(&conn->source, false);
        return false;
    }
    if (likely(sealing->most < RECORDS_MOST) || layer->suite->version != TLS_1_3)
        return true;
    layer_lower(conn)->sealed(&conn->source, sealing); /* the number itself */
    if (sealing->most < RECORDS_MOST)
        return true;
    conn_log(conn, LEVEL_INFO, 0, "TLS: the keys cannot be updated, and have sealed enough");
    return false;
}

/* Counts what the kernel has taken. */
static struct io_result note_given(struct fb_conn *conn, struct io_result result)
{
    struct io_sealing *sealing = &layer_of(conn)->sealing;

    if (result.status == IO_DONE) {
        sealing->plain += result.n;
        sealing->most += 1 + result.n / RECORD_LEAST;
    }
    return result;
}

struct io_result layer_kernel_send(struct source *source, const struct iovec *pieces, int n)
{
    struct fb_conn *conn = layer_conn(source);
    struct io_result result;

    if (unlikely(!may_give(conn, &result)))
        return result;
    return note_given(conn, layer_lower(conn)->send(source, pieces, n));
}

struct io_result layer_kernel_sendfile(struct source *source, int fd, off_t *offset, size_t n)
{
    struct fb_conn *conn = layer_conn(source);
    struct io_result result;

    if (unlikely(!may_give(conn, &result)))
        return result;
    return note_given(conn, layer_lower(conn)->sendfile(source, fd, offset, n));
}

struct io_result layer_kernel_splice(struct source *source, int pipe, size_t n)
{
    struct fb_conn *conn = layer_conn(source);
    struct io_result result;

    if (unlikely(!may_give(conn, &result)))
        return result;
    return note_given(conn, layer_lower(conn)->splice_out(source, pipe, n));
}
