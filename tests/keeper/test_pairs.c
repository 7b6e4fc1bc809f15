/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs that are parsed when they are needed: handshakes that wait for files, engines that share
 * records, records over a reload, and the trial of all pairs. */
#include "keeper/pair_store.h"
#include "support/directory.h"
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400
#define NOTHING UINT32_MAX

static struct identity first, second;
static SSL_CTX *client;
static struct tls_memory memory;
static uint32_t wanted; /* the file that an engine has asked for, or NOTHING */

static void want_file(struct tls_files *files, uint32_t index)
{
    (void)files;
    ck_assert_uint_eq(wanted, NOTHING); /* a file at a time */
    wanted = index;
}

/* Opens the file that an engine has asked for; -1 with errno. */
static int open_wanted(const struct talk_server *server)
{
    uint32_t index = wanted;

    ck_assert_uint_ne(index, NOTHING);
    wanted = NOTHING;
    return open(server->paths[index], O_RDONLY | O_CLOEXEC);
}

static void give_file(struct talk_server *server)
{
    int fd = open_wanted(server);

    engine_openssl.opened(server->engine, fd, fd == -1 ? errno : 0);
}

/* Gives files until the engine wants no more; how many. */
static unsigned give_files(struct talk_server *server)
{
    unsigned n = 0;

    for (; wanted != NOTHING; n++)
        give_file(server);
    return n;
}

static void write_pair(const struct identity *identity)
{
    certificates_write("it.pem", identity->certificate, NULL);
    certificates_write_key("it.key", identity->key, NULL);
}

static void prepare(void)
{
    first = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 90 * DAY);
    second = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 91 * DAY);
    write_pair(&first);
    client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);
    ck_assert_int_eq(pair_memory_reserve(&memory, 4), 0);
    wanted = NOTHING;
}

static void finish(void)
{
    pair_memory_release(&memory);
    SSL_CTX_free(client);
    certificates_free(&first);
    certificates_free(&second);
}

/* An engine as a keeper's, with the pair "it" in shared records. */
static void open_keeper(struct talk_server *server, bool is_first)
{
    talk_open(server);
    talk_pair(server, "it.pem", "it.key");
    server->ops.want = want_file;
    server->ops.pairs = memory;
    server->ops.quiet = !is_first;
    server->ops.tried = 0;
}

static void start_keeper(struct talk_server *server, bool is_first)
{
    open_keeper(server, is_first);
    talk_start(server);
}

/* Begins a handshake; whether it waits for a file. */
static bool begin(struct talk *talk, struct talk_server *server)
{
    talk_begin(talk, server, client);
    talk_run(talk);
    return talk->step == TLS_LATER;
}

/* Goes on with a waiting handshake; whether the wait goes on. */
static bool go_on(struct talk *talk)
{
    ck_assert_int_eq(talk->step, TLS_LATER);
    talk->step = TLS_MORE;
    talk_run(talk);
    return talk->step == TLS_LATER;
}

static void end_with(struct talk *talk, const struct identity *identity)
{
    ck_assert_msg(talk->step == TLS_DONE, "%s", talk->reply.text);
    ck_assert_int_eq(X509_cmp(SSL_get0_peer_certificate(talk->client), identity->certificate), 0);
    talk_prove(talk);
    talk_end(talk);
}

static void serves(struct talk_server *server, const struct identity *identity)
{
    struct talk talk;

    ck_assert(!begin(&talk, server));
    end_with(&talk, identity);
}

static void fails(struct talk_server *server)
{
    struct talk talk;

    ck_assert(!begin(&talk, server));
    ck_assert_int_eq(talk.step, TLS_FAILED);
    ck_assert_str_eq(talk.reply.text, "no certificate of the server could be loaded");
    ck_assert_uint_eq(talk.reply.out_n, 7);
    talk_end(&talk);
}

