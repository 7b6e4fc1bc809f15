/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers as servers of names send them, read byte by byte; the times to live above all. What is
 * malformed is with the fuzzer's corpus. */
#include "names/message.h"
#include "support/test.h"

#include <string.h>

static struct message message;

/* The head of an answer to "a.test", of so many records, and a question of this type. */
#define HEAD(records, type)                                                                        \
    "\0\7\x81\x80\0\1\0" records "\0\0\0\0"                                                        \
    "\1a\4test\0\0" type "\0\1"
#define ASKED "\xc0\x0c"

static enum message_status read_text(const char *text, size_t n, uint16_t type)
{
    memset(&message, 0xaa, sizeof(message));
    return message_read((const uint8_t *)text, n, type, &message);
}

#define READ(text, type) read_text(text, sizeof(text) - 1, type)

START_TEST(times_to_live)
{
    static const char two[] = HEAD("\2", "\1") ASKED "\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4" ASKED
                                                     "\0\1\0\1\0\1\0\0\0\4\5\6\7\x08";
    static const char great[] = HEAD("\1", "\1") ASKED "\0\1\0\1\x7f\0\0\0\0\4\1\2\3\4";
    static const char negative[] = HEAD("\1", "\1") ASKED "\0\1\0\1\x80\0\0\1\0\4\1\2\3\4";

    ck_assert_int_eq(READ(two, MESSAGE_A), MESSAGE_FOUND);
    ck_assert_uint_eq(message.n, 2);
    ck_assert_uint_eq(message.ttl, 60);
    ck_assert_uint_eq(message.items[0].ttl, 60);
    ck_assert_uint_eq(message.items[1].ttl, 65536);
    ck_assert_mem_eq(message.items[1].address, "\5\6\7\x08", 4);
    ck_assert_int_eq(READ(great, MESSAGE_A), MESSAGE_FOUND);
    ck_assert_uint_eq(message.ttl, MESSAGE_TTL_MOST);
    ck_assert_int_eq(READ(negative, MESSAGE_A), MESSAGE_FOUND);
    ck_assert_uint_eq(message.ttl, 0);
}
END_TEST

/* An alias bounds the times of the records behind it, in either order. */
START_TEST(times_of_aliases)
{
    static const char text[] = HEAD("\2", "\1") "\1B\xc0\x0e\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4" ASKED
                                                "\0\5\0\1\0\0\0\x1e\0\4\1b\xc0\x0e";

    ck_assert_int_eq(READ(text, MESSAGE_A), MESSAGE_FOUND);
    ck_assert_str_eq(message.canonical, "b.test");
    ck_assert_uint_eq(message.aliases, 1);
    ck_assert_uint_eq(message.ttl, 30);
    ck_assert_uint_eq(message.items[0].ttl, 30);
}
END_TEST

/* Every cut of an answer is one, and none is taken for a whole answer. */
START_TEST(every_cut_is_found)
{
    static const char text[] =
        HEAD("\1", "\x21") ASKED "\0\x21\0\1\0\0\0\x3c\0\x0b\0\1\0\2\0\x50\2bc\xc0\x0e";

    ck_assert_int_eq(READ(text, MESSAGE_SRV), MESSAGE_FOUND);
    ck_assert_str_eq(message.text + message.items[0].name, "bc.test");
    ck_assert_uint_eq(message.items[0].port, 80);
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char cut[sizeof(text)];

        memcpy(cut, text, n);
        ck_assert_int_eq(read_text(cut, n, MESSAGE_SRV), MESSAGE_CUT);
    }
}
END_TEST

START_TEST(names_that_can_be_asked_for)
{
    char longest[300] = "";

    for (int i = 0; i < 126; i++)
        strcat(longest, "a.");
    strcat(longest, "b"); /* 253 */
    ck_assert(message_is_name(longest));
    strcat(longest, ".");
    ck_assert(message_is_name(longest));
    strcat(longest, "c");
    ck_assert(!message_is_name(longest));
    ck_assert(message_is_name("_x._tcp.a-b.test"));
    ck_assert(!message_is_name(""));
    ck_assert(!message_is_name("."));
    ck_assert(!message_is_name("a..b"));
    ck_assert(!message_is_name("a b"));
    ck_assert(!message_is_name("a\nb"));
    memset(longest, 'x', 64);
    longest[64] = '\0';
    ck_assert(!message_is_name(longest));
}
END_TEST

START_TEST(an_answer_ages)
{
    static const char text[] = HEAD("\1", "\1") ASKED "\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4";
    struct names_answer *answer, *other;

    ck_assert_int_eq(READ(text, MESSAGE_A), MESSAGE_FOUND);
    answer = names_answer_create(&memory_plain, &message, 5000, 0);
    ck_assert_uint_eq(names_answer_left(answer, answer->ttl, 5999), 60);
    ck_assert_uint_eq(names_answer_left(answer, answer->ttl, 64999), 1);
    ck_assert_uint_eq(names_answer_left(answer, answer->ttl, 99999), 0);
    other = names_answer_share(answer);
    names_answer_drop(&memory_plain, &answer);
    ck_assert_ptr_null(answer);
    ck_assert_str_eq(other->canonical, "a.test");
    names_answer_drop(&memory_plain, &other);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, times_to_live);
    tcase_add_test(tcase, times_of_aliases);
    tcase_add_test(tcase, every_cut_is_found);
    tcase_add_test(tcase, names_that_can_be_asked_for);
    tcase_add_test(tcase, an_answer_ages);
}

TEST_MAIN("message", add_tests)
