/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of libssl, in memory: see handshake.h. */
#include "keeper/handshake.h"

#include "keeper/client_session.h"
#include "keeper/extract.h"
#include "keeper/facts.h"
#include "keeper/peer_name.h"
#include "keeper/reason.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum handshake_phase {
    HANDSHAKE_RUNS,
    HANDSHAKE_REFUSED,
    HANDSHAKE_AWAITS, /* the handshake is done, and takes tickets */
    HANDSHAKE_OVER,
};

/* Pairs whose names came with the start. */
struct handshake_names {
    char text[TLS_TEXT]; /* why one cannot be had; "": none was tried, or all are good */
    char names[];
};

struct tls_handshake {
    enum handshake_phase phase;
    const char *refusal; /* HANDSHAKE_REFUSED: why */
    struct handshakes *shared;
    SSL *ssl;
    const struct tls_profile *profile;
    unsigned pair_next;            /* pairs of the profile before are found, or bad */
    unsigned pair_n;               /* pairs that libssl was given */
    struct handshake_names *named; /* NULL: the profile has no pairs by names */
    /* within a call of feed(); NULL outside */
    struct tls_reply *reply;
    fb_bytes in;
    struct extract extract;
    struct client_session session; /* of a client */
    size_t name_n;                 /* the server's name, for a client */
    uint8_t name[TLS_NAME_MOST];
};

/* libssl reads the header of a record, and then as many bytes as the header says. */
static int read_peer_bytes(BIO *bio, char *to, int n)
{
    struct tls_handshake *handshake = BIO_get_data(bio);
    struct tls_reply *reply = handshake->reply;
    size_t left;

    assert(reply != NULL && reply->used <= handshake->in.n && n >= 0);
    left = handshake->in.n - reply->used;
    BIO_clear_retry_flags(bio);
    if (left == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    left = left < (size_t)n ? left : (size_t)n;
    memcpy(to, handshake->in.p + reply->used, left);
    reply->used += left;
    return (int)left;
}

static int write_peer_bytes(BIO *bio, const char *from, int n)
{
    struct tls_handshake *handshake = BIO_get_data(bio);
    struct tls_reply *reply = handshake->reply;

    assert(reply != NULL && reply->out_n <= reply->out_most && n >= 0);
    BIO_clear_retry_flags(bio);
    if ((size_t)n > reply->out_most - reply->out_n)
        return -1;
    memcpy(reply->out + reply->out_n, from, (size_t)n);
    reply->out_n += (size_t)n;
    return n;
}

static long control_bio(BIO *bio, int call, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return call == BIO_CTRL_FLUSH || call == BIO_CTRL_PUSH || call == BIO_CTRL_POP;
}

static int init_bio(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

int handshakes_init(
    struct handshakes *handshakes, const struct libssl *lib, const struct session_table *sessions)
{
    *handshakes = (struct handshakes) {
        .lib = lib,
        .bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "handshake"),
        .prf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL),
        .sessions = sessions,
        .digest = EVP_MD_CTX_new(),
    };
    return handshakes->bio != NULL && handshakes->prf != NULL && handshakes->digest != NULL &&
                   BIO_meth_set_read(handshakes->bio, read_peer_bytes) == 1 &&
                   BIO_meth_set_write(handshakes->bio, write_peer_bytes) == 1 &&
                   BIO_meth_set_ctrl(handshakes->bio, control_bio) == 1 &&
                   BIO_meth_set_create(handshakes->bio, init_bio) == 1
               ? 0
               : -1;
}

void handshakes_done(struct handshakes *handshakes)
{
    BIO_meth_free(handshakes->bio);
    EVP_KDF_free(handshakes->prf);
    EVP_MD_CTX_free(handshakes->digest);
    *handshakes = (struct handshakes) { 0 };
}

/* libssl's callback, when the hello is known and a certificate is needed: gives the handshake the
 * pairs by names. 0 ends it; a client without a name has no certificate, as in nginx. */
