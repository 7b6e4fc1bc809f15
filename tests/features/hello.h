/* SPDX-License-Identifier: BSD-2-Clause */
/* A ClientHello for tests: extensions, and cuts into records. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_BEFORE 47 /* bytes of the message before its extensions */
#define HELLO_MOST 4096

/* Extensions, and their parts */
#define HELLO_NAME "\0\0\0\x0e\0\x0c\0\0\x09one.tests"
#define HELLO_OTHER_NAME "\0\0\0\x0e\0\x0c\0\0\x09two.tests"
#define HELLO_PROTOCOLS "\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1"
#define HELLO_VERSIONS "\0\x2b\0\x05\x04\x03\x04\x03\x03"

struct hello {
    uint8_t p[HELLO_MOST];
    size_t n;
};

static inline void hello_add(struct hello *hello, const void *p, size_t n)
{
    if (n > sizeof(hello->p) - hello->n)
        abort();
    memcpy(hello->p + hello->n, p, n);
    hello->n += n;
}

/* Makes a message of these extensions. */
static inline struct hello hello_message(const char *extensions, size_t n)
{
    struct hello hello = { .n = 0 };
    size_t length = HELLO_BEFORE - 4 + n;
    uint8_t head[] = { 1, 0, (uint8_t)(length >> 8), (uint8_t)length, 3, 3 };
    uint8_t random[32] = { 0 }, count[] = { (uint8_t)(n >> 8), (uint8_t)n };

    hello_add(&hello, head, sizeof(head));
    hello_add(&hello, random, sizeof(random));
    hello_add(&hello, "\0\0\x02\x13\x01\x01\0", 7); /* session, cipher, compression */
    hello_add(&hello, count, sizeof(count));
    hello_add(&hello, extensions, n);
    return hello;
}

/* Cuts a message into records of `size` bytes at most. */
static inline struct hello hello_records(const struct hello *message, size_t size)
{
    struct hello out = { .n = 0 };

    for (size_t at = 0; at < message->n; at += size) {
        size_t n = message->n - at < size ? message->n - at : size;
        uint8_t head[] = { 22, 3, 1, (uint8_t)(n >> 8), (uint8_t)n };

        hello_add(&out, head, sizeof(head));
        hello_add(&out, message->p + at, n);
    }
    return out;
}

/* Makes a message in one record. */
static inline struct hello hello_of(const char *extensions, size_t n)
{
    struct hello message = hello_message(extensions, n);

    return hello_records(&message, HELLO_MOST);
}
