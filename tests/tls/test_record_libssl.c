/* SPDX-License-Identifier: BSD-2-Clause */
/* Records exchanged with libssl in both directions, with random sizes, padding and key updates.
 * SOAK_RECORDS is the number of records of each suite. */
#include "tls/peer.h"
#include "tls/records.h"

#include <openssl/err.h>

#define RECORDS_OF_SESSION 1500
#define MOST_OF_WRITE 50000

enum { KEY_UPDATE = 24 };

struct session {
    struct peer peer;
    const struct tls_suite *suite;
    struct ciphers *ciphers;
    uint64_t random;
    unsigned long records;
    uint8_t plain[MOST_OF_WRITE], opened[MOST_OF_WRITE];
    uint8_t wire[2 * MOST_OF_WRITE];
};

static struct session session;

/* Returns a mostly short size. */
static size_t random_size(size_t most)
{
    size_t limit = random_below(&session.random, 16) != 0 && most > 300 ? 300 : most;

    return 1 + random_below(&session.random, (uint32_t)limit);
}

/* Fills in n new bytes of plaintext. */
static void fill_plain(size_t n)
{
    uint64_t word = next_random(&session.random);

    for (size_t i = 0; i < n; i += 8, word += UINT64_C(0x9e3779b97f4a7c15))
        memcpy(session.plain + i, &word, n - i < 8 ? n - i : 8);
}

/* How much padding libssl adds to a record of n bytes. */
static size_t choose_padding(SSL *ssl, int type, size_t n, void *arg)
{
    struct session *own = arg;

    (void)ssl;
    (void)type;
    if (random_below(&own->random, 4) != 0 || n >= TLS_PLAIN_MOST)
        return 0;
    return random_below(
        &own->random, (uint32_t)(TLS_PLAIN_MOST - n < 700 ? TLS_PLAIN_MOST - n : 700));
}

static void seal_to_peer(enum tls_type type, const uint8_t *p, size_t n)
{
    size_t at = random_below(&session.random, (uint32_t)n + 1);
    struct iovec pieces[] = {
        { (void *)(uintptr_t)p, at },
        { (void *)(uintptr_t)(p + at), n - at },
    };
    size_t sealed = tls_record_seal(
        session.ciphers, session.suite, &session.peer.ours, type, pieces, 2, n, session.wire);

    test_require(sealed > n);
    test_require(BIO_write(session.peer.in, session.wire, (int)sealed) == (int)sealed);
    session.records++;
}

/* Takes a key update of libssl, and answers if asked to. */
static void take_key_update(const struct tls_opened *opened)
{
    static const uint8_t answer[] = { KEY_UPDATE, 0, 0, 1, 0 };

    test_require(opened->n == sizeof(answer) && memcmp(opened->p, answer, 4) == 0);
    test_require(tls_keys_update(session.ciphers, &session.peer.theirs, session.suite) == 0);
    if (opened->p[4] == 0)
        return;
    seal_to_peer(TLS_HANDSHAKE, answer, sizeof(answer));
    test_require(tls_keys_update(session.ciphers, &session.peer.ours, session.suite) == 0);
}

/* Opens all that libssl has written; returns the bytes of data. */
static size_t open_of_peer(void)
{
    static uint8_t bytes[2 * MOST_OF_WRITE];
    int all = BIO_read(session.peer.out, bytes, sizeof(bytes)), length;
    struct tls_opened opened;
    enum tls_alert alert;
    size_t n = 0;

    for (int at = 0; at < all; at += length) {
        length = tls_record_length(bytes + at, (size_t)(all - at), &alert);
        test_require(length > 0 && length <= all - at);
        test_require(tls_record_open(session.ciphers, session.suite, &session.peer.theirs,
                         bytes + at, (size_t)length, &opened, &alert) == 0);
        session.records++;
        if (opened.type == TLS_HANDSHAKE) {
            take_key_update(&opened);
            continue;
        }
        test_require(opened.type == TLS_DATA && n + opened.n <= sizeof(session.opened));
        memcpy(session.opened + n, opened.p, opened.n);
        n += opened.n;
    }
    return n;
}

/* libssl sends; bytes that it had been sent before are read first. */
static void receive_data(void)
{
    size_t n = random_size(MOST_OF_WRITE), written = 0;

    fill_plain(n);
    test_require(SSL_write_ex(session.peer.ssl, session.plain, n, &written) == 1 && written == n);
    test_require(open_of_peer() == n);
    test_require(memcmp(session.opened, session.plain, n) == 0);
}

static void send_data(void)
{
    size_t n = random_size(TLS_PLAIN_MOST), got = 0;

    fill_plain(n);
    seal_to_peer(TLS_DATA, session.plain, n);
    test_require(SSL_read_ex(session.peer.ssl, session.opened, sizeof(session.opened), &got) == 1);
    test_require(got == n && memcmp(session.opened, session.plain, n) == 0);
}

