/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel AIO on a loop of each mechanism, with real files. A build without AIO logs the lack. */
#include "contract/contract.h"
#include "event/file_aio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096
#define BLOCKS 200 /* more than one system call tells of */

static struct fixture *fixture;
static struct file_aio_request requests[BLOCKS];
static unsigned ended_n;
static char *memory;
static int fd;

static void note_ended(struct loop *loop, struct file_aio_request *request)
{
    ck_assert_ptr_eq(loop, fixture->loop);
    ck_assert(request >= requests && request < requests + BLOCKS);
    ended_n++;
}

/* Makes an unnamed file with blocks of the letters in turn, and opens the file for direct I/O. */
static void open_blocks(void)
{
    const char *directory = getenv("TMPDIR");
    char path[200];

    snprintf(path, sizeof(path), "%s/fb_test.XXXXXX", directory != NULL ? directory : "/tmp");
    ck_assert_int_eq(posix_memalign((void **)&memory, BLOCK, BLOCKS * BLOCK), 0);
    for (int i = 0; i < BLOCKS; i++)
        memset(memory + (size_t)i * BLOCK, 'a' + i % 26, BLOCK);
    fd = mkstemp(path);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, memory, BLOCKS * BLOCK), BLOCKS * BLOCK);
    close(fd);
    memset(memory, 0, BLOCKS * BLOCK);
    fd = open(path, O_RDONLY | O_DIRECT);
    unlink(path);
    ck_assert_int_ne(fd, -1);
}

static void close_blocks(void)
{
    close(fd);
    free(memory);
}

static struct file_aio_request *prepare(unsigned i)
{
    requests[i] = (struct file_aio_request) {
        .fd = fd,
        .p = memory + (size_t)i * BLOCK,
        .n = BLOCK,
        .offset = (uint64_t)i * BLOCK,
    };
    return &requests[i];
}

/* Opens a context; false where the build or the kernel has none. */
static bool open_aio(int i, unsigned most)
{
    fixture = contract_start(i, 1);
    ended_n = 0;
    if (file_aio_open(fixture->loop, most, note_ended) == 0)
        return true;
    ck_assert(!file_aio_built() || errno == EAGAIN); /* others have taken aio-max-nr */
    fixture_stop(fixture);
    return false;
}

START_TEST(reads_are_told_by_the_loop)
{
    if (!open_aio(_i, BLOCKS))
        return;
    open_blocks();
    for (unsigned i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(file_aio_submit(fixture->loop, prepare(i)), 0);
    ck_assert_uint_eq(ended_n, 0);
    turn_until(fixture, ended_n == BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
        ck_assert_int_eq(requests[i].result, BLOCK);
        ck_assert_int_eq(memory[(size_t)i * BLOCK], 'a' + i % 26);
        ck_assert_int_eq(memory[(size_t)i * BLOCK + BLOCK - 1], 'a' + i % 26);
    }
    turn_until_quiet(fixture); /* the kernel tells of a read after its end can be seen */
    check_quiet(fixture);
    file_aio_close(fixture->loop);
    close_blocks();
    fixture_stop(fixture);
}
END_TEST

START_TEST(too_many_are_refused)
{
    unsigned taken = 0;

    if (!open_aio(_i, 1))
        return;
    open_blocks();
    while (taken < BLOCKS && file_aio_submit(fixture->loop, prepare(taken)) == 0)
        taken++;
    if (taken < BLOCKS)
        ck_assert_int_eq(errno, EAGAIN);
    turn_until(fixture, ended_n == taken);
    file_aio_close(fixture->loop);
    close_blocks();
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_end_of_a_file_and_mistakes)
{
    if (!open_aio(_i, 4))
        return;
    open_blocks();
    ck_assert_int_eq(ftruncate(fd, 0), -1); /* opened to read */
    prepare(0)->offset = (uint64_t)BLOCKS * BLOCK;
    ck_assert_int_eq(file_aio_submit(fixture->loop, &requests[0]), 0);
    turn_until(fixture, ended_n == 1);
    ck_assert_int_eq(requests[0].result, 0);
    prepare(1)->fd = 1000;
    ck_assert_int_eq(file_aio_submit(fixture->loop, &requests[1]), -1);
    ck_assert_int_eq(errno, EBADF);
    file_aio_close(fixture->loop);
    close_blocks();
    fixture_stop(fixture);
}
END_TEST

/* The memory is the test's again then: a sanitizer would see a late write. */
START_TEST(closing_waits_for_what_is_under_way)
{
    if (!open_aio(_i, BLOCKS))
        return;
    open_blocks();
    for (unsigned i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(file_aio_submit(fixture->loop, prepare(i)), 0);
    file_aio_close(fixture->loop);
    ck_assert_uint_eq(ended_n, 0);
    for (int i = 0; i < BLOCKS; i++)
        ck_assert(memory[(size_t)i * BLOCK] == 'a' + i % 26 || memory[(size_t)i * BLOCK] == 0);
    close_blocks();
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_loop_without_one)
{
    fixture = contract_start(_i, 1);
    file_aio_close(fixture->loop);
    if (!file_aio_built())
        ck_assert_int_eq(file_aio_submit(fixture->loop, &requests[0]), -1);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_real_test(tcase, reads_are_told_by_the_loop, from, to);
    tcase_add_real_test(tcase, too_many_are_refused, from, to);
    tcase_add_real_test(tcase, the_end_of_a_file_and_mistakes, from, to);
    tcase_add_real_test(tcase, closing_waits_for_what_is_under_way, from, to);
    tcase_add_real_test(tcase, a_loop_without_one, from, to);
}

CONTRACT_MAIN("file_aio", add_tests)
