/* SPDX-License-Identifier: BSD-2-Clause */
/* Seals by the cipher itself, not by tls/record.c: also what that never makes. */
#include "tls/sealing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define UPDATE_REQUESTED 1

static const struct tls_suite *plain_suite(void)
{
    const struct tls_suite *suite = tls_suite_find(0);

    ck_assert_ptr_nonnull(suite);
    ck_assert_int_eq(suite->version, TLS_1_3);
    return suite;
}

struct fixture *sealing_start(enum fixture_events events, uint32_t connections)
{
    struct fixture *fixture = fixture_start_net(events, connections);

    ck_assert_int_eq(layer_init(fixture->net), 0);
    return fixture;
}

struct fixture *sealing_start_on(const struct mechanism *mechanism, uint32_t connections)
{
    struct fixture *fixture = fixture_start_net_on(mechanism, connections);

    ck_assert_int_eq(layer_init(fixture->net), 0);
    return fixture;
}

void sealing_stop(struct fixture *fixture)
{
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->net->connection_n, 0);
    layer_done(fixture->net);
    fixture_stop(fixture);
}

static void make_keys(const struct sealing *peer, struct tls_keys *keys, uint8_t first)
{
    *keys = (struct tls_keys) { .sequence = 0 };
    for (size_t i = 0; i < sizeof(keys->secret); i++)
        keys->secret[i] = (uint8_t)(first + 7 * i);
    ck_assert_int_eq(tls_keys_expand(peer->ciphers, keys, plain_suite()), 0);
}

void sealing_init(struct sealing *peer, struct tls_session *session)
{
    *peer = (struct sealing) { .ciphers = ciphers_create(), .alert = -1 };
    ck_assert_ptr_nonnull(peer->ciphers);
    make_keys(peer, &peer->in, 1);
    make_keys(peer, &peer->out, 2);
    *session = (struct tls_session) {
        .version = plain_suite()->version,
        .suite = plain_suite()->id,
        .in = peer->out,
        .out = peer->in,
        .plain_most = TLS_PLAIN_MOST,
    };
}

void sealing_done(struct sealing *peer)
{
    free(peer->sealed.p);
    free(peer->raw.p);
    free(peer->plain.p);
    ciphers_destroy(peer->ciphers);
    *peer = (struct sealing) { .alert = -1 };
}

