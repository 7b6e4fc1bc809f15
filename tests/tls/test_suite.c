/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of suites, and keys derived from secrets. */
#include "tls/records.h"

START_TEST(suites_are_found_by_number)
{
    unsigned n = count_suites();

    ck_assert_ptr_null(tls_suite_find(0x002f)); /* CBC */
    ck_assert_ptr_null(tls_suite_find(0x009c)); /* no forward secrecy */
    ck_assert_ptr_null(tls_suite_find(0xffff));
    ck_assert_ptr_nonnull(tls_suite_find(0));
    ck_assert_uint_eq(n, HAVE_OPENSSL ? 13 : 1);
    for (unsigned i = 0; i < n; i++) {
        const struct tls_suite *suite = tls_suite_at(i);

        ck_assert_ptr_eq(tls_suite_find(suite->id), suite);
        ck_assert(cipher_is_there(suite->cipher));
        ck_assert_int_eq(suite->hash == TLS_SHA384, strstr(suite->name, "SHA384") != NULL);
        ck_assert_int_eq(suite->version == TLS_1_2, strstr(suite->name, "DHE") != NULL);
    }
}
END_TEST

/* Secrets and keys of RFC 8448 3. */
static const struct {
    const char *secret, *key, *iv;
} schedule[] = {
    {
        "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
        "17422dda596ed5d9acd890e3c63f5051",
        "5b78923dee08579033e523d9",
    },
    {
        "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
        "9f02283b6c9c07efc26bb9f2ac92e356",
        "cf782b88dd83549aadf1e984",
    },
};

START_TEST(published_secrets_give_the_published_keys)
{
    const struct tls_suite *suite = tls_suite_find(0x1301);
    struct tls_keys keys = { .sequence = 5 };
    struct ciphers *ciphers;
    uint8_t key[CIPHER_KEY_MOST], iv[CIPHER_NONCE];

    if (suite == NULL)
        return;
    ciphers = ciphers_create();
    ck_assert_ptr_nonnull(ciphers);
    ck_assert_uint_eq(read_hex(schedule[_i].secret, keys.secret), tls_suite_secret_size(suite));
    ck_assert_uint_eq(read_hex(schedule[_i].key, key), cipher_key_size(suite->cipher));
    ck_assert_uint_eq(read_hex(schedule[_i].iv, iv), sizeof(iv));
    ck_assert_int_eq(tls_keys_expand(ciphers, &keys, suite), 0);
    ck_assert_mem_eq(keys.key, key, cipher_key_size(suite->cipher));
    ck_assert_mem_eq(keys.iv, iv, sizeof(iv));
    ck_assert_uint_eq(keys.sequence, 5);
    ciphers_destroy(ciphers);
}
END_TEST

START_TEST(an_update_changes_all_and_begins_anew)
{
    const struct tls_suite *suite = tls_suite_at((unsigned)_i);
    struct records records;
    struct tls_keys before;

    if (suite->version != TLS_1_3)
        return;
    begin_records(&records, suite);
    records.out.sequence = 77;
    before = records.out;
    ck_assert_int_eq(tls_keys_update(records.ciphers, &records.out, suite), 0);
    ck_assert_uint_eq(records.out.sequence, 0);
    ck_assert_mem_ne(records.out.secret, before.secret, tls_suite_secret_size(suite));
    ck_assert_mem_ne(records.out.key, before.key, cipher_key_size(suite->cipher));
    ck_assert_mem_ne(records.out.iv, before.iv, sizeof(before.iv));
    ck_assert_int_eq(tls_keys_update(records.ciphers, &records.in, suite), 0);
    ck_assert_mem_eq(&records.in, &records.out, sizeof(records.in));
    end_records(&records);
}
END_TEST

START_TEST(wiped_keys_are_zero)
{
    const struct tls_keys none = { .sequence = 0 };
    struct tls_keys keys;

    memset(&keys, 0xff, sizeof(keys));
    tls_keys_wipe(&keys);
    ck_assert_mem_eq(&keys, &none, sizeof(keys));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, suites_are_found_by_number);
    tcase_add_loop_test(tcase, published_secrets_give_the_published_keys, 0,
        sizeof(schedule) / sizeof(schedule[0]));
    tcase_add_loop_test(tcase, an_update_changes_all_and_begins_anew, 0, count_suites());
    tcase_add_test(tcase, wiped_keys_are_zero);
}

TEST_MAIN("suite", add_tests)
