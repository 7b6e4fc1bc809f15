/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets of the engine of OpenSSL: engines with shared keys, changing keys, keys of files, and
 * servers that refuse the sessions of other servers. */
#include "keeper/ticket_ring.h"
#include "support/directory.h"
#include "talk.h"

#include <openssl/hmac.h>
#include <string.h>

enum { TLS_1_2_LOOP, TLS_1_3_LOOP, VERSIONS };

#define LIFETIME_MS 300000 /* lifetime of keys: the servers' timeout */

static _Alignas(16) uint8_t memory[TLS_TICKETS_SIZE];
static struct talk_server one, other; /* two keepers' engines */
static SSL_CTX *client;

static void begin(int version)
{
    memset(memory, 0, sizeof(memory));
    talk_open(&one);
    talk_open(&other);
    one.ops.tickets = other.ops.tickets = memory;
    version = version == TLS_1_2_LOOP ? TLS1_2_VERSION : TLS1_3_VERSION;
    client = talk_client(version, version);
}

static void end(void)
{
    SSL_CTX_free(client);
    talk_close(&one);
    talk_close(&other);
}

/* Tries to resume the session, unless NULL, and frees it; returns the session for the next
 * handshake, and whether the session was resumed. */
static SSL_SESSION *shake(struct talk_server *server, SSL_SESSION *session, unsigned *resumed)
{
    struct talk talk;

    talk_begin(&talk, server, client);
    if (session != NULL)
        SSL_set_session(talk.client, session);
    talk_run(&talk);
    if (talk.step != TLS_DONE)
        ck_abort_msg("the handshake has failed: %s", talk.reply.text);
    talk_prove(&talk);
    *resumed = talk.reply.session.resumed;
    ck_assert_int_eq(SSL_session_reused(talk.client), (int)*resumed);
    SSL_SESSION_free(session);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    return session;
}

static SSL_SESSION *full(struct talk_server *server)
{
    unsigned resumed;
    SSL_SESSION *session = shake(server, NULL, &resumed);

    ck_assert_uint_eq(resumed, 0);
    return session;
}

/* Whether the session is resumed, which is freed. */
static unsigned resumes(struct talk_server *server, SSL_SESSION *session)
{
    unsigned resumed;

    SSL_SESSION_free(shake(server, session, &resumed));
    return resumed;
}

static size_t ticket_of(const SSL_SESSION *session, const uint8_t **ticket)
{
    size_t n;

    SSL_SESSION_get0_ticket(session, ticket, &n);
    ck_assert_uint_gt(n, TICKET_NAME);
    return n;
}

/* ---- Keys that keepers share ---- */

START_TEST(engines_share_keys)
{
    SSL_SESSION *session;
    unsigned resumed;

    begin(_i);
    talk_start(&one);
    talk_start(&other);
    session = full(&one);
    for (int i = 0; i < 20; i++) {
        session = shake(i % 2 == 0 ? &other : &one, session, &resumed);
        ck_assert_uint_eq(resumed, 1);
    }
    /* a later generation */
    engine_openssl.destroy(one.engine);
    engine_openssl.destroy(other.engine);
    other.engine = NULL;
    talk_start(&one);
    ck_assert_uint_eq(resumes(&one, session), 1);
    end();
}
END_TEST

START_TEST(engines_without_memory_have_keys_of_their_own)
{
    begin(_i);
    one.ops.tickets = other.ops.tickets = NULL;
    talk_start(&one);
    talk_start(&other);
    ck_assert_uint_eq(resumes(&one, full(&one)), 1);
    ck_assert_uint_eq(resumes(&other, full(&one)), 0);
    end();
}
END_TEST

/* Makes a new key, n times, as if the lifetime of a key had passed. */
static void rotate(unsigned n)
{
    static uint64_t now = UINT64_C(1) << 40;
    struct ticket_ring ring;
    struct ticket_key key;

    ticket_ring_init(&ring, memory, LIFETIME_MS);
    for (unsigned i = 0; i < n; i++) {
        now += LIFETIME_MS;
        ck_assert_int_eq(ticket_ring_take(&ring, now, &key), 0);
    }
}

/* Resumes a copy of the session; returns the session for the next. */
static SSL_SESSION *resume_copy(SSL_SESSION *session)
{
    unsigned resumed;
    SSL_SESSION *next = shake(&one, SSL_SESSION_dup(session), &resumed);

    ck_assert_uint_eq(resumed, 1);
    return next;
}

