/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine without cryptography, for the simulated kernel and the test kit; no configuration
 * chooses it. Three flights in records of TLS's framing: client hello, server hello, finished.
 * Responsible for a deterministic exchange with the effects of a real one: server name, protocols,
 * alerts, keys that both ends compute from random bytes of the client. Never secret. The client
 * hello is TLS's, in one record; other messages are a byte of the type and a body. Unknown or
 * misplaced bytes fail the handshake.
 *
 * A server's certificate is the name of its file: "one.tests.crt" is for "one.tests", and verified
 * by clients whose trusted file has the same name; a client's likewise, but for names. */
#include "tls/engine.h"
#include "tls/hello.h"
#include "tls/plain_keys.h"
#include "tls/record.h"
#include "tls/server_name.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client hello's bytes before its random bytes, and before its extensions. */
#define HELLO_HEAD 6
#define HELLO_LEAST (HELLO_HEAD + PLAIN_RANDOM + 9)
/* The longest message: a client hello with the longest name and list of protocols. */
#define PLAIN_MESSAGE_MOST (HELLO_LEAST + 9 + 255 + 6 + 255)
#define PLAIN_NO_APPLICATION_PROTOCOL 120
/* OpenSSL's numbers. */
#define PLAIN_SELF_SIGNED 18
#define PLAIN_OTHER_NAME 62

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
    uint8_t random[PLAIN_RANDOM];
    uint8_t alpn_n, name_n;
    char alpn[255], name[TLS_NAME_MOST], named[256]; /* the last: a certificate, by the start */
    uint8_t verify;                                  /* enum tls_verified */
    int32_t verify_code;                             /* 0: verified, or no certificate */
    size_t n;                                        /* bytes of the peer's message so far */
    uint8_t in[TLS_HEADER + PLAIN_MESSAGE_MOST];
};

/* ---- Messages ---- */

static void put_record(struct tls_reply *reply, enum tls_type type, const uint8_t *body, size_t n)
{
    const uint8_t header[TLS_HEADER] = { (uint8_t)type, 3, 3, (uint8_t)(n >> 8), (uint8_t)n };

    assert(reply->out_n + TLS_HEADER + n <= reply->out_most);
    memcpy(reply->out + reply->out_n, header, TLS_HEADER);
    memcpy(reply->out + reply->out_n + TLS_HEADER, body, n);
    reply->out_n += TLS_HEADER + n;
}

/* Writes an extension of a type with a head and a body; returns the number of bytes. */
static size_t put_extension(
    uint8_t *p, uint8_t type, const uint8_t *head, size_t head_n, const void *body, size_t n)
{
    const uint8_t begin[] = { 0, type, (uint8_t)((head_n + n) >> 8), (uint8_t)(head_n + n) };

    memcpy(p, begin, sizeof(begin));
    memcpy(p + sizeof(begin), head, head_n);
    memcpy(p + sizeof(begin) + head_n, body, n);
    return sizeof(begin) + head_n + n;
}

/* Whether the server's name is to be sent: an address never is. */
static bool sends_server_name(const struct tls_handshake *handshake)
{
    const fb_bytes name = { (const uint8_t *)handshake->name, handshake->name_n };
    uint8_t address[TLS_ADDRESS_MOST];

    return handshake->profile->sends_name && name.n > 0 && tls_server_address(name, address) == 0;
}