START_TEST(a_handshake_waits_for_the_files_of_its_pair)
{
    struct talk_server server;
    struct talk talks[2];

    prepare();
    start_keeper(&server, _i == 0);
    ck_assert(begin(&talks[0], &server));
    ck_assert_uint_eq(wanted, 0);
    ck_assert(begin(&talks[1], &server));
    give_file(&server);
    ck_assert_uint_eq(wanted, 1);
    ck_assert(go_on(&talks[0]));
    give_file(&server);
    ck_assert_uint_eq(wanted, NOTHING);
    ck_assert(!go_on(&talks[1]));
    end_with(&talks[1], &first);
    ck_assert(!go_on(&talks[0]));
    end_with(&talks[0], &first);
    serves(&server, &first); /* parsed by now */
    ck_assert_uint_eq(wanted, NOTHING);
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(an_engine_may_end_while_a_file_is_awaited)
{
    struct talk_server server;
    struct talk talk;

    prepare();
    start_keeper(&server, true);
    ck_assert(begin(&talk, &server));
    give_file(&server);
    talk_end(&talk);
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(a_bad_pair_fails_its_handshakes_until_it_is_mended)
{
    struct talk_server server;
    struct talk talk;
    const char *text;

    prepare();
    certificates_write_key("it.key", second.key, NULL);
    start_keeper(&server, true);
    ck_assert(begin(&talk, &server));
    give_files(&server);
    ck_assert(!go_on(&talk));
    ck_assert_int_eq(talk.step, TLS_FAILED);
    talk_end(&talk);
    text = memory_log_take(&server.log);
    ck_assert_ptr_nonnull(strstr(text, "t: [error] cannot load certificate key \""));
    ck_assert_ptr_nonnull(strstr(text, "; until the file changes nothing is served with it\n"));
    fails(&server);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_uint_eq(give_files(&server), 2);
    ck_assert_str_eq(memory_log_take(&server.log), ""); /* told once */
    fails(&server);
    certificates_write_key("it.key", first.key, NULL);
    engine_openssl.refresh(server.engine, &server.log.log);
    give_files(&server);
    serves(&server, &first);
    ck_assert_uint_eq(wanted, NOTHING);
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(another_pair_of_the_server_goes_on)
{
    struct talk_server server;
    struct talk talk;

    prepare();
    open_keeper(&server, true);
    talk_pair(&server, "none.pem", "rsa.key");
    talk_start(&server);
    ck_assert(begin(&talk, &server));
    while (talk.step == TLS_LATER) {
        give_file(&server);
        go_on(&talk);
    }
    end_with(&talk, &first);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "none.pem\": open() failed (2: No"));
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(one_engine_reads_for_all)
{
    struct talk_server writer, reader;
    const char *text;

    prepare();
    open_keeper(&writer, true);
    writer.ops.tried = 1; /* the trial of a start */
    talk_start(&writer);
    start_keeper(&reader, false);
    serves(&reader, &first);
    write_pair(&second);
    engine_openssl.refresh(reader.engine, &reader.log.log);
    ck_assert_uint_eq(wanted, NOTHING);
    serves(&reader, &first);
    engine_openssl.refresh(writer.engine, &writer.log.log);
    ck_assert_uint_eq(give_files(&writer), 2);
    text = memory_log_take(&writer.log);
    ck_assert_ptr_nonnull(strstr(text, "it.pem\" was replaced, valid until 20"));
    serves(&reader, &second);
    serves(&writer, &second);
    /* the records outlive the engine */
    engine_openssl.destroy(writer.engine);
    ck_assert_int_eq(unlink(writer.paths[1]), 0);
    talk_start(&writer);
    serves(&writer, &second);
    ck_assert_ptr_nonnull(strstr(
        memory_log_take(&writer.log), "it.key\": open() failed (2: No such file or directory)"));
    ck_assert_uint_eq(wanted, NOTHING);
    ck_assert_str_eq(memory_log_take(&reader.log), "");
    talk_close(&reader);
    talk_close(&writer);
    finish();
}
END_TEST

/* An engine that has opened the old files, when the engine that writes reads new ones, serves the
 * new pair. */
START_TEST(a_pair_read_late_is_not_the_newer_one)
{
    struct talk_server writer, reader;
    struct talk talk;
    int key;

    prepare();
    start_keeper(&writer, true);
    start_keeper(&reader, false);
    ck_assert(begin(&talk, &reader));
    give_file(&reader);
    key = open_wanted(&reader);
    ck_assert_int_eq(unlink(reader.paths[0]), 0);
    ck_assert_int_eq(unlink(reader.paths[1]), 0);
    write_pair(&second);
    engine_openssl.refresh(writer.engine, &writer.log.log);
    ck_assert_uint_eq(give_files(&writer), 2);
    engine_openssl.opened(reader.engine, key, 0);
    ck_assert(!go_on(&talk));
    end_with(&talk, &second);
    serves(&reader, &second);
    memory_log_take(&reader.log);
    talk_close(&reader);
    talk_close(&writer);
    finish();
}
END_TEST

START_TEST(a_reload_does_not_take_a_bad_pair)
{
    struct talk_server before, after;
    struct tls_memory former;

    prepare();
    open_keeper(&before, true);
    before.ops.tried = 1;
    talk_start(&before);
    former = memory;
    ck_assert_int_eq(pair_memory_reserve(&memory, 4), 0);
    certificates_write_key("it.key", second.key, NULL);
    talk_open(&after);
    talk_pair(&after, "ec.pem", "ec.key"); /* the pair has another number now */
    talk_pair(&after, "it.pem", "it.key");
    after.profile.pairs = &after.pairs[1];
    after.profile.pair_n = 1;
    after.ops = before.ops;
    after.ops.profiles = &after.profiles;
    after.ops.pairs = memory;
    after.ops.former_pairs = former;
    talk_start(&after);
    ck_assert_ptr_nonnull(
        strstr(memory_log_take(&after.log), "; what was loaded before is used\n"));
    talk_close(&before);
    pair_memory_release(&former);
    serves(&after, &first);
    write_pair(&second);
    engine_openssl.refresh(after.engine, &after.log.log);
    give_files(&after);
    serves(&after, &second);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&after.log), "it.pem\" was replaced, valid "));
    talk_close(&after);
    finish();
}
END_TEST