START_TEST(a_ticket_of_an_older_key_is_renewed)
{
    SSL_SESSION *session, *next;
    const uint8_t *ticket, *renewed;
    size_t n;

    begin(_i);
    talk_start(&one);
    session = full(&one);
    n = ticket_of(session, &ticket);
    next = resume_copy(session);
    ck_assert_uint_eq(ticket_of(next, &renewed), n);
    ck_assert_mem_eq(ticket, renewed, TICKET_NAME);
    /* with TLS 1.3 a ticket is for one use */
    ck_assert_int_eq(memcmp(ticket, renewed, n) == 0, _i == TLS_1_2_LOOP);
    SSL_SESSION_free(next);

    rotate(2);
    next = resume_copy(session);
    ticket_of(next, &renewed);
    ck_assert_mem_ne(ticket, renewed, TICKET_NAME);
    ck_assert_uint_eq(resumes(&one, next), 1);

    rotate(1); /* the fourth key: the first is gone */
    ck_assert_uint_eq(resumes(&one, session), 0);
    end();
}
END_TEST

/* No ticket is given again by a key that is damaged: the next is made. */
START_TEST(damaged_memory_costs_sessions_alone)
{
    SSL_SESSION *session;

    begin(_i);
    talk_start(&one);
    session = full(&one);
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] ^= 0x55;
    ck_assert_uint_eq(resumes(&one, session), 0);
    ck_assert_uint_eq(resumes(&one, full(&one)), 1);
    end();
}
END_TEST

/* ---- Servers ---- */

static void set_ciphers(struct talk_server *server)
{
    server->profile.ciphers = "ECDHE+AESGCM";
}

static void set_certificate(struct talk_server *server)
{
    talk_pair(server, "rsa.pem", "rsa.key");
}

static void set_verification(struct talk_server *server)
{
    server->profile.verify = TLS_VERIFY_ON;
    server->profile.client_ca = talk_file(server, "ca.pem");
}

static void set_depth(struct talk_server *server)
{
    server->profile.verify_depth = 2;
}

static void set_command(struct talk_server *server)
{
    static struct tls_command command = { "Options", "PrioritizeChaCha" };

    server->profile.commands = &command;
    server->profile.command_n = 1;
}

static void (*const settings[])(struct talk_server *server) = { set_ciphers, set_certificate,
    set_verification, set_depth, set_command };
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

START_TEST(sessions_are_not_resumed_by_other_settings)
{
    begin(_i % VERSIONS);
    settings[_i / VERSIONS](&other);
    talk_start(&one);
    talk_start(&other);
    ck_assert_uint_eq(resumes(&other, full(&one)), 0);
    ck_assert_uint_eq(resumes(&one, full(&other)), 0);
    ck_assert_uint_eq(resumes(&other, full(&other)), 1);
    end();
}
END_TEST

/* A list of revoked certificates has other bytes under the same path, as after a reload. */
START_TEST(revoked_certificates_end_sessions)
{
    SSL_SESSION *session;
    bool changes = _i / VERSIONS == 1;

    begin(_i % VERSIONS);
    certificates_write_crl("crl.pem", &identities.ca, NULL);
    set_verification(&one);
    one.profile.crl = talk_file(&one, "crl.pem");
    talk_start(&one);
    session = full(&one);
    engine_openssl.destroy(one.engine);
    if (changes)
        certificates_write_crl("crl.pem", &identities.ca, identities.rsa.certificate);
    talk_start(&one);
    ck_assert_uint_eq(resumes(&one, session), !changes);
    end();
}
END_TEST

START_TEST(a_new_certificate_keeps_sessions)
{
    SSL_SESSION *session;
    struct identity renewed =
        certificates_make("ec.example", IDENTITY_EC, &identities.ca, 0, 400 * 86400L);

    begin(_i);
    certificates_write("new.pem", identities.ec.certificate, NULL);
    certificates_write_key("new.key", identities.ec.key, NULL);
    talk_pair(&one, "new.pem", "new.key");
    talk_start(&one);
    session = full(&one);
    engine_openssl.destroy(one.engine);
    certificates_write("new.pem", renewed.certificate, NULL);
    certificates_write_key("new.key", renewed.key, NULL);
    talk_start(&one);
    ck_assert_uint_eq(resumes(&one, session), 1);
    end();
    certificates_free(&renewed);
}
END_TEST

/* ---- Keys of files ---- */

/* Writes a file of n bytes that begin with `first`. */
static void write_key(const char *name, uint8_t first, size_t n)
{
    uint8_t bytes[128];
    char path[128];
    FILE *to;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(first + 3 * i);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(bytes, 1, n, to), n);
    ck_assert_int_eq(fclose(to), 0);
}

