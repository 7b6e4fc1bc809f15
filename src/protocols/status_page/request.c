/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of HTTP/1.0 and 1.1 without a body. Headers without a use for the status are ignored. */
#include "protocols/status_page/status_page.h"

#include <string.h>
#include <strings.h>

/* Cuts the text before a byte off the rest, or all of the rest without the byte. */
static fb_bytes cut_before(fb_bytes *rest, char at)
{
    const uint8_t *end = memchr(rest->p, at, rest->n);
    fb_bytes text = { rest->p, end != NULL ? (size_t)(end - rest->p) : rest->n };
    size_t used = end != NULL ? text.n + 1 : text.n;

    *rest = (fb_bytes) { rest->p + used, rest->n - used };
    return text;
}

static bool is_word(fb_bytes bytes, const char *text)
{
    return bytes.n == strlen(text) && strncasecmp((const char *)bytes.p, text, bytes.n) == 0;
}

static bool has_text(fb_bytes bytes, const char *text)
{
    size_t n = strlen(text);

    for (; bytes.n >= n; bytes.p++, bytes.n--)
        if (strncasecmp((const char *)bytes.p, text, n) == 0)
            return true;
    return false;
}

static fb_bytes trim(fb_bytes text)
{
    while (text.n > 0 && strchr(" \t\r", text.p[text.n - 1]) != NULL)
        text.n--;
    while (text.n > 0 && strchr(" \t", text.p[0]) != NULL)
        text = (fb_bytes) { text.p + 1, text.n - 1 };
    return text;
}

/* Takes a header; false: the request has a body. */
static bool note_header(fb_bytes name, fb_bytes value, struct page_request *request)
{
    if (is_word(name, "connection")) {
        request->closes =
            has_text(value, "close") || (request->is_old && !has_text(value, "keep-alive"));
    } else if (is_word(name, "accept")) {
        request->open_metrics = has_text(value, "application/openmetrics-text");
    }
    return !is_word(name, "transfer-encoding") &&
           (!is_word(name, "content-length") || is_word(value, "0"));
}

bool page_parse(fb_bytes head, struct page_request *request)
{
    fb_bytes line = trim(cut_before(&head, '\n'));
    fb_bytes method = cut_before(&line, ' '), target = cut_before(&line, ' ');

    *request = (struct page_request) {
        .is_get = is_word(method, "GET"),
        .is_head = is_word(method, "HEAD"),
        .path = cut_before(&target, '?'),
        .is_old = is_word(line, "HTTP/1.0"),
    };
    if (request->path.n == 0 || request->path.p[0] != '/' ||
        (!request->is_old && !is_word(line, "HTTP/1.1")))
        return false;
    request->closes = request->is_old;
    while (head.n > 0) {
        fb_bytes value = cut_before(&head, '\n');
        fb_bytes name = cut_before(&value, ':');

        if (!note_header(name, trim(value), request))
            return false;
    }
    return true;
}
