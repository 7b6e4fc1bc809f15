/* SPDX-License-Identifier: BSD-2-Clause */
/* Ciphers against published vectors, with bytes in pieces, and against forgers. */
#include "tls/records.h"

#define MOST 20000

/* GCM: test cases 4 and 16 of its specification; ChaCha20-Poly1305: RFC 8439 2.8.2. */
static const struct {
    enum cipher cipher;
    const char *key, *nonce, *data, *plain, *sealed;
} vectors[] = {
    {
        CIPHER_AES_128_GCM,
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
        "5bc94fbc3221a5db94fae95ae7121a47",
    },
    {
        CIPHER_AES_256_GCM,
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b",
    },
    {
        CIPHER_CHACHA20_POLY1305,
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
        "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
        "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
        "637265656e20776f756c642062652069742e",
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
        "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
        "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
        "3ff4def08e4b7a9de576d26586cec64b6116"
        "1ae10b594f09e26a7e902ecbd0600691",
    },
};

struct sealing {
    struct ciphers *ciphers;
    enum cipher cipher;
    uint64_t random;
    uint8_t key[CIPHER_KEY_MOST], nonce[CIPHER_NONCE], data[13];
    uint8_t plain[MOST], sealed[MOST + CIPHER_TAG], opened[MOST];
};

static struct sealing sealing;

/* Skips ciphers that the build lacks. */
static bool begin_sealing(int cipher)
{
    sealing.cipher = (enum cipher)cipher;
    if (!cipher_is_there(sealing.cipher))
        return false;
    sealing.ciphers = ciphers_create();
    sealing.random = random_seed();
    ck_assert_ptr_nonnull(sealing.ciphers);
    fill_random(&sealing.random, sealing.key, sizeof(sealing.key));
    fill_random(&sealing.random, sealing.nonce, sizeof(sealing.nonce));
    fill_random(&sealing.random, sealing.data, sizeof(sealing.data));
    fill_random(&sealing.random, sealing.plain, sizeof(sealing.plain));
    return true;
}

static void seal_whole(size_t n, uint8_t *out)
{
    struct iovec piece = { sealing.plain, n };

    ck_assert_int_eq(cipher_seal(sealing.ciphers, sealing.cipher, sealing.key, sealing.nonce,
                         sealing.data, sizeof(sealing.data), &piece, 1, NULL, 0, out),
        0);
}

static int open_whole(size_t n)
{
    return cipher_open(sealing.ciphers, sealing.cipher, sealing.key, sealing.nonce, sealing.data,
        sizeof(sealing.data), sealing.sealed, n + CIPHER_TAG, sealing.opened);
}

START_TEST(published_vectors_are_sealed_and_opened)
{
    struct ciphers *ciphers;
    uint8_t key[CIPHER_KEY_MOST], nonce[CIPHER_NONCE], data[64], plain[256], sealed[256], out[256];
    size_t data_n = read_hex(vectors[_i].data, data), n = read_hex(vectors[_i].plain, plain);
    size_t sealed_n = read_hex(vectors[_i].sealed, sealed);
    struct iovec piece = { plain, n };

    if (!cipher_is_there(vectors[_i].cipher))
        return;
    ciphers = ciphers_create();
    ck_assert_uint_eq(read_hex(vectors[_i].key, key), cipher_key_size(vectors[_i].cipher));
    ck_assert_uint_eq(read_hex(vectors[_i].nonce, nonce), CIPHER_NONCE);
    ck_assert_int_eq(
        cipher_seal(ciphers, vectors[_i].cipher, key, nonce, data, data_n, &piece, 1, NULL, 0, out),
        0);
    ck_assert_uint_eq(sealed_n, n + CIPHER_TAG);
    ck_assert_mem_eq(out, sealed, sealed_n);
    ck_assert_int_eq(
        cipher_open(ciphers, vectors[_i].cipher, key, nonce, data, data_n, sealed, sealed_n, out),
        0);
    ck_assert_mem_eq(out, plain, n);
    ciphers_destroy(ciphers);
}
END_TEST

/* Seals n bytes in random pieces, of which some lie where the sealed bytes go, and some end as
 * `more`. */
