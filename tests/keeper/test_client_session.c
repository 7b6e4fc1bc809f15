/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions with servers of libssl, resumed by clients of two engines with common memory, as keepers
 * have. */
#include "call.h"
#include "keeper/session_table.h"

#include <string.h>

#define LOOP_VERSION (_i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION)
#define SERVER 77

static _Alignas(16) uint8_t memory[TLS_TICKETS_SIZE];
static struct talk_server one, other;
static SSL_CTX *server;

static void open_engine(struct talk_server *engine)
{
    call_open(engine);
    engine->ops.tickets = memory;
    engine->profile.verify = TLS_VERIFY_ON;
    engine->profile.trusted = talk_file(engine, "ca.pem");
}

static void open_engines(int version)
{
    memset(memory, 0, sizeof(memory));
    server = call_server(version, version);
    open_engine(&one);
    open_engine(&other);
}

static void close_engines(void)
{
    talk_close(&one);
    talk_close(&other);
    SSL_CTX_free(server);
}

static struct tls_start start_of(const char *name, uint64_t number)
{
    struct tls_start start = call_start(name);

    start.server = number;
    return start;
}

/* Shakes hands, takes the tickets, proves the keys, and copies the session; whether the session was
 * resumed. */
static bool resumes(
    struct talk_server *engine, const char *name, uint64_t number, struct tls_session *session)
{
    const struct tls_start start = start_of(name, number);
    struct call call;

    call_through(&call, engine, server, &start);
    ck_assert_int_eq(call.reply.session.resumed, SSL_session_reused(call.server));
    ck_assert_uint_gt(call.reply.peer_n, 0);
    if (call.reply.session.version == TLS_1_3 && number != 0 && engine->profile.tickets)
        call_tickets(&call);
    else
        ck_assert_uint_eq(call.reply.session.awaits_tickets, 0);
    call_prove(&call);
    *session = call.reply.session;
    call_end(&call);
    return session->resumed == 1;
}

/* Returns the end of the only session's life; 0: there is no session. */
static uint64_t only_end(void)
{
    uint64_t header[8], end = 0;

    for (size_t at = 4096; at < sizeof(memory); at += 8192) {
        memcpy(header, memory + at, sizeof(header));
        if (header[7] == 0)
            continue;
        ck_assert_uint_eq(end, 0);
        end = header[6];
    }
    return end;
}

START_TEST(keepers_share_sessions)
{
    static const struct {
        const char *trusted, *name;
        enum tls_verified verify;
    } cases[] = {
        { "ca.pem", "ec.example", TLS_VERIFIED },
        { "ca.pem", "b.example", TLS_VERIFIED_OTHER },
        { "rsa.pem", "ec.example", TLS_VERIFY_FAILED },
    };
    const char *name = cases[_i / 2].name;
    struct tls_session first, next;
    uint64_t end;

    open_engines(LOOP_VERSION);
    one.profile.trusted = talk_file(&one, cases[_i / 2].trusted);
    other.profile.trusted = talk_file(&other, cases[_i / 2].trusted);
    talk_start(&one);
    talk_start(&other);
    ck_assert(!resumes(&one, name, SERVER, &first));
    end = only_end();
    for (int i = 0; i < 3; i++) {
        ck_assert(resumes(i % 2 == 0 ? &other : &one, name, SERVER, &next));
        ck_assert_int_eq(next.verify, cases[_i / 2].verify);
        ck_assert_int_eq(next.verify, first.verify);
        ck_assert_int_eq(next.verify_code, first.verify_code);
    }
    ck_assert_uint_eq(only_end(), end); /* a session resumed does not live longer */
    close_engines();
}
END_TEST

START_TEST(sessions_are_for_their_server_and_profile)
{
    struct tls_session session;

    open_engines(LOOP_VERSION);
    other.profile.trusted = talk_file(&other, "rsa.pem");
    talk_start(&one);
    talk_start(&other);
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    ck_assert(!resumes(&one, "ec.example", SERVER + 1, &session));
    ck_assert(!resumes(&one, "b.example", SERVER, &session));
    ck_assert(!resumes(&one, "ec.example", 0, &session));
    ck_assert(!resumes(&one, "ec.example", 0, &session));
    ck_assert(!resumes(&other, "ec.example", SERVER, &session));
    ck_assert(resumes(&one, "ec.example", SERVER, &session));
    close_engines();
}
END_TEST

START_TEST(a_profile_may_resume_none)
{
    struct tls_session session;

    open_engines(LOOP_VERSION);
    one.profile.tickets = false;
    talk_start(&one);
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    ck_assert_uint_eq(only_end(), 0);
    close_engines();
}
END_TEST

