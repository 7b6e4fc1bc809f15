/* SPDX-License-Identifier: BSD-2-Clause */
/* The file protocol, from a client's side, in all ways of reading. */
#include "support/directory.h"
#include "support/test.h"

#include <fcntl.h>
#include <forkbeard/test.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const fb_protocol fb_protocol_file;

#define LARGE 400123 /* several pieces */
#define PIECE (32 * 1024)

static const char *const ways[] = { "", "aio threads;", "directio 1;", "aio threads; directio 1;",
    "aio on;", "aio on; directio 4k; directio_alignment 512;" };
static char path[200], server[512];
static uint8_t content[LARGE];

/* The path of a file in the directory, and a server of it. */
static const char *name_file(const char *name, int way)
{
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    snprintf(server, sizeof(server), "file %s; %s", path, ways[way]);
    return server;
}

static void write_file(const void *p, size_t n)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
    close(fd);
}

static void fill_content(unsigned seed)
{
    for (size_t i = 0; i < LARGE; i++)
        content[i] = (uint8_t)((i + seed) * 7 + i / 251);
}

static void finish(fb_test *test)
{
    ck_assert_int_eq(fb_test_end(&test), 0);
}

static void expect_content(fb_test_peer *peer)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_uint_eq(heard.n, LARGE);
    ck_assert_int_eq(memcmp(heard.p, content, LARGE), 0);
    ck_assert(fb_test_is_closed(peer) && !fb_test_was_reset(peer));
}

/* Runs the script with a file of a few words. */
static void converse_about_words(int i, const fb_test_step *script, size_t n)
{
    name_file("words", i);
    write_file("a few words\n", 12);
    ck_assert_int_eq(fb_test_converse(&fb_protocol_file, server, script, n), 0);
}

START_TEST(sends_the_content_and_closes)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT("a few words\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    converse_about_words(_i, FB_TEST_SCRIPT(script));
}
END_TEST

START_TEST(a_client_may_talk_and_end_its_half)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("GET / HTTP/1.0\r\n\r\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT("a few words\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    converse_about_words(_i, FB_TEST_SCRIPT(script));
}
END_TEST

START_TEST(an_empty_file_is_empty)
{
    static const fb_test_step script[] = { FB_TEST_EXPECT_CLOSED() };

    name_file("empty", _i);
    write_file("", 0);
    ck_assert_int_eq(fb_test_converse(&fb_protocol_file, server, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_large_one_waits_for_slow_clients)
{
    fb_test_peer *peers[3];
    fb_test *test;

    name_file("large", _i);
    fill_content(0);
    write_file(content, LARGE);
    test = fb_test_start(&fb_protocol_file, server);
    for (int i = 0; i < 3; i++) {
        peers[i] = fb_test_connect(test);
        fb_test_take(peers[i], 0);
    }
    fb_test_run(test);
    for (size_t n = 0; n < LARGE; n += 50000)
        for (int i = 0; i < 2; i++) {
            fb_test_take(peers[i], 50000);
            fb_test_run(test);
        }
    expect_content(peers[0]);
    expect_content(peers[1]);
    fb_test_reset(peers[2]); /* in the middle */
    finish(test);
}
END_TEST

START_TEST(a_client_gets_what_was_there_when_it_came)
{
    fb_test_peer *old, *new;
    fb_test *test;

    name_file("large", _i);
    fill_content(0);
    write_file(content, LARGE);
    test = fb_test_start(&fb_protocol_file, server);
    old = fb_test_connect(test);
    fb_test_take(old, 1000);
    fb_test_run(test);

    strcat(path, ".new");
    fill_content(1);
    write_file(content, LARGE);
    ck_assert_int_eq(rename(path, strcat(strcpy(server, directory), "/large")), 0);
    new = fb_test_connect(test);
    fb_test_take(old, SIZE_MAX);
    fb_test_run(test);
    expect_content(new);
    fill_content(0);
    expect_content(old);
    finish(test);
}
END_TEST

/* A file that is not there whole ends as a reset, with a line. */
static void expect_failure(const char *line)
{
    fb_test *test = fb_test_start(&fb_protocol_file, server);
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_run(test);
    ck_assert(fb_test_was_reset(peer));
    ck_assert_uint_eq(fb_test_heard(peer).n, 0);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), line));
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), ": [error] *1 "));
    finish(test);
}

START_TEST(what_is_no_file_is_reset)
{
    name_file("missing", _i);
    expect_failure("missing\" failed (2: No such file or directory), client: ");
    name_file("directory", _i);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_failure("directory\" failed (21: Is a directory), client: ");
    rmdir(path);
    name_file("fifo", _i);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_failure("fifo\" failed (22: Invalid argument), client: ");
    unlink(path);
}
END_TEST

START_TEST(a_file_that_becomes_shorter_is_reset)
{
    fb_test_peer *peer;
    fb_test *test;

    name_file("short", _i);
    fill_content(0);
    write_file(content, LARGE);
    test = fb_test_start(&fb_protocol_file, server);
    peer = fb_test_connect(test);
    fb_test_take(peer, 1000);
    fb_test_run(test);
    ck_assert_int_eq(truncate(path, LARGE - 1), 0);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(test);
    ck_assert_uint_lt(fb_test_heard(peer).n, LARGE);
    ck_assert(fb_test_was_reset(peer));
    finish(test);
}
END_TEST

/* A client that does not read gets only the held part of a file emptied meanwhile: a byte of a
 * piece in the page cache, and a piece beyond it. */
START_TEST(little_is_held_for_a_client_that_does_not_read)
{
    fb_test_peer *peer;
    fb_test *test;
    size_t most = strstr(ways[_i], "directio") != NULL ? PIECE : 1;

    name_file("large", _i);
    fill_content(0);
    write_file(content, LARGE);
    test = fb_test_start(&fb_protocol_file, server);
    peer = fb_test_connect(test);
    fb_test_take(peer, 0);
    fb_test_run(test);
    ck_assert_int_eq(truncate(path, 0), 0);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(test);
    ck_assert_uint_le(fb_test_heard(peer).n, most);
    ck_assert(fb_test_was_reset(peer));
    finish(test);
}
END_TEST

START_TEST(it_needs_a_path)
{
    ck_assert_ptr_null(fb_test_start(&fb_protocol_file, "file \"\";"));
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_loop_test(tcase, sends_the_content_and_closes, 0, WAYS);
    tcase_add_loop_test(tcase, a_client_may_talk_and_end_its_half, 0, WAYS);
    tcase_add_loop_test(tcase, an_empty_file_is_empty, 0, WAYS);
    tcase_add_loop_test(tcase, a_large_one_waits_for_slow_clients, 0, WAYS);
    tcase_add_loop_test(tcase, a_client_gets_what_was_there_when_it_came, 0, WAYS);
    tcase_add_loop_test(tcase, what_is_no_file_is_reset, 0, WAYS);
    tcase_add_loop_test(tcase, a_file_that_becomes_shorter_is_reset, 0, WAYS);
    tcase_add_loop_test(tcase, little_is_held_for_a_client_that_does_not_read, 0, WAYS);
    tcase_add_test(tcase, it_needs_a_path);
}

TEST_MAIN("file", add_tests)