static int give_named(SSL *ssl, void *data)
{
    struct tls_handshake *handshake = data;
    struct handshake_names *named = handshake->named;
    const char *names = named->names;

    (void)ssl;
    for (unsigned i = 0; 2 * i < handshake->profile->named.n; i++) {
        const struct pair *pair = NULL;
        const char *failed;

        if (!handshake->extract.is_client || names[0] != '\0') {
            pair = named_pairs_find(handshake->shared->named, handshake->profile, i, names,
                tickets_clock(), named->text);
            if (pair == NULL)
                return 0;
            failed = handshake_use_pair(handshake, pair);
            if (failed != NULL) {
                reason_take(named->text, sizeof(named->text), failed);
                return 0;
            }
        }
        names += strlen(names) + 1;
        names += strlen(names) + 1;
    }
    return 1;
}

/* Keeps the names of the start; -1 without memory. */
static int keep_names(struct tls_handshake *handshake, fb_bytes paths)
{
    if (paths.n == 0)
        return 0;
    handshake->named = malloc(sizeof(*handshake->named) + paths.n);
    if (handshake->named == NULL)
        return -1;
    handshake->named->text[0] = '\0';
    memcpy(handshake->named->names, paths.p, paths.n);
    handshake->shared->lib->SSL_set_cert_cb(handshake->ssl, give_named, handshake);
    return 0;
}

/* Makes the handshake a client's; -1 without memory. */
static int start_client_handshake(struct tls_handshake *handshake, const struct context *context,
    const uint8_t identity[SESSION_CONTEXT], const struct tls_start *start)
{
    const struct libssl *lib = handshake->shared->lib;

    assert(start->name.n <= sizeof(handshake->name));
    handshake->extract.is_client = true;
    handshake->name_n = start->name.n;
    if (start->name.n > 0)
        memcpy(handshake->name, start->name.p, start->name.n);
    lib->SSL_set_connect_state(handshake->ssl);
    client_session_begin(
        &handshake->session, context, identity, handshake->shared->sessions, start, handshake->ssl);
    return context->profile->sends_name ? peer_name_send(lib, handshake->ssl, start->name) : 0;
}

/* Gives the handshake its role, and the identity of its sessions; -1 without memory. */
static int start_handshake(
    struct tls_handshake *handshake, const struct context *context, const struct tls_start *start)
{
    const struct handshakes *shared = handshake->shared;
    const struct libssl *lib = shared->lib;
    const struct tls_file *files =
        shared->pairs != NULL ? shared->pairs->files->profiles->files : NULL;
    uint8_t identity[SESSION_CONTEXT];

    if (session_context_compute(identity, shared->digest, context->identity, handshake->profile,
            files, start->paths) < 0 ||
        keep_names(handshake, start->paths) < 0 ||
        lib->SSL_set_session_id_context(handshake->ssl, identity, sizeof(identity)) != 1)
        return -1;
    if (start->role == TLS_CLIENT)
        return start_client_handshake(handshake, context, identity, start);
    lib->SSL_set_accept_state(handshake->ssl);
    return 0;
}

struct tls_handshake *handshake_begin(struct handshakes *handshakes, const struct context *context,
    const struct tls_profile *profile, const struct tls_start *start)
{
    const struct libssl *lib = handshakes->lib;
    struct tls_handshake *handshake = calloc(1, sizeof(*handshake));
    BIO *bio;

    if (handshake == NULL)
        return NULL;
    ERR_clear_error();
    handshake->phase = HANDSHAKE_RUNS;
    handshake->shared = handshakes;
    handshake->profile = profile;
    handshake->ssl = lib->SSL_new(context->ctx);
    bio = BIO_new(handshakes->bio);
    if (handshake->ssl == NULL || bio == NULL) {
        BIO_free(bio);
        handshake_end(handshake);
        return NULL;
    }
    BIO_set_data(bio, handshake);
    lib->SSL_set_bio(handshake->ssl, bio, bio);
    handshake->extract.tickets = &context->tickets;
    handshake->extract.key_log = context->key_log;
    extract_attach(lib, handshake->ssl, &handshake->extract);
    if (start_handshake(handshake, context, start) == 0)
        return handshake;
    handshake_end(handshake);
    return NULL;
}

