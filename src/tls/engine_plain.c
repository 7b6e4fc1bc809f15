/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine without cryptography, for the simulated kernel and the test kit; no configuration
 * chooses it. Three flights in records of TLS's framing: client hello, server hello, finished.
 *
 * Responsible for a deterministic exchange with the effects of a real one: server name, protocols,
 * alerts, keys that both ends compute from random bytes of the client. Never secret. The client
 * hello is TLS's, in one record; other messages are a byte of the type and a body. Unknown or
 * misplaced bytes fail the handshake. */
#include "tls/engine.h"
#include "tls/hello.h"
#include "tls/record.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_RANDOM 32
/* A client hello's bytes before its random bytes, and before its extensions. */
#define HELLO_HEAD 6
#define HELLO_LEAST (HELLO_HEAD + HELLO_RANDOM + 9)
/* The longest message: a client hello with the longest name and list of protocols. */
#define PLAIN_MESSAGE_MOST (HELLO_LEAST + 9 + 255 + 6 + 255)
#define PLAIN_NO_APPLICATION_PROTOCOL 120

enum plain_message { PLAIN_CLIENT_HELLO = 1, PLAIN_SERVER_HELLO, PLAIN_FINISHED };

struct tls_engine {
    const struct tls_profiles *profiles;
    uint64_t begun; /* handshakes of clients, from which random bytes are made */
};

struct tls_handshake {
    struct tls_engine *engine;
    const struct tls_profile *profile;
    enum tls_role role;
    enum plain_message awaited; /* the peer's next message; of a client before its hello: none */
    uint8_t random[HELLO_RANDOM];
    uint8_t alpn_n, name_n;
    char alpn[255], name[255];
    size_t n; /* bytes of the peer's message so far */
    uint8_t in[TLS_HEADER + PLAIN_MESSAGE_MOST];
};

/* ---- Bytes computed from bytes ---- */