void sealing_begin(struct sealing *peer, struct owner *owner)
{
    struct tls_session session;

    sealing_init(peer, &session);
    peer->socket = owner->socket;
    if (owner->socket != NULL)
        peer->taken = owner->socket->sent_n;
    ck_assert_int_eq(layer_begin(owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
}

/* Returns the place of n more bytes. */
static uint8_t *grow_bytes(struct sealing_bytes *bytes, size_t n)
{
    if (bytes->n + n + 1 > bytes->room) {
        bytes->room = 2 * (bytes->n + n + 1);
        bytes->p = realloc(bytes->p, bytes->room);
        ck_assert_ptr_nonnull(bytes->p);
    }
    bytes->n += n;
    bytes->p[bytes->n] = '\0';
    return bytes->p + bytes->n - n;
}

static void drop_bytes(struct sealing_bytes *bytes, size_t n)
{
    bytes->n -= n;
    memmove(bytes->p, bytes->p + n, bytes->n);
}

void sealing_add(struct sealing *peer, unsigned type, const void *p, size_t n)
{
    size_t inner = n + 1 + CIPHER_TAG;
    const struct iovec piece = { (void *)(uintptr_t)p, n };
    uint8_t *record = grow_bytes(&peer->sealed, TLS_HEADER + inner), nonce[CIPHER_NONCE];
    uint8_t kind = (uint8_t)type;

    memcpy(record, (const uint8_t[]) { TLS_DATA, 3, 3, (uint8_t)(inner >> 8), (uint8_t)inner }, 5);
    memcpy(nonce, peer->out.iv, sizeof(nonce));
    for (int i = 0; i < 8; i++)
        nonce[CIPHER_NONCE - 1 - i] ^= (uint8_t)(peer->out.sequence >> (8 * i));
    peer->out.sequence++;
    ck_assert_int_eq(cipher_seal(peer->ciphers, CIPHER_PLAIN, peer->out.key, nonce, record,
                         TLS_HEADER, &piece, n > 0, &kind, 1, record + TLS_HEADER),
        0);
}

void sealing_add_data(struct sealing *peer, const void *p, size_t n, size_t record)
{
    for (size_t at = 0; at < n; at += record)
        sealing_add(peer, TLS_DATA, (const uint8_t *)p + at, n - at < record ? n - at : record);
}

void sealing_add_text(struct sealing *peer, const char *text)
{
    sealing_add(peer, TLS_DATA, text, strlen(text));
}

void sealing_add_alert(struct sealing *peer, unsigned level, unsigned alert)
{
    sealing_add(peer, TLS_ALERT, (const uint8_t[]) { (uint8_t)level, (uint8_t)alert }, 2);
}

void sealing_add_close(struct sealing *peer)
{
    sealing_add_alert(peer, 1, TLS_CLOSE_NOTIFY);
}

void sealing_add_update(struct sealing *peer, bool requests)
{
    sealing_add(peer, TLS_HANDSHAKE, (const uint8_t[]) { 24, 0, 0, 1, requests }, 5);
    ck_assert_int_eq(tls_keys_update(peer->ciphers, &peer->out, plain_suite()), 0);
}

void sealing_say(struct sealing *peer)
{
    sealing_say_pieces(peer, peer->sealed.n);
}

void sealing_say_pieces(struct sealing *peer, size_t piece)
{
    for (size_t at = 0, n; at < peer->sealed.n; at += n) {
        n = piece < peer->sealed.n - at ? piece : peer->sealed.n - at;
        sim_say(peer->socket, peer->sealed.p + at, n);
    }
    peer->sealed.n = 0;
}

void sealing_says(struct sealing *peer, const char *text)
{
    sealing_add_text(peer, text);
    sealing_say(peer);
}

/* Takes a record that was opened. */
static void take_opened(struct sealing *peer, const struct tls_opened *opened)
{
    test_require(!peer->closed);
    peer->records++;
    switch (opened->type) {
    case TLS_DATA:
        test_require(opened->n > 0 && opened->n <= TLS_PLAIN_MOST);
        memcpy(grow_bytes(&peer->plain, opened->n), opened->p, opened->n);
        peer->longest = opened->n > peer->longest ? opened->n : peer->longest;
        break;
    case TLS_ALERT:
        test_require(opened->n == 2 && peer->alert == -1);
        peer->alert = opened->p[1];
        test_require(opened->p[0] == (peer->alert == TLS_CLOSE_NOTIFY ? 1 : 2));
        peer->closed = true;
        break;
    default:
        test_require(opened->type == TLS_HANDSHAKE && opened->n == 5);
        test_require(memcmp(opened->p, (const uint8_t[]) { 24, 0, 0, 1 }, 4) == 0);
        peer->updates++;
        peer->requests += opened->p[4] == UPDATE_REQUESTED;
        ck_assert_int_eq(tls_keys_update(peer->ciphers, &peer->in, plain_suite()), 0);
    }
}

void sealing_take(struct sealing *peer, const void *p, size_t n)
{
    size_t at = 0;

    if (n > 0)
        memcpy(grow_bytes(&peer->raw, n), p, n);
    for (;;) {
        enum tls_alert alert;
        struct tls_opened opened;
        int length = tls_record_length(peer->raw.p + at, peer->raw.n - at, &alert);

        test_require(length >= 0);
        if (length == 0 || (size_t)length > peer->raw.n - at)
            break;
        test_require(tls_record_open(peer->ciphers, plain_suite(), &peer->in, peer->raw.p + at,
                         (size_t)length, &opened, &alert) == 0);
        take_opened(peer, &opened);
        at += (size_t)length;
    }
    drop_bytes(&peer->raw, at);
}

void sealing_write(struct sealing *peer, int fd)
{
    ssize_t n;

    while (peer->sealed.n > 0) {
        n = send(fd, peer->sealed.p, peer->sealed.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n == -1) {
            ck_assert(errno == EAGAIN || errno == EWOULDBLOCK);
            break;
        }
        drop_bytes(&peer->sealed, (size_t)n);
    }
}

bool sealing_read(struct sealing *peer, int fd)
{
    static uint8_t bytes[65536];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        sealing_take(peer, bytes, (size_t)n);
    if (n == -1)
        ck_assert(errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNRESET);
    return n == -1 && errno != ECONNRESET;
}

void sealing_look(struct sealing *peer)
{
    size_t at = peer->taken;

    peer->taken = peer->socket->sent_n;
    if (peer->taken > at)
        sealing_take(peer, peer->socket->sent + at, peer->taken - at);
}

const char *sealing_sent(struct sealing *peer)
{
    sealing_look(peer);
    return peer->plain.n > 0 ? (const char *)peer->plain.p : "";
}

const uint8_t *sealing_pattern(void)
{
    static uint8_t pattern[SEALING_PATTERN];
    bool is_made = pattern[1] != 0;

    for (size_t i = 0; !is_made && i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i % 251 + i / 251 % 7);
    return pattern;
}

bool sealing_sent_pattern(struct sealing *peer, size_t n)
{
    sealing_look(peer);
    return peer->plain.n == n && (n == 0 || memcmp(peer->plain.p, sealing_pattern(), n) == 0);
}

static struct sealed *sealed_of(const struct owner *owner)
{
    return owner->fixture->test;
}

size_t sealed_collect(struct owner *owner, fb_bytes in)
{
    struct sealing_bytes *got = &sealed_of(owner)->got;

    got->p = realloc(got->p, got->n + in.n);
    ck_assert_ptr_nonnull(got->p);
    memcpy(got->p + got->n, in.p, in.n);
    got->n += in.n;
    return in.n;
}

bool sealed_got_pattern(const struct sealed *sealed, size_t n)
{
    return sealed->got.n == n && (n == 0 || memcmp(sealed->got.p, sealing_pattern(), n) == 0);
}

void sealed_open(struct sealed *sealed, enum fixture_events events)
{
    *sealed = (struct sealed) { .fixture = sealing_start(events, 1) };
    sealed->fixture->test = sealed;
    sealed->owner = owner_open(sealed->fixture);
    sealed->owner->data = sealed_collect;
    sealing_begin(&sealed->peer, sealed->owner);
    fixture_run(sealed->fixture);
}

void sealed_close(struct sealed *sealed)
{
    if (sealed->owner->conn != NULL)
        owner_abort(sealed->owner);
    fixture_settle(sealed->fixture);
    fixture_pass(sealed->fixture, FIXTURE_LINGERING_MS);
    owner_free(&sealed->owner);
    sealing_done(&sealed->peer);
    free(sealed->got.p);
    sealing_stop(sealed->fixture);
}

void sealed_check_alert(struct sealed *sealed, int alert, const char *text)
{
    const char *log = fixture_logged(sealed->fixture);

    ck_assert_ptr_null(sealed->owner->conn);
    ck_assert_uint_eq(sealed->owner->closings, 1);
    ck_assert_uint_eq(sealed->owner->eofs, 0);
    ck_assert_int_eq(sealed->owner->reason, FB_IO_ERROR);
    sealing_look(&sealed->peer);
    ck_assert_int_eq(sealed->peer.alert, alert);
    ck_assert_uint_eq(sealed->peer.raw.n, 0);
    ck_assert_msg(strstr(log, text) != NULL, "logged: %s", log);
    ck_assert_msg(strchr(log, '\n') == strrchr(log, '\n'), "several lines: %s", log);
}

void sealed_let_all_leave(struct sealed *sealed)
{
    sim_set_room(sealed->owner->socket, SIZE_MAX);
    fixture_run(sealed->fixture);
}

void sealed_write(struct sealed *sealed, const void *p, size_t n, size_t room)
{
    sim_set_room(sealed->owner->socket, room);
    conn_write(sealed->owner->conn, p, n);
    fixture_settle(sealed->fixture);
    fixture_run(sealed->fixture);
}
