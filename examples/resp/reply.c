/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes replies in the RESP format. The daemon collects the output of a callback and sends it by
 * one system call afterwards. */
#include "resp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERROR_MAX 512

fb_bytes resp_decimal(int64_t number, char text[24])
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *end = text + 24, *p = end;

    do
        *--p = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--p = '-';
    return (fb_bytes) { (uint8_t *)p, (size_t)(end - p) };
}

/* Writes the beginning of most replies: a letter, a number and the end of the line. */
static size_t write_head(char *out, char letter, int64_t number)
{
    char text[24];
    fb_bytes digits = resp_decimal(number, text);

    out[0] = letter;
    memcpy(out + 1, digits.p, digits.n);
    memcpy(out + 1 + digits.n, "\r\n", 2);
    return digits.n + 3;
}

void resp_status(fb_conn *conn, const char *text)
{
    const fb_bytes pieces[] = {
        { (const uint8_t *)"+", 1 },
        { (const uint8_t *)text, strlen(text) },
        { (const uint8_t *)"\r\n", 2 },
    };

    fb_writev(conn, pieces, 3);
}

void resp_error(fb_conn *conn, const char *format, ...)
{
    char text[ERROR_MAX + 2] = "-";
    va_list args;
    size_t n;

    va_start(args, format);
    vsnprintf(text + 1, ERROR_MAX - 1, format, args);
    va_end(args);
    n = strlen(text);
    for (size_t i = 0; i < n; i++) /* keeps the error on a single line, whatever the client sent */
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    memcpy(text + n, "\r\n", 2);
    fb_write(conn, text, n + 2);
}

void resp_integer(fb_conn *conn, int64_t number)
{
    char text[32];

    fb_write(conn, text, write_head(text, ':', number));
}

void resp_bulk(fb_conn *conn, fb_bytes bytes)
{
    char text[32];
    const fb_bytes pieces[] = {
        { (const uint8_t *)text, write_head(text, '$', (int64_t)bytes.n) },
        bytes,
        { (const uint8_t *)"\r\n", 2 },
    };

    fb_writev(conn, pieces, 3);
}

void resp_text(fb_conn *conn, const char *text)
{
    resp_bulk(conn, (fb_bytes) { (const uint8_t *)text, strlen(text) });
}

void resp_nil(fb_conn *conn)
{
    fb_write(conn, "$-1\r\n", 5);
}

void resp_array(fb_conn *conn, size_t n)
{
    char text[32];

    fb_write(conn, text, write_head(text, '*', (int64_t)n));
}