/* Mixes a number into another (the finaliser of splitmix64). */
static uint64_t mix_number(uint64_t n)
{
    n += 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

/* Fills n bytes from a seed and a label. */
static void fill_bytes(uint8_t *p, size_t n, uint64_t seed, unsigned label)
{
    uint64_t state = mix_number(seed ^ label);

    for (size_t i = 0; i < n; i++) {
        if (i % 8 == 0)
            state = mix_number(state);
        p[i] = (uint8_t)(state >> 8 * (i % 8));
    }
}

static uint64_t seed_of_random(const uint8_t random[HELLO_RANDOM])
{
    uint64_t seed = 0;

    for (size_t i = 0; i < HELLO_RANDOM; i++)
        seed = mix_number(seed ^ random[i]);
    return seed;
}

static void make_plain_keys(struct tls_keys *keys, uint64_t seed, enum tls_role sender)
{
    fill_bytes(keys->secret, sizeof(keys->secret), seed, 2 * sender + 1);
    fill_bytes(keys->key, sizeof(keys->key), seed, 2 * sender + 11);
    fill_bytes(keys->iv, sizeof(keys->iv), seed, 2 * sender + 21);
    keys->sequence = 0;
}

/* ---- Messages ---- */

static void put_record(struct tls_reply *reply, enum tls_type type, const uint8_t *body, size_t n)
{
    const uint8_t header[TLS_HEADER] = { (uint8_t)type, 3, 3, (uint8_t)(n >> 8), (uint8_t)n };

    assert(reply->out_n + TLS_HEADER + n <= reply->out_most);
    memcpy(reply->out + reply->out_n, header, TLS_HEADER);
    memcpy(reply->out + reply->out_n + TLS_HEADER, body, n);
    reply->out_n += TLS_HEADER + n;
}

static void put_client_hello(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    const struct tls_profile *profile = handshake->profile;
    uint8_t alpn_n = (uint8_t)profile->alpn_n;
    /* an extension: type 16, its length, the length of the list */
    const uint8_t extension[] = { 0, 16, (uint8_t)((alpn_n + 2) >> 8), (uint8_t)(alpn_n + 2), 0,
        alpn_n };
    uint8_t hello[PLAIN_MESSAGE_MOST] = { PLAIN_CLIENT_HELLO, 0, 0, 0, 3, 3 };
    size_t n = HELLO_LEAST;

    assert(profile->alpn_n <= 255);
    memcpy(hello + HELLO_HEAD, handshake->random, HELLO_RANDOM);
    /* no session, the suite 0, no compression */
    memcpy(hello + HELLO_HEAD + HELLO_RANDOM, "\0\0\2\0\0\1\0", 7);
    if (alpn_n > 0) {
        memcpy(hello + n, extension, sizeof(extension));
        memcpy(hello + n + sizeof(extension), profile->alpn, alpn_n);
        n += sizeof(extension) + alpn_n;
    }
    hello[HELLO_LEAST - 2] = (uint8_t)((n - HELLO_LEAST) >> 8);
    hello[HELLO_LEAST - 1] = (uint8_t)(n - HELLO_LEAST);
    hello[2] = (uint8_t)((n - 4) >> 8);
    hello[3] = (uint8_t)(n - 4);
    put_record(reply, TLS_HANDSHAKE, hello, n);
}

static void put_server_hello(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    uint8_t body[1 + HELLO_RANDOM + 1 + 255] = { PLAIN_SERVER_HELLO };
    size_t n = 1 + HELLO_RANDOM;

    memcpy(body + 1, handshake->random, HELLO_RANDOM);
    body[n++] = handshake->alpn_n;
    memcpy(body + n, handshake->alpn, handshake->alpn_n);
    put_record(reply, TLS_HANDSHAKE, body, n + handshake->alpn_n);
}

static void put_finished(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    uint8_t body[1 + HELLO_RANDOM] = { PLAIN_FINISHED };

    memcpy(body + 1, handshake->random, HELLO_RANDOM);
    put_record(reply, TLS_HANDSHAKE, body, sizeof(body));
}

static enum tls_step fail_plain(struct tls_reply *reply, unsigned alert, const char *why)
{
    const uint8_t body[2] = { 2, (uint8_t)alert };

    put_record(reply, TLS_ALERT, body, sizeof(body));
    snprintf(reply->text, sizeof(reply->text), "%s", why);
    return TLS_FAILED;
}

static enum tls_step finish_plain(const struct tls_handshake *handshake, struct tls_reply *reply)
{
    struct tls_session *session = &reply->session;
    uint64_t seed = seed_of_random(handshake->random);

    *session = (struct tls_session) {
        .version = TLS_1_3,
        .plain_most = TLS_PLAIN_MOST,
        .verify = TLS_VERIFIED_NONE,
        .alpn_n = handshake->alpn_n,
        .name_n = handshake->name_n,
    };
    memcpy(session->alpn, handshake->alpn, handshake->alpn_n);
    memcpy(session->name, handshake->name, handshake->name_n);
    make_plain_keys(&session->in, seed, handshake->role == TLS_SERVER ? TLS_CLIENT : TLS_SERVER);
    make_plain_keys(&session->out, seed, handshake->role);
    return TLS_DONE;
}

/* A message of the peer, behind its header and type. */
struct plain_body {
    const uint8_t *p;
    size_t n;
};

/* Takes n bytes from the front; NULL: there are fewer. */
static const uint8_t *take_bytes(struct plain_body *body, size_t n)
{
    const uint8_t *p = body->p;

    if (body->n < n)
        return NULL;
    body->p += n;
    body->n -= n;
    return p;
}

/* Takes a field behind its length byte; NULL: it is cut off. */
static const uint8_t *take_field(struct plain_body *body, uint8_t *n)
{
    const uint8_t *length = take_bytes(body, 1);

    *n = length != NULL ? *length : 0;
    return length != NULL ? take_bytes(body, *n) : NULL;
}

/* ---- Protocols ---- */

static bool alpn_list_has(const uint8_t *list, size_t n, const uint8_t *protocol)
{
    for (size_t i = 0; i < n; i += 1u + list[i])
        if (memcmp(list + i, protocol, 1u + protocol[0]) == 0)
            return true;
    return false;
}

/* Chooses the first protocol of the profile's that the client offers; false: there is none. */
static bool choose_alpn(struct tls_handshake *handshake, const uint8_t *offered, size_t n)
{
    const struct tls_profile *profile = handshake->profile;

    if (n == 0 || profile->alpn_n == 0)
        return true;
    for (size_t i = 0; i < profile->alpn_n; i += 1u + profile->alpn[i])
        if (alpn_list_has(offered, n, profile->alpn + i)) {
            handshake->alpn_n = profile->alpn[i];
            memcpy(handshake->alpn, profile->alpn + i + 1, handshake->alpn_n);
            return true;
        }
    return false;
}

/* ---- The exchange ---- */

/* Copies random bytes and server name of a parsed message; false: the name is none. */
static bool keep_client_hello(
    struct tls_handshake *handshake, const struct tls_hello *hello, fb_bytes record)
{
    if (hello->name.n > sizeof(handshake->name))
        return false;
    memcpy(handshake->random, record.p + TLS_HEADER + HELLO_HEAD, HELLO_RANDOM);
    tls_hello_copy(record, hello->name, (uint8_t *)handshake->name);
    handshake->name_n = (uint8_t)hello->name.n;
    return memchr(handshake->name, '\0', handshake->name_n) == NULL;
}

static enum tls_step read_client_hello(
    struct tls_handshake *handshake, fb_bytes record, struct tls_reply *reply)
{
    struct tls_hello hello = { .status = TLS_HELLO_MORE };
    uint8_t alpn[PLAIN_MESSAGE_MOST];

    if (tls_hello_parse(&hello, record) != TLS_HELLO_WHOLE ||
        !keep_client_hello(handshake, &hello, record))
        return fail_plain(reply, TLS_DECODE_ERROR, "a malformed client hello");
    tls_hello_copy(record, hello.protocols, alpn);
    if (handshake->profile->reject)
        return fail_plain(reply, TLS_UNRECOGNIZED_NAME, "the handshake was rejected");
    if (!choose_alpn(handshake, alpn, hello.protocols.n))
        return fail_plain(reply, PLAIN_NO_APPLICATION_PROTOCOL, "no common protocol");
    put_server_hello(reply, handshake);
    handshake->awaited = PLAIN_FINISHED;
    return TLS_MORE;
}

static enum tls_step read_server_hello(
    struct tls_handshake *handshake, struct plain_body *body, struct tls_reply *reply)
{
    const uint8_t *random = take_bytes(body, HELLO_RANDOM), *alpn;

    alpn = take_field(body, &handshake->alpn_n);
    if (random == NULL || alpn == NULL || body->n > 0)
        return fail_plain(reply, TLS_DECODE_ERROR, "a malformed server hello");
    if (memcmp(random, handshake->random, HELLO_RANDOM) != 0)
        return fail_plain(reply, TLS_ILLEGAL_PARAMETER, "a server hello of another handshake");
    memcpy(handshake->alpn, alpn, handshake->alpn_n);
    put_finished(reply, handshake);
    return finish_plain(handshake, reply);
}

static enum tls_step read_finished(
    struct tls_handshake *handshake, struct plain_body *body, struct tls_reply *reply)
{
    const uint8_t *random = take_bytes(body, HELLO_RANDOM);

    if (random == NULL || body->n > 0)
        return fail_plain(reply, TLS_DECODE_ERROR, "a malformed finished message");
    if (memcmp(random, handshake->random, HELLO_RANDOM) != 0)
        return fail_plain(reply, TLS_ILLEGAL_PARAMETER, "a finished message of another handshake");
    return finish_plain(handshake, reply);
}

/* Reads a whole record. */
static enum tls_step read_plain_record(struct tls_handshake *handshake, struct tls_reply *reply)
{
    const fb_bytes record = { handshake->in, handshake->n };
    struct plain_body body = { handshake->in + TLS_HEADER, handshake->n - TLS_HEADER };
    const uint8_t *type;

    if (handshake->in[0] == TLS_ALERT) {
        snprintf(reply->text, sizeof(reply->text), "the peer sent alert %u",
            body.n == 2 ? body.p[1] : 0u);
        return TLS_FAILED;
    }
    type = take_bytes(&body, 1);
    if (handshake->in[0] != TLS_HANDSHAKE || type == NULL || *type != handshake->awaited)
        return fail_plain(reply, TLS_UNEXPECTED_MESSAGE, "an unexpected message");
    handshake->n = 0;
    switch (handshake->awaited) {
    case PLAIN_CLIENT_HELLO:
        return read_client_hello(handshake, record, reply);
    case PLAIN_SERVER_HELLO:
        return read_server_hello(handshake, &body, reply);
    default:
        return read_finished(handshake, &body, reply);
    }
}

/* Takes bytes up to a length; returns how many. */
static size_t gather_bytes(struct tls_handshake *handshake, size_t up_to, fb_bytes in)
{
    size_t n = up_to - handshake->n;

    assert(up_to >= handshake->n && up_to <= sizeof(handshake->in));
    if (n > in.n)
        n = in.n;
    if (n > 0)
        memcpy(handshake->in + handshake->n, in.p, n);
    handshake->n += n;
    return n;
}

static enum tls_step feed_plain(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    enum tls_step step = TLS_MORE;

    if (handshake->role == TLS_CLIENT && handshake->awaited == 0) {
        put_client_hello(reply, handshake);
        handshake->awaited = PLAIN_SERVER_HELLO;
    }
    while (step == TLS_MORE && reply->used < in.n) {
        size_t length = TLS_HEADER;

        if (handshake->n >= TLS_HEADER)
            length += (size_t)handshake->in[3] << 8 | handshake->in[4];
        if (length > sizeof(handshake->in))
            return fail_plain(reply, TLS_RECORD_OVERFLOW, "a message that is too long");
        reply->used +=
            gather_bytes(handshake, length, (fb_bytes) { in.p + reply->used, in.n - reply->used });
        /* a header that has just come may announce a record without a body */
        if (handshake->n >= TLS_HEADER &&
            handshake->n == TLS_HEADER + ((size_t)handshake->in[3] << 8 | handshake->in[4]))
            step = read_plain_record(handshake, reply);
    }
    return step;
}

static struct tls_handshake *begin_plain(struct tls_engine *engine, const struct tls_start *start)
{
    struct tls_handshake *handshake = calloc(1, sizeof(*handshake));

    assert(start->profile < engine->profiles->n);
    if (handshake == NULL)
        return NULL;
    handshake->engine = engine;
    handshake->profile = &engine->profiles->list[start->profile];
    handshake->role = start->role;
    if (start->role == TLS_SERVER)
        handshake->awaited = PLAIN_CLIENT_HELLO;
    else
        fill_bytes(handshake->random, HELLO_RANDOM, ++engine->begun, 0);
    return handshake;
}

static void end_plain(struct tls_handshake *handshake)
{
    explicit_bzero(handshake, sizeof(*handshake));
    free(handshake);
}

/* Looks whether a file of the configuration can be opened; -1 after an emerg line. */
static int try_file(struct tls_files *files, uint32_t index, struct log *log)
{
    const struct tls_file *file = &files->profiles->files[index];
    int fd;

    assert(index < files->profiles->file_n);
    fd = files->open(files, index);
    if (fd == -1) {
        log_write(log, LEVEL_EMERG, errno, "cannot open \"%s\" in %s", file->path, file->at);
        return -1;
    }
    close(fd);
    return 0;
}

static struct tls_engine *create_plain(struct tls_files *files, struct log *log)
{
    const struct tls_profiles *profiles = files->profiles;
    struct tls_engine *engine;
    int status = 0;

    for (uint32_t i = 0; i < profiles->file_n; i++)
        if (try_file(files, i, log) == -1)
            status = -1;
    if (status == -1)
        return NULL;
    engine = calloc(1, sizeof(*engine));
    if (engine == NULL)
        log_write(log, LEVEL_EMERG, errno, "no memory for handshakes");
    else
        engine->profiles = profiles;
    return engine;
}

static void destroy_plain(struct tls_engine *engine)
{
    free(engine);
}

/* Nothing of a file is used. */
static void refresh_plain(struct tls_engine *engine, struct log *log)
{
    (void)engine;
    (void)log;
}

const struct tls_engine_ops tls_engine_plain = {
    .name = "plain",
    .create = create_plain,
    .destroy = destroy_plain,
    .refresh = refresh_plain,
    .remind = refresh_plain,
    .begin = begin_plain,
    .feed = feed_plain,
    .end = end_plain,
};
