/* SPDX-License-Identifier: BSD-2-Clause */
/* The certificate of the client as PEM, in the forms that nginx's variables have.
 *
 * Responsible for base64 of the bytes that the engine has handed over, which are never parsed. */
#include "features/ssl/ssl.h"

#include "session/record.h"

#include <assert.h>
#include <string.h>

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----\n"
#define PEM_END "-----END CERTIFICATE-----\n"
/* The bytes in a line. */
#define PEM_BYTES 48

/* The characters of n bytes as PEM. */
static size_t pem_size(size_t n)
{
    return strlen(PEM_BEGIN) + (n + 2) / 3 * 4 + (n + PEM_BYTES - 1) / PEM_BYTES + strlen(PEM_END);
}

/* Writes 1 to 3 bytes as four characters; returns the end. */
static char *encode_bytes(char *to, const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)p[0] << 16;

    bits |= n > 1 ? (uint32_t)p[1] << 8 : 0;
    bits |= n > 2 ? p[2] : 0;
    for (int i = 0; i < 4; i++)
        *to++ = digits[bits >> (18 - 6 * i) & 0x3f];
    memset(to - (3 - n), '=', 3 - n);
    return to;
}

/* Writes pem_size() characters. */
static void write_pem_text(char *to, fb_bytes der)
{
    const char *begin = to;

    memcpy(to, PEM_BEGIN, strlen(PEM_BEGIN));
    to += strlen(PEM_BEGIN);
    for (size_t i = 0; i < der.n; i += 3) {
        to = encode_bytes(to, der.p + i, der.n - i < 3 ? der.n - i : 3);
        if (i % PEM_BYTES == PEM_BYTES - 3 || i + 3 >= der.n)
            *to++ = '\n';
    }
    memcpy(to, PEM_END, strlen(PEM_END));
    assert(to + strlen(PEM_END) == begin + pem_size(der.n));
    (void)begin;
}

/* Indents all lines but the first, and leaves the last line end out. */
static size_t indent_lines(char *to, const char *text, size_t n)
{
    const char *begin = to;

    for (size_t i = 0; i + 1 < n; i++) {
        *to++ = text[i];
        if (text[i] == '\n')
            *to++ = '\t';
    }
    return (size_t)(to - begin);
}

/* Escapes as a component of a URI. */
static size_t escape_characters(char *to, const char *text, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *begin = to;

    for (size_t i = 0; i < n; i++)
        if (memchr(" \n+/=", text[i], 5) != NULL) {
            *to++ = '%';
            *to++ = digits[text[i] >> 4];
            *to++ = digits[text[i] & 0xf];
        } else {
            *to++ = text[i];
        }
    return (size_t)(to - begin);
}

int ssl_certificate_value(
    struct fb_conn *conn, struct value *value, fb_bytes der, enum ssl_pem form)
{
    size_t n = pem_size(der.n);
    char *text, *other;

    if (der.n == 0)
        return 0;
    text = session_keep(conn, n);
    if (text == NULL)
        return -1;
    write_pem_text(text, der);
    *value = value_found(text, n);
    if (form == SSL_PEM_RAW)
        return 0;
    other = session_keep(conn, 3 * n);
    if (other == NULL)
        return -1;
    n = form == SSL_PEM_INDENTED ? indent_lines(other, text, n) : escape_characters(other, text, n);
    *value = value_found(other, n);
    return 0;
}
