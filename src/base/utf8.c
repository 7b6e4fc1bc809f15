/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks and writes UTF-8 by RFC 3629: no overlong forms, surrogates or too large numbers. */
#include "base/utf8.h"

#include <stdint.h>

size_t utf8_character(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0x7fu >> n);

    if (n == 0 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

size_t utf8_encode(unsigned code, char out[4])
{
    static const unsigned first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t n;

    if (code == 0) /* a NUL would end the string */
        code = 0xfffd;
    n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[n] | code);
    return n;
}
