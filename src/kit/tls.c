/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers with TLS: see tls.h. An engine serves one peer, whose bytes so depend on nothing else. */
#include "kit/tls.h"

#include "tls/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes, as many as are added. */
struct kit_bytes {
    uint8_t *p;
    size_t n, room;
};

struct kit_tls {
    /* a configuration of one profile */
    struct tls_profile profile;
    struct tls_pair pair;
    struct tls_file file;
    struct tls_profiles profiles;
    struct tls_files files;
    uint8_t alpn[255];
    char name[TLS_NAME_MOST + 1], certificate[256];

    struct tls_engine *engine;
    struct tls_handshake *handshake;
    enum tls_step step;
    char text[TLS_TEXT];
    struct ciphers *ciphers;
    struct tls_keys in, out; /* keys of the worker's records, and of the peer's */
    size_t taken;            /* bytes of the socket that are in `wire`, or before */
    struct kit_bytes wire;   /* bytes of the worker that are not opened yet */
    struct kit_bytes heard;  /* plaintext */
    bool closed;
    int alert;
    /* memory of the engine's replies */
    uint8_t flight[TLS_FLIGHT_MOST], peer_certificate[TLS_PEER_MOST], facts[TLS_FACTS_MOST];
};

static const struct tls_suite *plain_suite(void)
{
    const struct tls_suite *suite = tls_suite_find(0);

    assert(suite != NULL && suite->cipher == CIPHER_PLAIN);
    return suite;
}

static void add_kit_bytes(struct kit_bytes *bytes, const void *p, size_t n)
{
    if (bytes->n + n >= bytes->room) {
        bytes->room = 2 * (bytes->n + n) + 1;
        bytes->p = realloc(bytes->p, bytes->room);
        if (bytes->p == NULL)
            kit_misused("no memory for the bytes of a peer");
    }
    if (n > 0)
        memcpy(bytes->p + bytes->n, p, n);
    bytes->n += n;
    bytes->p[bytes->n] = '\0'; /* a test may print them */
}

static void drop_kit_bytes(struct kit_bytes *bytes, size_t n)
{
    assert(n <= bytes->n);
    bytes->n -= n;
    if (bytes->n > 0)
        memmove(bytes->p, bytes->p + n, bytes->n);
}

static void say_wire(const fb_test_peer *peer, const void *p, size_t n)
{
    if (n > 0 && !peer->over && !peer->socket->closed)
        sim_say(peer->socket, p, n);
}

/* ---- What the peer wants ---- */

/* Adds protocols, with commas between them. */
static void set_alpn(struct kit_tls *tls, const char *list, size_t n)
{
    while (n > 0) {
        const char *comma = memchr(list, ',', n);
        size_t length = comma != NULL ? (size_t)(comma - list) : n;

        if (length == 0 || tls->profile.alpn_n + 1 + length > sizeof(tls->alpn))
            kit_misused("fb_test_tls(): the list of protocols \"%s\" is wrong, or too long", list);
        tls->alpn[tls->profile.alpn_n++] = (uint8_t)length;
        memcpy(tls->alpn + tls->profile.alpn_n, list, length);
        tls->profile.alpn_n += (unsigned)length;
        n -= length + (comma != NULL);
        list += length + (comma != NULL);
    }
    tls->profile.alpn = tls->alpn;
}

static void set_word(struct kit_tls *tls, const char *word, size_t n)
{
    if (n > 4 && strncmp(word, "sni=", 4) == 0 && n - 4 <= TLS_NAME_MOST) {
        snprintf(tls->name, sizeof(tls->name), "%.*s", (int)(n - 4), word + 4);
        tls->profile.sends_name = true;
    } else if (n > 5 && strncmp(word, "alpn=", 5) == 0) {
        set_alpn(tls, word + 5, n - 5);
    } else if (n > 5 && strncmp(word, "cert=", 5) == 0 && n - 5 < sizeof(tls->certificate) - 1) {
        snprintf(tls->certificate, sizeof(tls->certificate), "/%.*s", (int)(n - 5), word + 5);
        tls->file.path = tls->certificate;
        tls->profile.pairs = &tls->pair;
        tls->profile.pair_n = 1;
    } else {
        kit_misused("fb_test_tls(): \"%.*s\" is not sni=NAME, alpn=PROTOCOL,... or cert=FILE",
            (int)n, word);
    }
}

