/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of every suite: published ones, round trips, limits, and what a forger or a careless peer
 * may send. */
#include "tls/records.h"

#define SHORT 13

static struct records records;

/* Records of RFC 8448 3, with the secret of their direction. */
static const struct {
    const char *secret;
    uint64_t sequence;
    enum tls_type type;
    const char *plain, *record;
} published[] = {
    { "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5", 0, TLS_DATA,
        "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18"
        "19 1a 1b 1c 1d 1e 1f 20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f 30 31",
        "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea"
        "42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b"
        "62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4" },
    { "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5", 1, TLS_ALERT, "01 00",
        "17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3" },
    { "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643", 1, TLS_DATA,
        "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18"
        "19 1a 1b 1c 1d 1e 1f 20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f 30 31",
        "17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 32 fc"
        "32 25 d0 5f 82 aa 1b 36 e3 0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8"
        "fc c4 9c 4b f2 e5 f0 a2 1c 00 47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d" },
    { "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643", 2, TLS_ALERT, "01 00",
        "17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9" },
};

START_TEST(published_records_are_sealed_and_opened)
{
    uint8_t wanted[128];
    size_t plain_n, n = read_hex(published[_i].record, wanted);

    if (tls_suite_find(0x1301) == NULL)
        return;
    begin_records(&records, tls_suite_find(0x1301));
    read_hex(published[_i].secret, records.out.secret);
    plain_n = read_hex(published[_i].plain, records.plain);
    records.out.sequence = published[_i].sequence;
    ck_assert_int_eq(tls_keys_expand(records.ciphers, &records.out, records.suite), 0);
    records.in = records.out;
    ck_assert_uint_eq(seal_record(&records, published[_i].type, plain_n), n);
    ck_assert_mem_eq(records.record, wanted, n);
    ck_assert_int_eq(open_record(&records, n), 0);
    require_opened(&records, published[_i].type, plain_n);
    ck_assert_uint_eq(records.in.sequence, published[_i].sequence + 1);
    end_records(&records);
}
END_TEST

static void begin_suite(int i)
{
    begin_records(&records, tls_suite_at((unsigned)i));
}

START_TEST(records_come_back)
{
    static const size_t sizes[] = { 1, 2, SHORT, 64, 1000, TLS_PLAIN_MOST - 1, TLS_PLAIN_MOST };
    static const enum tls_type types[] = { TLS_DATA, TLS_ALERT, TLS_HANDSHAKE };

    begin_suite(_i);
    for (size_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t plain_n = sizes[i / 3], n = seal_record(&records, types[i % 3], plain_n);

        ck_assert_uint_le(n, plain_n + TLS_OVERHEAD);
        ck_assert_int_eq(tls_record_length(records.record, n, &records.alert), (int)n);
        ck_assert_int_eq(open_record(&records, n), 0);
        require_opened(&records, types[i % 3], plain_n);
        ck_assert_ptr_eq(records.opened.p, records.record + tls_record_front(records.suite));
        ck_assert_uint_eq(records.in.sequence, i + 1);
        ck_assert_uint_eq(records.out.sequence, i + 1);
    }
    end_records(&records);
}
END_TEST

START_TEST(plaintext_may_lie_in_the_record)
{
    size_t front, n;
    struct iovec pieces[2];

    begin_suite(_i);
    front = tls_record_front(records.suite);
    for (size_t plain_n = 2; plain_n <= TLS_PLAIN_MOST; plain_n *= 2) {
        pieces[0] = (struct iovec) { records.record + front, plain_n / 2 };
        pieces[1] = (struct iovec) { records.plain + plain_n / 2, plain_n - plain_n / 2 };
        memcpy(records.record + front, records.plain, plain_n / 2);
        n = tls_record_seal(records.ciphers, records.suite, &records.out, TLS_DATA, pieces, 2,
            plain_n, records.record);
        ck_assert_int_eq(open_record(&records, n), 0);
        require_opened(&records, TLS_DATA, plain_n);
    }
    end_records(&records);
}
END_TEST

/* Tries to open a record with a wrong bit: its length may have changed, and its type or version. */
static void open_changed(size_t n, size_t bit)
{
    int length = tls_record_length(records.record, n, &records.alert);

    if (length == -1) {
        ck_assert_uint_lt(bit, 8 * TLS_HEADER);
    } else if ((size_t)length != n) {
        ck_assert_uint_ge(bit / 8, 3);
        ck_assert_uint_lt(bit / 8, TLS_HEADER);
    } else {
        ck_assert_int_eq(open_record(&records, n), -1);
        ck_assert(records.alert == TLS_BAD_RECORD_MAC ||
                  (records.alert == TLS_UNEXPECTED_MESSAGE && bit < 8));
    }
}