static void put_client_hello(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    const struct tls_profile *profile = handshake->profile;
    uint8_t alpn_n = (uint8_t)profile->alpn_n;
    size_t list_n = handshake->name_n + 3u;
    /* the lengths of lists; that of names has a type and a length more */
    const uint8_t names_head[] = { (uint8_t)(list_n >> 8), (uint8_t)list_n, 0, 0,
        handshake->name_n };
    const uint8_t alpn_head[] = { 0, alpn_n };
    uint8_t hello[PLAIN_MESSAGE_MOST] = { PLAIN_CLIENT_HELLO, 0, 0, 0, 3, 3 };
    size_t n = HELLO_LEAST;

    assert(profile->alpn_n <= 255);
    memcpy(hello + HELLO_HEAD, handshake->random, PLAIN_RANDOM);
    /* no session, the suite 0, no compression */
    memcpy(hello + HELLO_HEAD + PLAIN_RANDOM, "\0\0\2\0\0\1\0", 7);
    if (sends_server_name(handshake))
        n += put_extension(
            hello + n, 0, names_head, sizeof(names_head), handshake->name, handshake->name_n);
    if (alpn_n > 0)
        n += put_extension(hello + n, 16, alpn_head, sizeof(alpn_head), profile->alpn, alpn_n);
    hello[HELLO_LEAST - 2] = (uint8_t)((n - HELLO_LEAST) >> 8);
    hello[HELLO_LEAST - 1] = (uint8_t)(n - HELLO_LEAST);
    hello[2] = (uint8_t)((n - 4) >> 8);
    hello[3] = (uint8_t)(n - 4);
    put_record(reply, TLS_HANDSHAKE, hello, n);
}

/* Returns a file's name without its folder; "": none, or one too long for a message. */
static const char *plain_file_name(const struct tls_handshake *handshake, uint32_t file)
{
    const char *path = file != TLS_NO_FILE ? handshake->engine->profiles->files[file].path : "/";
    const char *name = strrchr(path, '/') + 1; /* the path is absolute */

    return strlen(name) <= 255 ? name : "";
}

static const char *own_certificate(const struct tls_handshake *handshake)
{
    const struct tls_profile *profile = handshake->profile;
    uint32_t file = profile->pair_n > 0 ? profile->pairs[0].certificate : TLS_NO_FILE;

    return handshake->named[0] != '\0' ? handshake->named : plain_file_name(handshake, file);
}

static void put_server_hello(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    const char *certificate = own_certificate(handshake);
    size_t n = 1 + PLAIN_RANDOM, certificate_n = strlen(certificate);
    uint8_t body[1 + PLAIN_RANDOM + 2 * (1 + 255)] = { PLAIN_SERVER_HELLO };

    memcpy(body + 1, handshake->random, PLAIN_RANDOM);
    body[n++] = handshake->alpn_n;
    memcpy(body + n, handshake->alpn, handshake->alpn_n);
    n += handshake->alpn_n;
    body[n++] = (uint8_t)certificate_n;
    memcpy(body + n, certificate, certificate_n);
    put_record(reply, TLS_HANDSHAKE, body, n + certificate_n);
}

