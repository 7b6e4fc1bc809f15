/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash against its authors' vectors. */
#include "shm/siphash.h"
#include "support/test.h"

#include <inttypes.h>

/* The authors' test vectors: the bytes 0, 1, 2 ... under the key of the bytes 0 to 15. */
static const struct {
    size_t n;
    uint64_t hash;
} vectors[] = {
    { 0, 0x726fdb47dd0e0e31 },
    { 1, 0x74f839c593dc67fd },
    { 2, 0x0d6c8009d9a94f5a },
    { 3, 0x85676696d7fb7e2d },
    { 7, 0xab0200f58b01d137 },
    { 8, 0x93f5f5799a932462 },
    { 15, 0xa129ca6149be45e5 },
    { 16, 0x3f2acc7f57c29bdb },
    { 63, 0x958a324ceb064572 },
};

START_TEST(it_is_siphash)
{
    const uint64_t key[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
    unsigned char data[64];

    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)i;
    ck_assert_msg(siphash(key, data, vectors[_i].n) == vectors[_i].hash,
        "of %zu bytes it is %016" PRIx64, vectors[_i].n, siphash(key, data, vectors[_i].n));
}
END_TEST

START_TEST(it_depends_on_every_bit_of_the_key)
{
    for (int bit = 0; bit < 128; bit++) {
        const uint64_t none[2] = { 0, 0 };
        uint64_t key[2] = { 0, 0 };

        key[bit / 64] = UINT64_C(1) << bit % 64;
        ck_assert_uint_ne(siphash(key, "key", 3), siphash(none, "key", 3));
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_is_siphash, 0, sizeof(vectors) / sizeof(vectors[0]));
    tcase_add_test(tcase, it_depends_on_every_bit_of_the_key);
}

TEST_MAIN("siphash", add_tests)