START_TEST(all_pairs_are_tried_once)
{
    struct talk_server server;
    struct tls_profile profiles[2];
    struct talk talk;
    const char *text;

    prepare();
    open_keeper(&server, true);
    talk_pair(&server, "none.pem", "ec.key");
    talk_pair(&server, "rsa.pem", "rsa.key");
    profiles[0] = profiles[1] = server.profile; /* of equal pairs */
    profiles[1].index = 1;
    server.profiles.list = profiles;
    server.profiles.n = 2;
    talk_start(&server);
    engine_openssl.refresh(server.engine, &server.log.log);
    give_file(&server);
    ck_assert_uint_eq(wanted, 1);
    engine_openssl.refresh(server.engine, &server.log.log); /* begins anew at the end */
    ck_assert_uint_eq(give_files(&server), 5 + 6);
    text = memory_log_take(&server.log);
    ck_assert_ptr_nonnull(strstr(text, "none.pem\": open() failed (2: No such file"));
    ck_assert_ptr_eq(strchr(text, '\n')[1] == '\0' ? text : NULL, text);
    /* a handshake's pair comes before the rest */
    engine_openssl.destroy(server.engine);
    memset(memory.p, 0, memory.size);
    talk_start(&server);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_uint_eq(wanted, 0);
    server.profiles.list[0].pairs = &server.pairs[2];
    server.profiles.list[0].pair_n = 1;
    ck_assert(begin(&talk, &server));
    give_file(&server);
    give_file(&server);
    ck_assert_uint_eq(wanted, 4);
    give_files(&server);
    ck_assert(!go_on(&talk));
    end_with(&talk, &identities.rsa);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "none.pem\": open() failed (2: No"));
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(what_is_known_is_reported)
{
    struct talk_server server;
    char expected[256], *text;
    uint32_t file;
    size_t n;

    prepare();
    open_keeper(&server, true);
    talk_pair(&server, "none.pem", "ec.key");
    talk_pair(&server, "rsa.pem", "rsa.key");
    server.ops.tried = 2;
    talk_start(&server);
    memory_log_take(&server.log);
    ck_assert_int_gt(engine_openssl.first_end(server.engine, &file), (int64_t)time(NULL));
    ck_assert_uint_eq(file, 0);
    text = engine_openssl.report(server.engine, &n);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(text), n);
    ck_assert_ptr_nonnull(
        strstr(text, "{\"certificate\":0,\"key\":1,\"names\":\"it.example\",\"not_after\":1"));
    snprintf(expected, sizeof(expected),
        "\"error\":\"cannot load certificate \\\"%s/none.pem\\\": open() failed (2: ", directory);
    ck_assert_ptr_nonnull(strstr(text, "{\"certificate\":2,\"key\":3,\"refused\":1"));
    ck_assert_ptr_nonnull(strstr(text, expected));
    ck_assert_ptr_nonnull(strstr(text, "{\"certificate\":4,\"key\":5}],\"left_out\":0}"));
    free(text);
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(encrypted_keys_are_shared_decrypted)
{
    struct talk_server server;
    FILE *to;
    char path[256];

    prepare();
    certificates_write_key("it.key", first.key, "secret");
    snprintf(path, sizeof(path), "%s/passwords", directory);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    fputs("secret\n", to);
    ck_assert_int_eq(fclose(to), 0);
    open_keeper(&server, true);
    server.profile.passwords = talk_file(&server, "passwords");
    talk_start(&server);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_uint_eq(give_files(&server), 3);
    serves(&server, &first);
    ck_assert_uint_eq(wanted, NOTHING);
    talk_close(&server);
    finish();
}
END_TEST

