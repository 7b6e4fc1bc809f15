/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of a bounded length, for which PAGE_TEXT leaves room, and rows as text in pieces. */
#include "protocols/status_page/status_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void page_add(struct page_text *text, const char *format, ...)
{
    size_t room = sizeof(text->p) - text->n;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text->p + text->n, room, format, args);
    va_end(args);
    if (n > 0)
        text->n += (size_t)n < room ? (size_t)n : room - 1;
}

/* Returns the length of a character of UTF-8; 0: the bytes are no UTF-8. */
static unsigned character_n(const char *at)
{
    uint8_t first = (uint8_t)at[0], second = (uint8_t)at[1];
    unsigned n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (first > 0xf4 || (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    for (unsigned i = 1; i < n; i++)
        if (((uint8_t)at[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

void page_add_value(struct page_text *text, const char *value, page_escape escape)
{
    const char *end = value + PAGE_VALUE;

    while (*value != '\0' && value < end) {
        unsigned n = character_n(value);

        if (n == 0)
            page_add(text, "\xef\xbf\xbd"); /* the replacement character */
        else if ((uint8_t)*value < ' ')
            page_add(text, "?");
        else if (n > 1 || !escape(text, *value))
            page_add(text, "%.*s", (int)n, value);
        value += n > 0 ? n : 1;
    }
}

bool page_escape_quoted(struct page_text *text, char c)
{
    if (c != '"' && c != '\\')
        return false;
    page_add(text, "\\%c", c);
    return true;
}

bool page_add_rows(fb_worker *worker, struct page_worker *own, struct page_client *client,
    const struct page_format *format)
{
    struct page_text *text = &own->text;

    if (client->last == NULL)
        page_add(text, "%s", format->head);
    while (text->n < PAGE_ROWS) {
        const char *last = client->last;
        uint32_t n;

        own->row->size = sizeof(fb_sample);
        n = own->metrics->next_row(worker, &client->cursor, own->row);
        client->last = own->row->thing;
        if (last != NULL)
            page_add(
                text, "%s", n > 0 && client->last == last ? format->between : format->kind_end);
        if (n == 0) {
            page_add(text, "%s", format->tail);
            return false;
        }
        if (client->last != last)
            format->add_kind(text, own->row, n);
        format->add_row(text, own->row, n);
    }
    return true;
}

const char *page_column(const fb_sample *sample)
{
    const char *name = strchr(sample->name, '_');
    const char *rest = name != NULL ? strchr(name + 1, '_') : NULL;

    if (rest != NULL && strcmp(sample->thing, "daemon") != 0)
        name = rest;
    return name != NULL ? name + 1 : sample->name;
}

uint64_t page_times(const fb_sample *sample)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < FB_SAMPLE_BUCKETS; i++)
        n += sample->buckets[i];
    return n;
}