const char *handshake_use_pair(struct tls_handshake *handshake, const struct pair *pair)
{
    const struct libssl *lib = handshake->shared->lib;
    const char *failed = context_use_certificate(lib, handshake->ssl, pair);

    if (failed == NULL)
        failed = context_use_key(lib, handshake->ssl, pair);
    handshake->pair_n += failed == NULL;
    return failed;
}

struct tls_handshake *handshake_refuse(const char *text)
{
    struct tls_handshake *handshake = calloc(1, sizeof(*handshake));

    if (handshake == NULL)
        return NULL;
    handshake->phase = HANDSHAKE_REFUSED;
    handshake->refusal = text;
    return handshake;
}

static enum tls_step fail_step(struct tls_handshake *handshake, const char *text)
{
    handshake->phase = HANDSHAKE_OVER;
    client_session_fail(&handshake->session);
    snprintf(handshake->reply->text, TLS_TEXT, "%s", text);
    handshake->reply->used = handshake->in.n;
    return TLS_FAILED;
}

/* Ends a handshake of a server whose certificates are all bad, by an alert. */
static enum tls_step fail_without_pair(struct tls_handshake *handshake)
{
    static const uint8_t alert[] = { SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL,
        SSL_AD_INTERNAL_ERROR };

    if (handshake->extract.is_client) /* no hello was sent yet */
        return fail_step(handshake, "no certificate for the server could be loaded");
    memcpy(handshake->reply->out, alert, sizeof(alert));
    handshake->reply->out_n = sizeof(alert);
    return fail_step(handshake, "no certificate of the server could be loaded");
}

/* Gives the handshake the profile's pairs, of which libssl chooses; false: one is awaited. */
static bool give_pairs(struct tls_handshake *handshake)
{
    const struct tls_profile *profile = handshake->profile;
    const struct pair *pair;

    for (; handshake->pair_next < profile->pair_n; handshake->pair_next++) {
        enum pairs_found found = pairs_find(
            handshake->shared->pairs, profile, &profile->pairs[handshake->pair_next], &pair);

        if (found == PAIRS_LATER)
            return false;
        if (found == PAIRS_FOUND)
            handshake_use_pair(handshake, pair);
    }
    return true;
}

/* Copies the certificate of the peer; beyond TLS_PEER_MOST bytes it is left out. */
static void copy_peer(const struct libssl *lib, SSL *ssl, struct tls_reply *reply)
{
    X509 *peer = lib->SSL_get0_peer_certificate(ssl);
    unsigned char *to = reply->peer;
    int n = peer != NULL ? i2d_X509(peer, NULL) : 0;

    assert(to != NULL || n == 0);
    if (n > 0 && n <= TLS_PEER_MOST)
        reply->peer_n = (size_t)i2d_X509(peer, &to);
}

static enum tls_step finish_handshake(struct tls_handshake *handshake)
{
    const struct libssl *lib = handshake->shared->lib;
    struct tls_reply *reply = handshake->reply;
    const char *lack = extract_session(
        lib, handshake->ssl, &handshake->extract, handshake->shared->prf, &reply->session);

    if (lack != NULL) {
        OPENSSL_cleanse(&reply->session, sizeof(reply->session));
        return fail_step(handshake, lack);
    }
    copy_peer(lib, handshake->ssl, reply);
    if (handshake->extract.is_client && reply->session.verify == TLS_VERIFIED)
        peer_name_check(lib->SSL_get0_peer_certificate(handshake->ssl),
            (fb_bytes) { handshake->name, handshake->name_n }, &reply->session);
    reply->facts_n = facts_write(lib, handshake->ssl, handshake->profile->facts, reply->facts);
    handshake->phase = HANDSHAKE_OVER;
    if (reply->session.version == TLS_1_3 && handshake->session.table != NULL) {
        handshake->phase = HANDSHAKE_AWAITS;
        reply->session.awaits_tickets = 1;
    } else {
        client_session_keep(&handshake->session, handshake->ssl);
    }
    return TLS_DONE;
}