START_TEST(each_changed_bit_of_a_record_is_noticed)
{
    uint8_t sealed[64];
    size_t n;

    begin_suite(_i);
    n = seal_record(&records, TLS_DATA, SHORT);
    memcpy(sealed, records.record, n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(records.record, sealed, n);
        records.record[bit / 8] ^= (uint8_t)(1 << bit % 8);
        open_changed(n, bit);
        ck_assert_uint_eq(records.in.sequence, 0);
    }
    memcpy(records.record, sealed, n);
    ck_assert_int_eq(open_record(&records, n), 0);
    require_opened(&records, TLS_DATA, SHORT);
    end_records(&records);
}
END_TEST

START_TEST(a_record_opens_once_and_in_its_place)
{
    uint8_t sealed[3][64];
    size_t n = 0;

    begin_suite(_i);
    for (int i = 0; i < 3; i++) {
        n = seal_record(&records, TLS_DATA, SHORT);
        memcpy(sealed[i], records.record, n);
    }
    memcpy(records.record, sealed[1], n);
    require_refused(&records, n, TLS_BAD_RECORD_MAC);
    for (int i = 0; i < 3; i++) {
        memcpy(records.record, sealed[i], n);
        ck_assert_int_eq(open_record(&records, n), 0);
        memcpy(records.record, sealed[i], n);
        require_refused(&records, n, TLS_BAD_RECORD_MAC);
    }
    end_records(&records);
}
END_TEST

START_TEST(a_length_is_told_by_the_header_alone)
{
    uint8_t header[] = { TLS_DATA, 3, 3, 0x48, 0 };
    enum tls_alert alert = TLS_CLOSE_NOTIFY;

    for (size_t n = 0; n < TLS_HEADER; n++)
        ck_assert_int_eq(tls_record_length(header, n, &alert), 0);
    ck_assert_int_eq(
        tls_record_length(header, sizeof(header), &alert), TLS_HEADER + TLS_SEALED_MOST);
    header[4] = 1;
    ck_assert_int_eq(tls_record_length(header, sizeof(header), &alert), -1);
    ck_assert_uint_eq(alert, TLS_RECORD_OVERFLOW);
    header[3] = 0;
    for (int type = 0; type < 256; type++) {
        header[0] = (uint8_t)type;
        ck_assert_int_eq(tls_record_length(header, sizeof(header), &alert),
            type >= TLS_CHANGE_CIPHER_SPEC && type <= TLS_DATA ? TLS_HEADER + 1 : -1);
        if (type < TLS_CHANGE_CIPHER_SPEC || type > TLS_DATA)
            ck_assert_uint_eq(alert, TLS_UNEXPECTED_MESSAGE);
    }
    header[0] = TLS_DATA;
    for (int version = 0; version < 65536; version++) {
        header[1] = (uint8_t)(version >> 8);
        header[2] = (uint8_t)version;
        ck_assert_int_eq(tls_record_length(header, sizeof(header), &alert),
            version == TLS_1_2 ? TLS_HEADER + 1 : -1);
        if (version != TLS_1_2)
            ck_assert_uint_eq(alert, TLS_PROTOCOL_VERSION);
    }
}
END_TEST

/* Makes a record of any outer type and length, with bytes from plain[] behind the header. */
static size_t write_record(uint8_t type, size_t n)
{
    const uint8_t header[] = { type, 3, 3, (uint8_t)(n >> 8), (uint8_t)n };

    memcpy(records.record, header, sizeof(header));
    memcpy(records.record + TLS_HEADER, records.plain, n);
    return TLS_HEADER + n;
}

START_TEST(records_too_short_for_a_tag_are_refused)
{
    begin_suite(_i);
    for (size_t n = 0; n < tls_record_front(records.suite) - TLS_HEADER + CIPHER_TAG + 3; n++)
        require_refused(&records, write_record(TLS_DATA, n), TLS_BAD_RECORD_MAC);
    end_records(&records);
}
END_TEST

