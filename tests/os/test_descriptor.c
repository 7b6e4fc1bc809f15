/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal inode numbers identify descriptors of a common file; 0 is none. */
#include "os/descriptor.h"

#include "support/test.h"

#include <unistd.h>

START_TEST(inodes_tell_files_apart)
{
    int ends[2], other[2], again;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(pipe(other), 0);
    again = dup(ends[0]);
    ck_assert_uint_ne(descriptor_inode(ends[0]), 0);
    ck_assert_uint_eq(descriptor_inode(ends[0]), descriptor_inode(again));
    ck_assert_uint_ne(descriptor_inode(ends[0]), descriptor_inode(other[0]));
    close(again);
    ck_assert_uint_eq(descriptor_inode(again), 0);
    ck_assert_uint_eq(descriptor_inode(-1), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, inodes_tell_files_apart);
}

TEST_MAIN("descriptor", add_tests)