static void read_how(struct kit_tls *tls, const char *how)
{
    size_t n;

    for (; *how != '\0'; how += n) {
        how += strspn(how, " ");
        n = strcspn(how, " ");
        if (n > 0)
            set_word(tls, how, n);
    }
}

/* ---- The handshake ---- */

/* Gives the engine what has come; behind the handshake the rest are records. */
static void feed_kit_tls(fb_test_peer *peer)
{
    struct kit_tls *tls = peer->tls;
    struct tls_reply reply = { .out = tls->flight,
        .out_most = sizeof(tls->flight),
        .peer = tls->peer_certificate,
        .facts = tls->facts };

    assert(tls->step == TLS_MORE);
    tls->step =
        tls_engine_plain.feed(tls->handshake, (fb_bytes) { tls->wire.p, tls->wire.n }, &reply);
    drop_kit_bytes(&tls->wire, reply.used);
    say_wire(peer, reply.out, reply.out_n);
    memcpy(tls->text, reply.text, sizeof(tls->text));
    if (tls->step != TLS_DONE)
        return;
    tls->in = reply.session.in;
    tls->out = reply.session.out;
    if (tls_keys_expand(tls->ciphers, &tls->in, plain_suite()) == -1 ||
        tls_keys_expand(tls->ciphers, &tls->out, plain_suite()) == -1)
        kit_misused("no keys for a peer");
}

/* Returns the number of bytes that the worker has sent before its handshake, perhaps all so far. */
static size_t bytes_before_hello(const struct sim_socket *socket)
{
    static const uint8_t record[] = { TLS_HANDSHAKE, 3 };
    const uint8_t *hello =
        socket->sent_n > 0 ? memmem(socket->sent, socket->sent_n, record, sizeof(record)) : NULL;

    return hello != NULL ? (size_t)(hello - (const uint8_t *)socket->sent) : socket->sent_n;
}

void kit_tls_begin(fb_test_peer *peer, bool is_server, const char *how)
{
    struct kit_tls *tls = kit_alloc(sizeof(*tls));
    struct tls_start start = { .role = is_server ? TLS_SERVER : TLS_CLIENT };

    assert(peer->tls == NULL);
    peer->tls = tls;
    tls->profile = (struct tls_profile) { .client_ca = TLS_NO_FILE,
        .trusted = TLS_NO_FILE,
        .crl = TLS_NO_FILE,
        .versions = TLS_VERSION_1_3 };
    tls->profiles =
        (struct tls_profiles) { .list = &tls->profile, .n = 1, .files = &tls->file, .file_n = 1 };
    tls->files = (struct tls_files) { .profiles = &tls->profiles };
    tls->alert = -1;
    read_how(tls, how);
    tls->ciphers = ciphers_create();
    tls->engine = tls_engine_plain.create(&tls->files, NULL);
    start.name = (fb_bytes) { (const uint8_t *)tls->name, strlen(tls->name) };
    tls->handshake = tls->engine != NULL ? tls_engine_plain.begin(tls->engine, &start) : NULL;
    if (tls->ciphers == NULL || tls->handshake == NULL)
        kit_misused("no memory for TLS of a peer");
    tls->taken = is_server ? bytes_before_hello(peer->socket) : peer->socket->sent_n;
    add_kit_bytes(&tls->heard, sim_sent(peer->socket), tls->taken);
    if (!is_server)
        feed_kit_tls(peer);
}

void kit_tls_free(struct kit_tls *tls)
{
    if (tls == NULL)
        return;
    tls_engine_plain.end(tls->handshake);
    tls_engine_plain.destroy(tls->engine);
    ciphers_destroy(tls->ciphers);
    free(tls->wire.p);
    free(tls->heard.p);
    free(tls);
}

enum tls_step kit_tls_step(const struct kit_tls *tls)
{
    return tls->step;
}

const char *kit_tls_text(const struct kit_tls *tls)
{
    return tls->text;
}

/* ---- What the worker sends ---- */

