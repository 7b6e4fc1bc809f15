/* SPDX-License-Identifier: BSD-2-Clause */
/* Key logs: both ends of a handshake have the same lines, and profiles without a log write none. */
#include "support/directory.h"
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOP_VERSION (_i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION)
#define LINES_MOST 16

/* The lines of the client. */
static struct {
    char list[LINES_MOST][512];
    unsigned n;
} noted;

static uint32_t key_log;

static void note_line(const SSL *ssl, const char *line)
{
    (void)ssl;
    ck_assert_uint_lt(noted.n, LINES_MOST);
    snprintf(noted.list[noted.n++], sizeof(noted.list[0]), "%s\n", line);
}

static void open_logging(struct talk_server *server)
{
    noted.n = 0;
    talk_open(server);
    talk_pair(server, "ec.pem", "ec.key");
    key_log = talk_file(server, "keys.log");
    server->files[key_log].appends = true;
    server->profile.key_log = &key_log;
}

/* Returns the number of lines of the log, which must be lines of the client. */
static unsigned read_log(const struct talk_server *server)
{
    FILE *from = fopen(server->paths[key_log], "r");
    char line[512];
    unsigned n = 0;

    ck_assert_ptr_nonnull(from);
    for (; fgets(line, sizeof(line), from) != NULL; n++) {
        unsigned i = 0;

        while (i < noted.n && strcmp(noted.list[i], line) != 0)
            i++;
        ck_assert_msg(i < noted.n, "not a line of the client: %s", line);
    }
    fclose(from);
    return n;
}

static void shake_hands(struct talk_server *server, int version)
{
    SSL_CTX *client = talk_client(version, version);
    struct talk talk;

    SSL_CTX_set_keylog_callback(client, note_line);
    talk_through(&talk, server, client);
    SSL_CTX_free(client);
}

START_TEST(both_ends_have_the_same_lines)
{
    struct talk_server server;

    noted.n = 0;
    open_logging(&server);
    talk_start(&server);
    shake_hands(&server, LOOP_VERSION);
    ck_assert_uint_gt(noted.n, LOOP_VERSION == TLS1_3_VERSION ? 4 : 0);
    ck_assert_uint_eq(read_log(&server), noted.n);
    shake_hands(&server, LOOP_VERSION); /* appends */
    ck_assert_uint_eq(read_log(&server), noted.n);
    /* a refreshed profile has the log still */
    certificates_write("ec.pem", identities.ec.certificate, NULL);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "was replaced"));
    shake_hands(&server, LOOP_VERSION);
    ck_assert_uint_eq(read_log(&server), noted.n);
    talk_close(&server);
    certificates_write("ec.pem", identities.ec.certificate, identities.ca.certificate, NULL);
    ck_assert_int_eq(unlink(server.paths[key_log]), 0);
}
END_TEST

START_TEST(without_a_log_nothing_is_written)
{
    struct talk_server server;

    open_logging(&server);
    server.profile.key_log = NULL;
    talk_start(&server);
    shake_hands(&server, LOOP_VERSION);
    ck_assert_int_eq(access(server.paths[key_log], F_OK), -1);
    talk_close(&server);
}
END_TEST

/* Profiles with the same settings share a context of libssl, but not a log. */
START_TEST(a_log_is_of_its_profile_alone)
{
    struct talk_server server;
    struct tls_profile both[2];

    noted.n = 0;
    open_logging(&server);
    both[0] = both[1] = server.profile;
    both[_i].key_log = NULL;
    both[1].index = 1;
    server.profiles.list = both;
    server.profiles.n = 2;
    talk_start(&server);
    shake_hands(&server, TLS1_3_VERSION); /* with the first */
    ck_assert_uint_eq(read_log(&server), _i == 0 ? 0 : noted.n);
    talk_close(&server);
    ck_assert_int_eq(unlink(server.paths[key_log]), 0);
}
END_TEST

START_TEST(a_log_that_cannot_be_opened_is_a_mistake)
{
    struct talk_server server;
    char path[256];

    snprintf(path, sizeof(path), "%s/keys.log", directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    open_logging(&server);
    ck_assert_ptr_nonnull(strstr(talk_mistakes(&server), "t: [emerg] cannot open key log \""));
    talk_close(&server);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(a_full_disk_is_told_once)
{
    struct talk_server server;

    noted.n = 0;
    open_logging(&server);
    snprintf(server.paths[key_log], sizeof(server.paths[key_log]), "/dev/full");
    talk_start(&server);
    shake_hands(&server, TLS1_3_VERSION);
    ck_assert_str_eq(memory_log_take(&server.log),
        "t: [alert] keys of sessions cannot be written to \"/dev/full\" (28: No space left on "
        "device)\n");
    talk_close(&server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, both_ends_have_the_same_lines, 0, 2);
    tcase_add_loop_test(tcase, without_a_log_nothing_is_written, 0, 2);
    tcase_add_loop_test(tcase, a_log_is_of_its_profile_alone, 0, 2);
    tcase_add_test(tcase, a_log_that_cannot_be_opened_is_a_mistake);
    tcase_add_test(tcase, a_full_disk_is_told_once);
}

TEST_MAIN("key_log", add_tests)
