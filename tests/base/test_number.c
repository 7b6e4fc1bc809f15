/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, sizes and times as written in a configuration, and the status of each mistake. */
#include "base/compiler.h"
#include "base/number.h"
#include "support/test.h"

typedef enum number_status parse_fn(const char *s, int64_t least, int64_t greatest, int64_t *out);

struct row {
    const char *text;
    int64_t least, greatest;
    enum number_status status;
    int64_t value; /* only if the status is NUMBER_OK */
};

#define ANY INT64_MIN, INT64_MAX
#define MALFORMED ANY, NUMBER_MALFORMED, 0

static const struct row numbers[] = {
    { "0", ANY, NUMBER_OK, 0 },
    { "1024", ANY, NUMBER_OK, 1024 },
    { "007", ANY, NUMBER_OK, 7 },
    { "-5", ANY, NUMBER_OK, -5 },
    { "-0", 0, 9, NUMBER_OK, 0 },
    { "9223372036854775806", ANY, NUMBER_OK, INT64_MAX - 1 },
    { "1", 1, 65535, NUMBER_OK, 1 },
    { "65535", 1, 65535, NUMBER_OK, 65535 },
    { "0", 1, 65535, NUMBER_RANGE, 0 },
    { "65536", 1, 65535, NUMBER_RANGE, 0 },
    { "-1", 0, 65535, NUMBER_RANGE, 0 },
    { "9223372036854775808", 0, 65535, NUMBER_RANGE, 0 },
    { "18446744073709551617", 0, 65535, NUMBER_RANGE, 0 },
    { "99999999999999999999999999", 0, 65535, NUMBER_RANGE, 0 },
    { "-99999999999999999999999999", 0, 65535, NUMBER_RANGE, 0 },
    { "", MALFORMED },
    { "-", MALFORMED },
    { "--1", MALFORMED },
    { "1-", MALFORMED },
    { " 1", MALFORMED },
    { "1 ", MALFORMED },
    { "1k", MALFORMED },
    { "0x10", MALFORMED },
    { "1.5", MALFORMED },
    { "one", MALFORMED },
    { "99999999999999999999999999x", MALFORMED },
};

static const struct row short_times[] = {
    { "0", ANY, NUMBER_OK, 0 },
    { "0us", ANY, NUMBER_OK, 0 },
    { "50us", ANY, NUMBER_OK, 50 },
    { "2ms", ANY, NUMBER_OK, 2000 },
    { "50us", 0, 50, NUMBER_OK, 50 },
    { "51us", 0, 50, NUMBER_RANGE, 0 },
    { "9223372036854775807ms", 0, 50, NUMBER_RANGE, 0 },
    { "50", MALFORMED },
    { "us", MALFORMED },
    { "1s", MALFORMED },
    { "50 us", MALFORMED },
    { "50us ", MALFORMED },
    { "-1us", MALFORMED },
};

static const struct row sizes[] = {
    { "0", ANY, NUMBER_OK, 0 },
    { "100", ANY, NUMBER_OK, 100 },
    { "8k", ANY, NUMBER_OK, 8192 },
    { "8K", ANY, NUMBER_OK, 8192 },
    { "2m", ANY, NUMBER_OK, 2 * 1024 * 1024 },
    { "2M", ANY, NUMBER_OK, 2 * 1024 * 1024 },
    { "3g", ANY, NUMBER_OK, 3LL * 1024 * 1024 * 1024 },
    { "3G", ANY, NUMBER_OK, 3LL * 1024 * 1024 * 1024 },
    { "1k", 1024, 1024, NUMBER_OK, 1024 },
    { "1k", 1025, 4096, NUMBER_RANGE, 0 },
    { "5k", 1024, 4096, NUMBER_RANGE, 0 },
    { "9999999999g", 0, 1LL << 40, NUMBER_RANGE, 0 },
    { "99999999999999999999k", 0, 1LL << 40, NUMBER_RANGE, 0 },
    { "", MALFORMED },
    { "k", MALFORMED },
    { "-1k", MALFORMED },
    { "1kb", MALFORMED },
    { "1t", MALFORMED },
    { "1 k", MALFORMED },
    { "1.5k", MALFORMED },
    { "1k ", MALFORMED },
};

