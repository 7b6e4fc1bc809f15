/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints bytes in lines about failures: escaped, so that a terminal is safe, and only around the
 * first that differs. */
#include "kit/converse.h"

#include <stdio.h>

/* Bytes that are printed at most, and those of them before the first that differs. */
#define SHOWN 48
#define BEFORE 16

static void show_byte(uint8_t c)
{
    switch (c) {
    case '\n':
        fputs("\\n", stderr);
        break;
    case '\r':
        fputs("\\r", stderr);
        break;
    case '\t':
        fputs("\\t", stderr);
        break;
    case '"':
    case '\\':
        fprintf(stderr, "\\%c", c);
        break;
    default:
        fprintf(stderr, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
    }
}

static void show_bytes(fb_bytes bytes, size_t from)
{
    size_t end = bytes.n > from + SHOWN ? from + SHOWN : bytes.n;

    assert(from <= bytes.n);
    if (bytes.n == 0) {
        fputs("nothing", stderr);
        return;
    }
    fputs(from > 0 ? "...\"" : "\"", stderr);
    for (size_t i = from; i < end; i++)
        show_byte(bytes.p[i]);
    fputs(end < bytes.n ? "\"..." : "\"", stderr);
}

void kit_report_difference(const char *label, size_t step, fb_bytes expected, fb_bytes heard)
{
    size_t same = 0;

    while (same < expected.n && same < heard.n && expected.p[same] == heard.p[same])
        same++;
    if (same > SHOWN - BEFORE) {
        fprintf(stderr, "%s: step %zu: from byte %zu: expected ", label, step, same);
        same -= BEFORE;
    } else {
        fprintf(stderr, "%s: step %zu: expected ", label, step);
        same = 0;
    }
    show_bytes(expected, same);
    fputs(", heard ", stderr);
    show_bytes(heard, same);
    fputc('\n', stderr);
}

void kit_report_surplus(const char *label, size_t step, fb_bytes heard)
{
    fprintf(stderr, "%s: step %zu: heard more than was expected: ", label, step);
    show_bytes(heard, 0);
    fputc('\n', stderr);
}