static void take_kit_record(fb_test_peer *peer, const struct tls_opened *record)
{
    struct kit_tls *tls = peer->tls;

    if (record->type == TLS_DATA) {
        add_kit_bytes(&tls->heard, record->p, record->n);
    } else if (record->type == TLS_HANDSHAKE) { /* a KeyUpdate: the worker sends nothing else */
        if (tls_keys_update(tls->ciphers, &tls->in, plain_suite()) == -1)
            kit_misused("no keys for a peer");
    } else if (record->n == 2 && record->p[1] == TLS_CLOSE_NOTIFY) {
        tls->closed = true;
    } else if (record->n == 2) {
        tls->alert = record->p[1];
    }
}

/* Opens the whole records among what has come. */
static void open_kit_records(fb_test_peer *peer)
{
    struct kit_tls *tls = peer->tls;
    enum tls_alert alert;
    struct tls_opened opened;
    int length;

    while ((length = tls_record_length(tls->wire.p, tls->wire.n, &alert)) != 0 &&
           (length == -1 || (size_t)length <= tls->wire.n)) {
        if (length == -1 || tls_record_open(tls->ciphers, plain_suite(), &tls->in, tls->wire.p,
                                (size_t)length, &opened, &alert) == -1) {
            kit_fault(peer->test, "sent a record of TLS that cannot be opened");
            tls->wire.n = 0;
            return;
        }
        take_kit_record(peer, &opened);
        drop_kit_bytes(&tls->wire, (size_t)length);
    }
}

void kit_tls_pump(fb_test_peer *peer)
{
    struct kit_tls *tls = peer->tls;
    const struct sim_socket *socket = peer->socket;

    for (fb_test_run(peer->test); socket->sent_n > tls->taken; fb_test_run(peer->test)) {
        const uint8_t *sent = (const uint8_t *)sim_sent(peer->socket);

        add_kit_bytes(&tls->wire, sent + tls->taken, socket->sent_n - tls->taken);
        tls->taken = socket->sent_n;
        if (tls->step == TLS_MORE)
            feed_kit_tls(peer);
        if (tls->step == TLS_DONE)
            open_kit_records(peer);
    }
}

fb_bytes kit_tls_heard(const struct kit_tls *tls)
{
    return (fb_bytes) { tls->heard.p, tls->heard.n };
}

void kit_tls_forget(fb_test_peer *peer)
{
    kit_tls_pump(peer);
    sim_forget_sent(peer->socket);
    peer->tls->taken = 0;
    peer->tls->heard.n = 0;
}

bool kit_tls_is_closed(const struct kit_tls *tls)
{
    return tls->closed;
}

int kit_tls_alert(const struct kit_tls *tls)
{
    return tls->alert;
}

/* ---- What the peer says ---- */

static void say_kit_record(fb_test_peer *peer, enum tls_type type, const void *p, size_t n)
{
    uint8_t record[TLS_PLAIN_MOST + TLS_OVERHEAD];
    const struct iovec piece = { (void *)(uintptr_t)p, n };
    struct kit_tls *tls = peer->tls;
    size_t sealed;

    if (tls->step != TLS_DONE)
        kit_misused("a peer says something before its TLS handshake is done");
    sealed = tls_record_seal(tls->ciphers, plain_suite(), &tls->out, type, &piece, 1, n, record);
    if (sealed == 0)
        kit_misused("a record of a peer cannot be sealed");
    say_wire(peer, record, sealed);
}

void kit_tls_say(fb_test_peer *peer, const void *p, size_t n)
{
    const uint8_t *at = p;

    for (; n > TLS_PLAIN_MOST; at += TLS_PLAIN_MOST, n -= TLS_PLAIN_MOST)
        say_kit_record(peer, TLS_DATA, at, TLS_PLAIN_MOST);
    if (n > 0)
        say_kit_record(peer, TLS_DATA, at, n);
}

void kit_tls_say_alert(fb_test_peer *peer, unsigned alert)
{
    const uint8_t body[] = { alert == TLS_CLOSE_NOTIFY ? 1 : 2, (uint8_t)alert };

    say_kit_record(peer, TLS_ALERT, body, sizeof(body));
}

void kit_tls_update_keys(fb_test_peer *peer, bool asks)
{
    const uint8_t body[] = { 24, 0, 0, 1, asks };

    say_kit_record(peer, TLS_HANDSHAKE, body, sizeof(body));
    if (tls_keys_update(peer->tls->ciphers, &peer->tls->out, plain_suite()) == -1)
        kit_misused("no keys for a peer");
}
