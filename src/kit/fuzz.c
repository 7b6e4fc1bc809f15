/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one input of a fuzzer: a client sends it in pieces, and ends. The first byte chooses the
 * pieces, the pauses and the end, so that a fuzzer explores these too. */
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>

#define PIECE_MOST 64

/* Whether this bit is set in the first byte of the input. */
static bool asks_for(uint8_t how, unsigned bit)
{
    return (how >> bit & 1) != 0;
}

static void say_in_pieces(fb_test *test, fb_test_peer *peer, fb_bytes bytes, uint8_t how)
{
    uint64_t random = how;

    while (bytes.n > 0) {
        size_t n = 1 + kit_random(&random, asks_for(how, 0) ? PIECE_MOST : 4);

        n = n < bytes.n ? n : bytes.n;
        assert(n > 0);
        fb_test_say(peer, bytes.p, n);
        bytes.p += n;
        bytes.n -= n;
        if (kit_random(&random, 2) == 0)
            fb_test_run(test);
    }
}

static void end_client(fb_test *test, fb_test_peer *peer, uint8_t how)
{
    if (asks_for(how, 1))
        fb_test_pass(test, 1000);
    if (asks_for(how, 2))
        fb_test_take(peer, 1 + how % 16);
    fb_test_run(test);
    if (asks_for(how, 3))
        fb_test_reset(peer);
    else
        fb_test_shut(peer);
    fb_test_run(test);
    fb_test_take(peer, SIZE_MAX);
}

int fb_test_fuzz(const fb_protocol *protocol, const char *server, const uint8_t *data, size_t n)
{
    uint8_t how = n > 0 ? data[0] : 0;
    fb_test *test = fb_test_start(protocol, server);
    fb_test_peer *peer;

    if (test == NULL)
        abort();
    peer = fb_test_connect(test);
    if (asks_for(how, 2))
        fb_test_take(peer, 0);
    if (n > 1)
        say_in_pieces(test, peer, (fb_bytes) { data + 1, n - 1 }, how);
    end_client(test, peer, how);
    if (fb_test_end(&test) > 0)
        abort();
    return 0;
}