/* Lets libssl go as far as the bytes allow. */
static enum tls_step advance_handshake(struct tls_handshake *handshake)
{
    const struct libssl *lib = handshake->shared->lib;
    char text[TLS_TEXT];
    int status, error;

    ERR_clear_error();
    extract_begin_step(&handshake->extract, handshake->ssl);
    status = lib->SSL_do_handshake(handshake->ssl);
    extract_end_step(&handshake->extract, handshake->ssl);
    if (status == 1)
        return finish_handshake(handshake);
    error = lib->SSL_get_error(handshake->ssl, status);
    if (error == SSL_ERROR_WANT_READ)
        return TLS_MORE;
    if (handshake->named != NULL && handshake->named->text[0] != '\0') {
        handshake->reply->severe = true;
        return fail_step(handshake, handshake->named->text);
    }
    if (error == SSL_ERROR_SYSCALL && ERR_peek_error() == 0)
        return fail_step(handshake, "the handshake has too much to send");
    if (handshake->extract.refusal[0] != '\0')
        return fail_step(handshake, handshake->extract.refusal);
    return fail_step(handshake, reason_take(text, sizeof(text), "SSL_do_handshake()"));
}

enum tls_step handshake_feed(struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    enum tls_step step;

    assert(handshake->phase <= HANDSHAKE_REFUSED && handshake->reply == NULL);
    reply->used = reply->out_n = reply->peer_n = reply->facts_n = 0;
    reply->text[0] = '\0';
    reply->severe = false;
    if (handshake->phase == HANDSHAKE_RUNS && !give_pairs(handshake))
        return TLS_LATER;
    handshake->in = in;
    handshake->reply = reply;
    if (handshake->phase == HANDSHAKE_REFUSED)
        step = fail_step(handshake, handshake->refusal);
    else if (handshake->pair_n == 0 && handshake->profile->pair_n > 0 && handshake->named == NULL)
        step = fail_without_pair(handshake);
    else
        step = advance_handshake(handshake);
    assert(step == TLS_MORE ? reply->used == in.n : handshake->phase > HANDSHAKE_REFUSED);
    handshake->reply = NULL;
    handshake->in = (fb_bytes) { 0 };
    return step;
}

bool handshake_ticket(struct tls_handshake *handshake, fb_bytes record)
{
    const struct libssl *lib = handshake->shared->lib;
    struct tls_reply none = { .used = 0 }; /* without room: nothing can be sent */
    bool taken;
    char byte;
    int n;

    assert(handshake->phase == HANDSHAKE_AWAITS && handshake->reply == NULL);
    handshake->in = record;
    handshake->reply = &none;
    ERR_clear_error();
    n = lib->SSL_read(handshake->ssl, &byte, 1);
    taken = n <= 0 && lib->SSL_get_error(handshake->ssl, n) == SSL_ERROR_WANT_READ &&
            none.used == record.n;
    handshake->reply = NULL;
    handshake->in = (fb_bytes) { 0 };
    if (taken)
        client_session_keep(&handshake->session, handshake->ssl);
    else /* data, or no record of the session */
        handshake->phase = HANDSHAKE_OVER;
    return taken;
}

void handshake_end(struct tls_handshake *handshake)
{
    assert(handshake->reply == NULL);
    if (handshake->ssl != NULL) {
        const struct libssl *lib = handshake->shared->lib;

        /* libssl takes a session for broken, and not to be resumed, that has not been shut down */
        lib->SSL_set_shutdown(handshake->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        lib->SSL_free(handshake->ssl);
    }
    free(handshake->named);
    client_session_end(&handshake->session);
    extract_wipe(&handshake->extract);
    free(handshake);
}
