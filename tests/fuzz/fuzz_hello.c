/* SPDX-License-Identifier: BSD-2-Clause */
/* Beginnings of connections as ClientHellos, byte by byte or at once; and the bytes as a message,
 * cut into records of any size: the result is equal. */
#include "fuzz/input.h"

#include "tls/hello.h"

#include <string.h>

#define MESSAGE_MOST 600

/* Copies the found part to memory of the exact size. */
static void check_part(fb_bytes in, struct tls_hello_part part,
    void (*copy)(fb_bytes in, struct tls_hello_part part, uint8_t *out), uint8_t *out)
{
    uint8_t *text = malloc(part.n > 0 ? part.n : 1);

    require(text != NULL && part.n <= in.n && part.at <= in.n - part.n, "a part is of the input");
    if (part.n > 0)
        copy(in, part, text);
    memcpy(out, text, part.n);
    free(text);
}

/* Parses n bytes at the end of mapped memory, and looks at the result. */
static void parse(struct tls_hello *hello, const uint8_t *data, size_t n, uint8_t *name)
{
    uint8_t *copy = malloc(n > 0 ? n : 1), *list = malloc(n > 0 ? n : 1);

    require(copy != NULL && list != NULL, "memory");
    memcpy(copy, data, n);
    tls_hello_parse(hello, (fb_bytes) { copy, n });
    require(hello->at <= n && hello->taken <= hello->at, "it looks at no more than there is");
    check_part((fb_bytes) { copy, n }, hello->name, tls_hello_copy, name);
    check_part((fb_bytes) { copy, n }, hello->protocols, tls_hello_list, list);
    free(list);
    free(copy);
}

static void compare(const struct tls_hello *a, const struct tls_hello *b)
{
    require(a->status == b->status, "pieces have the same result");
    if (a->status == TLS_HELLO_NONE)
        return;
    require(a->version == b->version, "and version");
    require(memcmp(&a->name, &b->name, sizeof(a->name)) == 0, "and name");
    require(memcmp(&a->protocols, &b->protocols, sizeof(a->protocols)) == 0, "and protocols");
}

/* Cuts a message into records. */
static size_t cut(const uint8_t *data, size_t size, size_t record, uint8_t *out)
{
    size_t n = 0;

    for (size_t at = 0; at < size; at += record) {
        size_t length = size - at < record ? size - at : record;
        const uint8_t head[] = { 22, 3, 1, (uint8_t)(length >> 8), (uint8_t)length };

        memcpy(out + n, head, sizeof(head));
        memcpy(out + n + sizeof(head), data + at, length);
        n += sizeof(head) + length;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t records[6 * MESSAGE_MOST], names[3][65536];
    struct tls_hello whole = { .status = TLS_HELLO_MORE }, grown = whole, one = whole, many = whole;
    enum tls_hello_status before = TLS_HELLO_MORE;

    if (size >= sizeof(names[0]))
        return 0;
    parse(&whole, data, size, names[0]);
    for (size_t n = 0; n <= size; n++) {
        parse(&grown, data, n, names[1]);
        require(before == TLS_HELLO_MORE || grown.status == before, "an end is final");
        before = (enum tls_hello_status)grown.status;
    }
    compare(&whole, &grown);
    if (size == 0 || size > MESSAGE_MOST)
        return 0;
    parse(&one, records, cut(data, size, size, records), names[0]);
    parse(&many, records, cut(data, size, 1 + data[size - 1] % 40, records), names[1]);
    compare(&one, &many);
    require(memcmp(names[0], names[1], one.name.n) == 0 || one.status == TLS_HELLO_NONE,
        "records do not change a name");
    return 0;
}
