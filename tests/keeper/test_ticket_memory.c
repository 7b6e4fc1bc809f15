/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of the keys of tickets: shared by all keepers, of one size, and of one layout. */
#include "keeper/ticket_memory.h"
#include "support/test.h"
#include "tls/engine.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

START_TEST(keepers_share_memory)
{
    int fd = ticket_memory_create();
    char *one, *other;

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    one = ticket_memory_map(fd);
    other = ticket_memory_map(fd);
    ck_assert_ptr_nonnull(one);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_ne(one, other);
    close(fd);
    for (size_t i = 0; i < TLS_TICKETS_SIZE; i++)
        ck_assert_int_eq(other[i], 0);
    memset(one, 7, TLS_TICKETS_SIZE);
    ck_assert_mem_eq(one, other, TLS_TICKETS_SIZE);
    munmap(one, TLS_TICKETS_SIZE);
    munmap(other, TLS_TICKETS_SIZE);
}
END_TEST

START_TEST(another_binary_s_memory_has_to_fit)
{
    int fd = ticket_memory_create(), ends[2];

    ck_assert(ticket_memory_fits(fd, TLS_TICKETS_LAYOUT));
    ck_assert(!ticket_memory_fits(fd, TLS_TICKETS_LAYOUT + 1));
    close(fd);
    fd = memfd_create("unsealed", MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, TLS_TICKETS_SIZE), 0);
    ck_assert(ticket_memory_fits(fd, TLS_TICKETS_LAYOUT));
    ck_assert_int_eq(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    close(fd);
    fd = memfd_create("larger", MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, TLS_TICKETS_SIZE + 1), 0);
    ck_assert(!ticket_memory_fits(fd, TLS_TICKETS_LAYOUT));
    close(fd);
    fd = memfd_create("read-only", MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, TLS_TICKETS_SIZE), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    ck_assert(!ticket_memory_fits(fd, TLS_TICKETS_LAYOUT));
    ck_assert_ptr_null(ticket_memory_map(fd));
    close(fd);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!ticket_memory_fits(ends[0], TLS_TICKETS_LAYOUT));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, keepers_share_memory);
    tcase_add_test(tcase, another_binary_s_memory_has_to_fit);
}

TEST_MAIN("ticket_memory", add_tests)