/* Seals what tls_record_seal() never would: any inner plaintext of n bytes from records.plain. */
static size_t seal_inner(uint8_t type, size_t n)
{
    size_t front = tls_record_front(records.suite), body = front - TLS_HEADER + n + CIPHER_TAG;
    uint8_t *out = records.record, nonce[CIPHER_NONCE], data[13] = { 0 };
    uint8_t sequence = (uint8_t)records.out.sequence++;
    size_t data_n = records.suite->version == TLS_1_3 ? TLS_HEADER : sizeof(data);
    struct iovec piece = { records.plain, n };

    write_record(type, 0);
    out[3] = (uint8_t)(body >> 8);
    out[4] = (uint8_t)body;
    memcpy(data, out, TLS_HEADER);
    if (data_n == sizeof(data)) {
        memset(data, 0, 8);
        data[7] = sequence;
        memcpy(data + 8, (uint8_t[]) { type, 3, 3, (uint8_t)(n >> 8), (uint8_t)n }, 5);
    }
    memcpy(nonce, records.out.iv, sizeof(nonce));
    if (front > TLS_HEADER) {
        memset(out + TLS_HEADER, 0xa5, 8); /* explicit nonce of the peer's choice */
        memcpy(nonce + 4, out + TLS_HEADER, 8);
    } else {
        nonce[CIPHER_NONCE - 1] ^= sequence;
    }
    ck_assert_int_eq(cipher_seal(records.ciphers, records.suite->cipher, records.out.key, nonce,
                         data, data_n, &piece, 1, NULL, 0, out + front),
        0);
    return TLS_HEADER + body;
}

START_TEST(the_limit_of_plaintext_is_kept)
{
    bool is_1_3;

    begin_suite(_i);
    is_1_3 = records.suite->version == TLS_1_3;
    records.plain[TLS_PLAIN_MOST] = TLS_DATA;
    ck_assert_int_eq(open_record(&records, seal_inner(TLS_DATA, TLS_PLAIN_MOST + is_1_3)), 0);
    require_opened(&records, TLS_DATA, TLS_PLAIN_MOST);
    for (size_t more = 1; more < 300; more += 17) {
        size_t front = tls_record_front(records.suite) - TLS_HEADER;

        write_record(TLS_DATA, 0);
        records.record[3] = (uint8_t)((front + TLS_PLAIN_MOST + is_1_3 + more + CIPHER_TAG) >> 8);
        records.record[4] = (uint8_t)(front + TLS_PLAIN_MOST + is_1_3 + more + CIPHER_TAG);
        require_refused(&records, TLS_HEADER + front + TLS_PLAIN_MOST + is_1_3 + more + CIPHER_TAG,
            TLS_RECORD_OVERFLOW);
    }
    end_records(&records);
}
END_TEST

START_TEST(padding_is_taken_off)
{
    begin_suite(_i);
    if (records.suite->version == TLS_1_3) {
        for (size_t padding = 0; padding < TLS_PLAIN_MOST; padding = 2 * padding + 1) {
            size_t n = padding + SHORT < TLS_PLAIN_MOST ? SHORT : TLS_PLAIN_MOST - padding;

            records.plain[n] = TLS_DATA;
            memset(records.plain + n + 1, 0, padding);
            ck_assert_int_eq(open_record(&records, seal_inner(TLS_DATA, n + 1 + padding)), 0);
            require_opened(&records, TLS_DATA, n);
        }
        memset(records.plain, 0, sizeof(records.plain));
        for (size_t n = 0; n <= TLS_PLAIN_MOST; n = 3 * n + 1)
            require_refused(&records, seal_inner(TLS_DATA, n), TLS_UNEXPECTED_MESSAGE);
    }
    end_records(&records);
}
END_TEST

START_TEST(empty_records_are_data_alone)
{
    static const uint8_t types[] = { TLS_DATA, TLS_ALERT, TLS_HANDSHAKE };

    begin_suite(_i);
    for (int i = 0; i < 3; i++) {
        bool is_1_3 = records.suite->version == TLS_1_3;
        size_t n;

        records.plain[0] = types[i];
        n = seal_inner(is_1_3 ? TLS_DATA : types[i], is_1_3);
        if (types[i] != TLS_DATA) {
            require_refused(&records, n, TLS_UNEXPECTED_MESSAGE);
            continue;
        }
        ck_assert_int_eq(open_record(&records, n), 0);
        require_opened(&records, TLS_DATA, 0);
    }
    end_records(&records);
}
END_TEST