#define HOUR (3600 * 1000LL)
#define DAY (24 * HOUR)

static const struct row times[] = {
    { "0", ANY, NUMBER_OK, 0 },
    { "60", ANY, NUMBER_OK, 60000 },
    { "500ms", ANY, NUMBER_OK, 500 },
    { "30s", ANY, NUMBER_OK, 30000 },
    { "1m", ANY, NUMBER_OK, 60000 },
    { "2h", ANY, NUMBER_OK, 2 * HOUR },
    { "3d", ANY, NUMBER_OK, 3 * DAY },
    { "1w", ANY, NUMBER_OK, 7 * DAY },
    { "1M", ANY, NUMBER_OK, 30 * DAY },
    { "1y", ANY, NUMBER_OK, 365 * DAY },
    { "1h30m", ANY, NUMBER_OK, HOUR + HOUR / 2 },
    { "1h 30m", ANY, NUMBER_OK, HOUR + HOUR / 2 },
    { "1h  30m", ANY, NUMBER_OK, HOUR + HOUR / 2 },
    { "1m 30", ANY, NUMBER_OK, 90000 },
    { "1y 1M 1w 1d 1h 1m 1s 1ms", ANY, NUMBER_OK,
        (365 + 30 + 7 + 1) * DAY + HOUR + 60000 + 1000 + 1 },
    { "10ms", 10, 20, NUMBER_OK, 10 },
    { "9ms", 10, 20, NUMBER_RANGE, 0 },
    { "1s", 10, 20, NUMBER_RANGE, 0 },
    { "999999999999y", 0, 1LL << 40, NUMBER_RANGE, 0 },
    { "999999999y 99999999999999999999s", 0, 1LL << 40, NUMBER_RANGE, 0 },
    { "", MALFORMED },
    { "s", MALFORMED },
    { "-1s", MALFORMED },
    { " 1s", MALFORMED },
    { "1 s", MALFORMED },
    { "1.5s", MALFORMED },
    { "1x", MALFORMED },
    { "1S", MALFORMED },
    { "1hm", MALFORMED },
    { "30m 1h", MALFORMED },
    { "1h 1h", MALFORMED },
    { "1 30", MALFORMED },
    { "1s 30", MALFORMED },
    { "1h,30m", MALFORMED },
};

static void check_rows(parse_fn *parse, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        int64_t value = -12345;
        enum number_status status = parse(row->text, row->least, row->greatest, &value);

        ck_assert_msg(
            status == row->status, "\"%s\": status %d, not %d", row->text, status, row->status);
        if (status == NUMBER_OK)
            ck_assert_msg(value == row->value, "\"%s\": %lld, not %lld", row->text,
                (long long)value, (long long)row->value);
        else
            ck_assert_msg(value == -12345, "\"%s\" was refused but stored", row->text);
    }
}

START_TEST(numbers_are_parsed)
{
    check_rows(number_parse, numbers, countof(numbers));
}
END_TEST

START_TEST(sizes_are_parsed)
{
    check_rows(number_parse_size, sizes, countof(sizes));
}
END_TEST

START_TEST(times_are_parsed)
{
    check_rows(number_parse_msec, times, countof(times));
}
END_TEST

START_TEST(short_times_are_parsed)
{
    check_rows(number_parse_usec, short_times, countof(short_times));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, numbers_are_parsed);
    tcase_add_test(tcase, short_times_are_parsed);
    tcase_add_test(tcase, sizes_are_parsed);
    tcase_add_test(tcase, times_are_parsed);
}

TEST_MAIN("number", add_tests)