static void seal_pieces(size_t n, uint8_t *out)
{
    size_t more_n = random_below(&sealing.random, 3), at = 0;
    struct iovec pieces[8];
    int piece_n = 0;

    more_n = more_n < n ? more_n : n;
    while (piece_n < 7 && at < n - more_n) {
        size_t rest = n - more_n - at, length = random_below(&sealing.random, (uint32_t)rest + 1);

        if (piece_n == 6)
            length = rest;
        pieces[piece_n] = (struct iovec) { sealing.plain + at, length };
        if (random_below(&sealing.random, 2) == 0)
            pieces[piece_n].iov_base = memcpy(out + at, sealing.plain + at, length);
        at += length;
        piece_n++;
    }
    ck_assert_int_eq(
        cipher_seal(sealing.ciphers, sealing.cipher, sealing.key, sealing.nonce, sealing.data,
            sizeof(sealing.data), pieces, piece_n, sealing.plain + at, n - at, out),
        0);
}

START_TEST(pieces_are_sealed_as_the_whole)
{
    static uint8_t pieces[MOST + CIPHER_TAG];

    if (!begin_sealing(_i))
        return;
    for (unsigned trial = 0; trial < 300; trial++) {
        size_t n = random_below(&sealing.random, trial % 2 == 0 ? 200 : MOST + 1);

        seal_whole(n, sealing.sealed);
        seal_pieces(n, pieces);
        ck_assert_mem_eq(pieces, sealing.sealed, n + CIPHER_TAG);
        ck_assert_int_eq(open_whole(n), 0);
        ck_assert_mem_eq(sealing.opened, sealing.plain, n);
    }
    ciphers_destroy(sealing.ciphers);
}
END_TEST

/* Changes each bit of n bytes for a moment, in which nothing opens. */
static void flip_bits(uint8_t *p, size_t n)
{
    for (size_t bit = 0; bit < 8 * n; bit++) {
        p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(open_whole(40), -1);
        p[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(open_whole(40), 0);
    }
}

START_TEST(each_changed_bit_is_noticed)
{
    if (!begin_sealing(_i))
        return;
    seal_whole(40, sealing.sealed);
    flip_bits(sealing.sealed, 40 + CIPHER_TAG);
    flip_bits(sealing.key, cipher_key_size(sealing.cipher));
    flip_bits(sealing.nonce, sizeof(sealing.nonce));
    flip_bits(sealing.data, sizeof(sealing.data));
    ck_assert_int_eq(open_whole(39), -1);
    ck_assert_int_eq(open_whole(0), -1);
    ck_assert_int_eq(open_whole(40), 0);
    ck_assert_mem_eq(sealing.opened, sealing.plain, 40);
    ciphers_destroy(sealing.ciphers);
}
END_TEST

/* Contexts are shared by all connections of a loop. */
START_TEST(keys_that_take_turns_do_not_mix)
{
    uint8_t keys[3][CIPHER_KEY_MOST], wanted[3][64 + CIPHER_TAG];

    if (!begin_sealing(_i))
        return;
    for (int i = 0; i < 3; i++) {
        fill_random(&sealing.random, keys[i], sizeof(keys[i]));
        memcpy(sealing.key, keys[i], sizeof(keys[i]));
        ciphers_destroy(sealing.ciphers);
        sealing.ciphers = ciphers_create();
        seal_whole(64, wanted[i]);
    }
    for (unsigned trial = 0; trial < 200; trial++) {
        unsigned i = random_below(&sealing.random, 3), j = random_below(&sealing.random, 3);

        memcpy(sealing.key, keys[i], sizeof(keys[i]));
        seal_whole(64, sealing.sealed);
        ck_assert_mem_eq(sealing.sealed, wanted[i], sizeof(wanted[i]));
        memcpy(sealing.sealed, wanted[j], sizeof(wanted[j]));
        ck_assert_int_eq(open_whole(64), i == j ? 0 : -1);
    }
    ciphers_destroy(sealing.ciphers);
}
END_TEST

START_TEST(ciphers_of_a_build_are_all_or_the_plain_one)
{
    ck_assert(cipher_is_there(CIPHER_PLAIN));
    for (int i = CIPHER_PLAIN + 1; i < CIPHERS; i++)
        ck_assert_int_eq(cipher_is_there((enum cipher)i), HAVE_OPENSSL);
    ciphers_destroy(NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, ciphers_of_a_build_are_all_or_the_plain_one);
    tcase_add_loop_test(
        tcase, published_vectors_are_sealed_and_opened, 0, sizeof(vectors) / sizeof(vectors[0]));
    tcase_add_loop_test(tcase, pieces_are_sealed_as_the_whole, 0, CIPHERS);
    tcase_add_loop_test(tcase, each_changed_bit_is_noticed, 0, CIPHERS);
    tcase_add_loop_test(tcase, keys_that_take_turns_do_not_mix, 0, CIPHERS);
}

TEST_MAIN("cipher", add_tests)