/* Either end goes over to new keys, and asks the peer for new keys. */
static void update_keys(void)
{
    bool wants = random_below(&session.random, 2) == 0;
    const uint8_t message[] = { KEY_UPDATE, 0, 0, 1, wants };

    if (random_below(&session.random, 2) == 0) {
        seal_to_peer(TLS_HANDSHAKE, message, sizeof(message));
        test_require(tls_keys_update(session.ciphers, &session.peer.ours, session.suite) == 0);
        return;
    }
    test_require(SSL_key_update(session.peer.ssl,
                     wants ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    test_require(SSL_do_handshake(session.peer.ssl) == 1);
    test_require(open_of_peer() == 0);
}

/* A record of which a bit is wrong is refused by both ends, and by libssl with the same alert. */
static void end_by_forgery(void)
{
    size_t n = random_size(TLS_PLAIN_MOST), sealed, bit;
    struct iovec piece = { session.plain, n };
    struct tls_keys keys = session.peer.ours;
    struct tls_opened opened;
    enum tls_alert alert;

    sealed = tls_record_seal(
        session.ciphers, session.suite, &session.peer.ours, TLS_DATA, &piece, 1, n, session.wire);
    bit = 8 * TLS_HEADER + random_below(&session.random, (uint32_t)(8 * (sealed - TLS_HEADER)));
    session.wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
    test_require(BIO_write(session.peer.in, session.wire, (int)sealed) == (int)sealed);
    test_require(SSL_read_ex(session.peer.ssl, session.opened, sizeof(session.opened), &n) == 0);
    test_require(
        ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC);
    ERR_clear_error();
    test_require(tls_record_open(session.ciphers, session.suite, &keys, session.wire, sealed,
                     &opened, &alert) == -1);
    test_require(alert == TLS_BAD_RECORD_MAC && ERR_peek_error() == 0);
}

static void end_by_close_notify(void)
{
    static const uint8_t close_notify[] = { 1, TLS_CLOSE_NOTIFY };
    int n, length;
    struct tls_opened opened;
    enum tls_alert alert;

    seal_to_peer(TLS_ALERT, close_notify, sizeof(close_notify));
    test_require(SSL_read_ex(session.peer.ssl, session.opened, 1, &(size_t) { 0 }) == 0);
    test_require(SSL_get_shutdown(session.peer.ssl) == SSL_RECEIVED_SHUTDOWN);
    SSL_shutdown(session.peer.ssl);
    n = BIO_read(session.peer.out, session.wire, sizeof(session.wire));
    for (int at = 0; at < n; at += length) { /* an answer to a key update may come before */
        length = tls_record_length(session.wire + at, (size_t)(n - at), &alert);
        test_require(length > 0 && length <= n - at);
        test_require(tls_record_open(session.ciphers, session.suite, &session.peer.theirs,
                         session.wire + at, (size_t)length, &opened, &alert) == 0);
        if (opened.type == TLS_HANDSHAKE)
            take_key_update(&opened);
    }
    test_require(opened.type == TLS_ALERT && opened.n == sizeof(close_notify) &&
                 memcmp(opened.p, close_notify, opened.n) == 0);
}

static void run_session(unsigned long wanted)
{
    unsigned long end = session.records + wanted;

    peer_connect(
        &session.peer, session.ciphers, session.suite, random_below(&session.random, 2) == 0);
    SSL_set_record_padding_callback(session.peer.ssl, choose_padding);
    SSL_set_record_padding_callback_arg(session.peer.ssl, &session);
    while (session.records < end) {
        if (session.suite->version == TLS_1_3 && random_below(&session.random, 100) == 0)
            update_keys();
        else if (random_below(&session.random, 2) == 0)
            send_data();
        else
            receive_data();
    }
    if (random_below(&session.random, 2) == 0)
        end_by_forgery();
    else
        end_by_close_notify();
    peer_disconnect(&session.peer);
}

START_TEST(libssl_agrees)
{
    const char *wanted = getenv("SOAK_RECORDS");
    unsigned long n = wanted != NULL ? strtoul(wanted, NULL, 10) : test_trials(9000);

    session.suite = tls_suite_at((unsigned)_i);
    session.records = 0;
    session.random = random_seed() + (uint64_t)_i;
    session.ciphers = ciphers_create();
    ck_assert_ptr_nonnull(session.ciphers);
    peer_init(&session.peer, session.suite);
    while (session.records < n)
        run_session(RECORDS_OF_SESSION);
    peer_done(&session.peer);
    ciphers_destroy(session.ciphers);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, libssl_agrees, 1, count_suites()); /* without the plain one */
    if (getenv("SOAK_RECORDS") != NULL)
        tcase_set_timeout(tcase, 7200);
}

TEST_MAIN("record_libssl", add_tests)