/* A client's certificate, if any, comes behind its random bytes. */
static void put_finished(struct tls_reply *reply, const struct tls_handshake *handshake)
{
    const char *certificate = own_certificate(handshake);
    size_t n = 1 + PLAIN_RANDOM, certificate_n = strlen(certificate);
    uint8_t body[1 + PLAIN_RANDOM + 1 + 255] = { PLAIN_FINISHED };

    memcpy(body + 1, handshake->random, PLAIN_RANDOM);
    if (certificate_n > 0) {
        body[n++] = (uint8_t)certificate_n;
        memcpy(body + n, certificate, certificate_n);
    }
    put_record(reply, TLS_HANDSHAKE, body, n + certificate_n);
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
    const enum tls_role peer = handshake->role == TLS_SERVER ? TLS_CLIENT : TLS_SERVER;
    struct tls_session *session = &reply->session;

    *session = (struct tls_session) {
        .version = TLS_1_3,
        .plain_most = TLS_PLAIN_MOST,
        .verify = handshake->verify,
        .verify_code = handshake->verify_code,
        .alpn_n = handshake->alpn_n,
    };
    memcpy(session->alpn, handshake->alpn, handshake->alpn_n);
    if (handshake->role == TLS_SERVER || sends_server_name(handshake)) {
        session->name_n = handshake->name_n;
        memcpy(session->name, handshake->name, handshake->name_n);
    }
    plain_keys_make(&session->in, handshake->random, peer);
    plain_keys_make(&session->out, handshake->random, handshake->role);
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
    memcpy(handshake->random, record.p + TLS_HEADER + HELLO_HEAD, PLAIN_RANDOM);
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

/* Checks the client's certificate, n bytes of the name of its file, where it is wanted. */
static void verify_plain_client(
    struct tls_handshake *handshake, const uint8_t *certificate, size_t n)
{
    const char *trusted = plain_file_name(handshake, handshake->profile->client_ca);
    bool same = strlen(trusted) == n && memcmp(trusted, certificate, n) == 0;

    handshake->verify = same ? TLS_VERIFIED : TLS_VERIFY_FAILED;
    handshake->verify_code = same ? 0 : PLAIN_SELF_SIGNED;
}

/* Checks the server's certificate, n bytes of the name of its file. */
static void verify_plain(struct tls_handshake *handshake, const uint8_t *certificate, size_t n)
{
    const char *trusted = plain_file_name(handshake, handshake->profile->trusted);
    size_t name_n = n;

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        name_n = certificate[i] == '.' ? i : name_n;
    if (strlen(trusted) != n || memcmp(trusted, certificate, n) != 0) {
        handshake->verify = TLS_VERIFY_FAILED;
        handshake->verify_code = PLAIN_SELF_SIGNED;
    } else if (name_n != handshake->name_n || memcmp(handshake->name, certificate, name_n) != 0) {
        handshake->verify = TLS_VERIFIED_OTHER;
        handshake->verify_code = PLAIN_OTHER_NAME;
    } else {
        handshake->verify = TLS_VERIFIED;
    }
}

static enum tls_step read_server_hello(
    struct tls_handshake *handshake, struct plain_body *body, struct tls_reply *reply)
{
    const uint8_t *random = take_bytes(body, PLAIN_RANDOM), *alpn, *certificate;
    uint8_t certificate_n;

    alpn = take_field(body, &handshake->alpn_n);
    certificate = take_field(body, &certificate_n);
    if (random == NULL || alpn == NULL || certificate == NULL || body->n > 0)
        return fail_plain(reply, TLS_DECODE_ERROR, "a malformed server hello");
    if (memcmp(random, handshake->random, PLAIN_RANDOM) != 0)
        return fail_plain(reply, TLS_ILLEGAL_PARAMETER, "a server hello of another handshake");
    memcpy(handshake->alpn, alpn, handshake->alpn_n);
    verify_plain(handshake, certificate, certificate_n);
    put_finished(reply, handshake);
    return finish_plain(handshake, reply);
}

static enum tls_step read_finished(
    struct tls_handshake *handshake, struct plain_body *body, struct tls_reply *reply)
{
    const uint8_t *random = take_bytes(body, PLAIN_RANDOM), *certificate = NULL;
    uint8_t n = 0;

    if (body->n > 0)
        certificate = take_field(body, &n);
    if (random == NULL || body->n > 0 || (certificate != NULL && n == 0))
        return fail_plain(reply, TLS_DECODE_ERROR, "a malformed finished message");
    if (memcmp(random, handshake->random, PLAIN_RANDOM) != 0)
        return fail_plain(reply, TLS_ILLEGAL_PARAMETER, "a finished message of another handshake");
    if (certificate != NULL && handshake->profile->verify != TLS_VERIFY_OFF) {
        verify_plain_client(handshake, certificate, n);
        memcpy(reply->peer, certificate, n);
        reply->peer_n = n;
    }
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

    assert(start->profile < engine->profiles->n && start->name.n <= TLS_NAME_MOST);
    if (handshake == NULL)
        return NULL;
    handshake->engine = engine;
    handshake->profile = &engine->profiles->list[start->profile];
    handshake->role = start->role;
    handshake->name_n = (uint8_t)start->name.n;
    if (start->name.n > 0)
        memcpy(handshake->name, start->name.p, start->name.n);
    if (start->paths.n > 0)
        snprintf(handshake->named, sizeof(handshake->named), "%s", (const char *)start->paths.p);
    if (start->role == TLS_SERVER)
        handshake->awaited = PLAIN_CLIENT_HELLO;
    else
        plain_keys_random(handshake->random, ++engine->begun);
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

    for (uint32_t i = 0; files->open != NULL && i < profiles->file_n; i++)
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

/* Files are not used. */
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
