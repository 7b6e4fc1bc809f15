/* SPDX-License-Identifier: BSD-2-Clause */
/* The known checksums of CRC-32, of all bytes at once and byte by byte. */
#include "base/crc32.h"

#include "support/test.h"

#include <string.h>

static const struct {
    const char *text;
    uint32_t crc;
} known[] = {
    { "", 0 },
    { "a", 0xe8b7be43 },
    { "abc", 0x352441c2 },
    { "123456789", 0xcbf43926 },
    { "The quick brown fox jumps over the lazy dog", 0x414fa339 },
};

START_TEST(known_checksums)
{
    ck_assert_uint_eq(crc32_add(0, known[_i].text, strlen(known[_i].text)), known[_i].crc);
}
END_TEST

START_TEST(one_byte_after_the_other)
{
    uint32_t crc = 0;

    for (const char *p = known[_i].text; *p != '\0'; p++)
        crc = crc32_add(crc, p, 1);
    ck_assert_uint_eq(crc, known[_i].crc);
}
END_TEST

START_TEST(every_byte)
{
    uint8_t all[256];

    for (unsigned i = 0; i < sizeof(all); i++)
        all[i] = (uint8_t)i;
    ck_assert_uint_eq(crc32_add(0, all, sizeof(all)), 0x29058c73);
    ck_assert_uint_eq(crc32_add(crc32_add(0, all, 100), all + 100, sizeof(all) - 100), 0x29058c73);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, known_checksums, 0, (int)(sizeof(known) / sizeof(known[0])));
    tcase_add_loop_test(
        tcase, one_byte_after_the_other, 0, (int)(sizeof(known) / sizeof(known[0])));
    tcase_add_test(tcase, every_byte);
}

TEST_MAIN("crc32", add_tests)