START_TEST(a_server_without_tickets_has_identifiers)
{
    struct tls_session session;

    open_engines(TLS1_2_VERSION);
    SSL_CTX_set_options(server, SSL_OP_NO_TICKET);
    talk_start(&one);
    talk_start(&other);
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    ck_assert(resumes(&other, "ec.example", SERVER, &session));
    ck_assert_uint_gt(session.session_id_n, 0);
    close_engines();
}
END_TEST

START_TEST(damage_costs_sessions_alone)
{
    struct tls_session session;

    open_engines(LOOP_VERSION);
    talk_start(&one);
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    for (size_t i = 4096; i < sizeof(memory); i++)
        if (memory[i] != 0)
            memory[i] ^= 0x80;
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    ck_assert(resumes(&one, "ec.example", SERVER, &session));
    close_engines();
}
END_TEST

START_TEST(a_failed_handshake_costs_its_session)
{
    const struct tls_start start = start_of("ec.example", SERVER);
    struct tls_session session;
    struct call call;

    open_engines(LOOP_VERSION);
    talk_start(&one);
    ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    call_begin(&call, &one, server, &start);
    BIO_write(call.to_client, "\x15\x03\x03\0\2\2\x28", 7);
    call_run(&call);
    ck_assert_int_eq(call.step, TLS_FAILED);
    call_end(&call);
    ck_assert_uint_eq(only_end(), 0);
    close_engines();
}
END_TEST

/* Another keeper has kept a session since the handshake began, with a session or without. */
START_TEST(a_failed_handshake_costs_no_newer_session)
{
    const struct tls_start start = start_of("ec.example", SERVER);
    struct tls_session session;
    struct call call;

    open_engines(LOOP_VERSION);
    talk_start(&one);
    talk_start(&other);
    if (_i / 2 == 0)
        ck_assert(!resumes(&one, "ec.example", SERVER, &session));
    call_begin(&call, &one, server, &start);
    ck_assert(resumes(&other, "ec.example", SERVER, &session) == (_i / 2 == 0));
    if (_i == 0) { /* with TLS 1.2 a server gives no new session to a client that resumes */
        memset(memory + 4096, 0, sizeof(memory) - 4096);
        ck_assert(!resumes(&other, "ec.example", SERVER, &session));
    }
    BIO_write(call.to_client, "\x15\x03\x03\0\2\2\x28", 7);
    call_run(&call);
    ck_assert_int_eq(call.step, TLS_FAILED);
    call_end(&call);
    ck_assert(resumes(&other, "ec.example", SERVER, &session));
    close_engines();
}
END_TEST

/* Data and garbage end the waiting; more or less than a record is no harm. */
START_TEST(a_worker_may_hand_over_anything)
{
    const struct tls_start start = start_of("ec.example", SERVER);
    uint8_t record[TLS_HEADER + TLS_SEALED_MOST];
    struct call call;
    size_t n;

    open_engines(TLS1_3_VERSION);
    talk_start(&one);
    call_through(&call, &one, server, &start);
    switch (_i) {
    case 0: /* data */
        call_tickets(&call);
        ck_assert_int_eq(SSL_write(call.server, "data", 4), 4);
        n = call_record(&call, record);
        break;
    case 1: /* a record out of order */
        ck_assert_uint_gt(call_record(&call, record), 0);
        n = call_record(&call, record);
        break;
    case 2: /* a KeyUpdate that wants an answer */
        call_tickets(&call);
        SSL_key_update(call.server, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(call.server);
        n = call_record(&call, record);
        break;
    case 3: /* two records */
        n = call_record(&call, record);
        n += call_record(&call, record + n);
        break;
    case 4: /* part of a record */
        n = call_record(&call, record) - 1;
        break;
    default:
        n = 10;
        memset(record, 'x', n);
    }
    ck_assert(
        engine_openssl.ticket(call.handshake, (fb_bytes) { record, n }) == (_i >= 2 && _i <= 4));
    call_end(&call);
    close_engines();
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, keepers_share_sessions, 0, 6);
    tcase_add_loop_test(tcase, sessions_are_for_their_server_and_profile, 0, 2);
    tcase_add_loop_test(tcase, a_profile_may_resume_none, 0, 2);
    tcase_add_test(tcase, a_server_without_tickets_has_identifiers);
    tcase_add_loop_test(tcase, damage_costs_sessions_alone, 0, 2);
    tcase_add_loop_test(tcase, a_failed_handshake_costs_its_session, 0, 2);
    tcase_add_loop_test(tcase, a_failed_handshake_costs_no_newer_session, 0, 4);
    tcase_add_loop_test(tcase, a_worker_may_hand_over_anything, 0, 6);
}

TEST_MAIN("client_session", add_tests)