START_TEST(a_full_store_is_done_without)
{
    struct talk_server server, other;
    size_t size;
    struct talk talk;

    prepare();
    size = memory.size;
    memory.size = 256; /* the slots and nothing else */
    start_keeper(&server, true);
    engine_openssl.refresh(server.engine, &server.log.log);
    give_files(&server);
    for (int i = 0; i < 2; i++) {
        struct talk_server *one = i == 0 ? &server : &other;

        if (i == 1)
            start_keeper(one, false);
        ck_assert(begin(&talk, one));
        give_files(one);
        ck_assert(!go_on(&talk));
        end_with(&talk, &first);
        serves(one, &first);
    }
    /* a change is seen by both engines, by reading of their own */
    write_pair(&second);
    engine_openssl.refresh(server.engine, &server.log.log);
    give_files(&server);
    serves(&server, &second);
    ck_assert(begin(&talk, &other));
    give_files(&other);
    ck_assert(!go_on(&talk));
    end_with(&talk, &second);
    talk_close(&other);
    talk_close(&server);
    memory.size = size;
    finish();
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, a_handshake_waits_for_the_files_of_its_pair, 0, 2);
    tcase_add_test(tcase, an_engine_may_end_while_a_file_is_awaited);
    tcase_add_test(tcase, a_bad_pair_fails_its_handshakes_until_it_is_mended);
    tcase_add_test(tcase, another_pair_of_the_server_goes_on);
    tcase_add_test(tcase, one_engine_reads_for_all);
    tcase_add_test(tcase, a_pair_read_late_is_not_the_newer_one);
    tcase_add_test(tcase, a_reload_does_not_take_a_bad_pair);
    tcase_add_test(tcase, all_pairs_are_tried_once);
    tcase_add_test(tcase, what_is_known_is_reported);
    tcase_add_test(tcase, encrypted_keys_are_shared_decrypted);
    tcase_add_test(tcase, a_full_store_is_done_without);
}

TEST_MAIN("pairs", add_tests)