START_TEST(types_that_no_session_has_are_refused)
{
    begin_suite(_i);
    for (int type = 0; type < 256; type++) {
        bool is_known = type == TLS_ALERT || type == TLS_HANDSHAKE || type == TLS_DATA;
        bool is_1_3 = records.suite->version == TLS_1_3;
        size_t n;

        if (!is_1_3 && (type < TLS_CHANGE_CIPHER_SPEC || type > TLS_DATA))
            continue;
        records.plain[0] = 'x';
        records.plain[1] = (uint8_t)type;
        n = seal_inner(is_1_3 ? TLS_DATA : (uint8_t)type, 1u + is_1_3);
        if (is_known)
            ck_assert_int_eq(open_record(&records, n), 0);
        else if (is_1_3 && type == 0)
            ck_assert_int_eq(open_record(&records, n), -1); /* type 'x' */
        else
            require_refused(&records, n, TLS_UNEXPECTED_MESSAGE);
    }
    end_records(&records);
}
END_TEST

START_TEST(plaintext_records_are_refused)
{
    begin_suite(_i);
    for (int type = TLS_CHANGE_CIPHER_SPEC; type <= TLS_DATA; type++) {
        bool is_1_3 = records.suite->version == TLS_1_3 && type != TLS_DATA;

        records.plain[0] = 1;
        require_refused(&records, write_record((uint8_t)type, 2),
            is_1_3 ? TLS_UNEXPECTED_MESSAGE : TLS_BAD_RECORD_MAC);
        require_refused(&records, write_record((uint8_t)type, 100),
            is_1_3 ? TLS_UNEXPECTED_MESSAGE : TLS_BAD_RECORD_MAC);
    }
    end_records(&records);
}
END_TEST

START_TEST(a_sequence_does_not_begin_again)
{
    size_t n;

    begin_suite(_i);
    records.out.sequence = records.in.sequence = UINT64_MAX - 1;
    n = seal_record(&records, TLS_DATA, SHORT);
    ck_assert_int_eq(open_record(&records, n), 0);
    require_opened(&records, TLS_DATA, SHORT);
    ck_assert_uint_eq(seal_record(&records, TLS_DATA, SHORT), 0);
    ck_assert_uint_eq(records.out.sequence, UINT64_MAX);
    require_refused(&records, n, TLS_INTERNAL_ERROR);
    end_records(&records);
}
END_TEST

START_TEST(records_follow_a_key_update)
{
    size_t n;

    begin_suite(_i);
    for (int i = 0; i < 4 && records.suite->version == TLS_1_3; i++) {
        n = seal_record(&records, TLS_DATA, SHORT);
        ck_assert_int_eq(open_record(&records, n), 0);
        ck_assert_int_eq(tls_keys_update(records.ciphers, &records.out, records.suite), 0);
        n = seal_record(&records, TLS_DATA, SHORT);
        require_refused(&records, n, TLS_BAD_RECORD_MAC);
        ck_assert_int_eq(tls_keys_update(records.ciphers, &records.in, records.suite), 0);
        records.out.sequence = 0;
        n = seal_record(&records, TLS_DATA, SHORT);
        ck_assert_int_eq(open_record(&records, n), 0);
        require_opened(&records, TLS_DATA, SHORT);
    }
    end_records(&records);
}
END_TEST

static void add_tests(TCase *tcase)
{
    unsigned n = count_suites();

    tcase_add_loop_test(tcase, published_records_are_sealed_and_opened, 0,
        sizeof(published) / sizeof(published[0]));
    tcase_add_loop_test(tcase, records_come_back, 0, n);
    tcase_add_loop_test(tcase, plaintext_may_lie_in_the_record, 0, n);
    tcase_add_loop_test(tcase, each_changed_bit_of_a_record_is_noticed, 0, n);
    tcase_add_loop_test(tcase, a_record_opens_once_and_in_its_place, 0, n);
    tcase_add_test(tcase, a_length_is_told_by_the_header_alone);
    tcase_add_loop_test(tcase, records_too_short_for_a_tag_are_refused, 0, n);
    tcase_add_loop_test(tcase, the_limit_of_plaintext_is_kept, 0, n);
    tcase_add_loop_test(tcase, padding_is_taken_off, 0, n);
    tcase_add_loop_test(tcase, empty_records_are_data_alone, 0, n);
    tcase_add_loop_test(tcase, types_that_no_session_has_are_refused, 0, n);
    tcase_add_loop_test(tcase, plaintext_records_are_refused, 0, n);
    tcase_add_loop_test(tcase, a_sequence_does_not_begin_again, 0, n);
    tcase_add_loop_test(tcase, records_follow_a_key_update, 0, n);
}

TEST_MAIN("record", add_tests)