/* Gives the server keys of files, the first of which encrypts. */
static void use_keys(struct talk_server *server, uint32_t *indexes, const char *first, ...)
{
    va_list names;

    server->profile.ticket_keys = indexes;
    va_start(names, first);
    for (const char *name = first; name != NULL; name = va_arg(names, const char *))
        indexes[server->profile.ticket_key_n++] = talk_file(server, name);
    va_end(names);
}

static const size_t sizes[] = { 48, 80 };

START_TEST(keys_of_files_are_several_machines)
{
    uint32_t ours[2], theirs[2];
    SSL_SESSION *session;
    const uint8_t *ticket;
    unsigned resumed;

    begin(_i % VERSIONS);
    write_key("a", 'a', sizes[_i / VERSIONS]);
    write_key("b", 'b', sizes[1 - _i / VERSIONS]);
    one.ops.tickets = other.ops.tickets = NULL; /* two machines */
    use_keys(&one, ours, "a", "b", NULL);
    use_keys(&other, theirs, "b", "a", NULL);
    talk_start(&one);
    talk_start(&other);
    session = full(&one);
    ticket_of(session, &ticket);
    ck_assert_uint_eq(ticket[0], 'a');
    session = shake(&other, session, &resumed); /* by an older key: renewed */
    ck_assert_uint_eq(resumed, 1);
    ticket_of(session, &ticket);
    ck_assert_uint_eq(ticket[0], 'b');
    ck_assert_uint_eq(resumes(&one, session), 1);
    end();
}
END_TEST

/* The forms of nginx: name, HMAC's key and AES's in 80 bytes; name, AES's and HMAC's in 48. */
START_TEST(files_are_nginx_s)
{
    size_t size = (sizes[_i] - TICKET_NAME) / 2, n;
    SSL_SESSION *session;
    const uint8_t *ticket;
    uint8_t mac[32], bytes[80];
    uint32_t ours[1];

    begin(TLS_1_2_LOOP);
    write_key("a", 'a', sizes[_i]);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)('a' + 3 * i);
    use_keys(&one, ours, "a", NULL);
    talk_start(&one);
    session = full(&one);
    n = ticket_of(session, &ticket);
    ck_assert_mem_eq(ticket, bytes, TICKET_NAME);
    HMAC(EVP_sha256(), bytes + (size == 16 ? 32 : 16), (int)size, ticket, n - 32, mac, NULL);
    ck_assert_mem_eq(mac, ticket + n - 32, 32);
    SSL_SESSION_free(session);
    end();
}
END_TEST

START_TEST(a_file_of_another_size_is_refused)
{
    static const size_t wrong[] = { 0, 47, 49, 79, 81 };
    uint32_t ours[2];
    char expected[512];

    begin(TLS_1_3_LOOP);
    write_key("right", 'r', 48);
    write_key("wrong", 'w', wrong[_i]);
    use_keys(&one, ours, "right", "wrong", NULL);
    snprintf(expected, sizeof(expected),
        "t: [emerg] \"%s/wrong\" must be 48 or 80 bytes in test.conf:2\n", directory);
    ck_assert_str_eq(talk_mistakes(&one), expected);
    end();
}
END_TEST

START_TEST(a_missing_file_is_refused)
{
    uint32_t ours[1];
    char expected[512];

    begin(TLS_1_3_LOOP);
    use_keys(&one, ours, "none", NULL);
    snprintf(expected, sizeof(expected),
        "t: [emerg] cannot load ticket key \"%s/none\": open() failed (2: No such "
        "file or directory) in test.conf:2\n",
        directory);
    ck_assert_str_eq(talk_mistakes(&one), expected);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, engines_share_keys, 0, VERSIONS);
    tcase_add_loop_test(tcase, engines_without_memory_have_keys_of_their_own, 0, VERSIONS);
    tcase_add_loop_test(tcase, a_ticket_of_an_older_key_is_renewed, 0, VERSIONS);
    tcase_add_loop_test(tcase, damaged_memory_costs_sessions_alone, 0, VERSIONS);
    tcase_add_loop_test(tcase, sessions_are_not_resumed_by_other_settings, 0, SETTINGS * VERSIONS);
    tcase_add_loop_test(tcase, revoked_certificates_end_sessions, 0, 2 * VERSIONS);
    tcase_add_loop_test(tcase, a_new_certificate_keeps_sessions, 0, VERSIONS);
    tcase_add_loop_test(tcase, keys_of_files_are_several_machines, 0, 2 * VERSIONS);
    tcase_add_loop_test(tcase, files_are_nginx_s, 0, 2);
    tcase_add_loop_test(tcase, a_file_of_another_size_is_refused, 0, 5);
    tcase_add_test(tcase, a_missing_file_is_refused);
}

TEST_MAIN("tickets", add_tests)
