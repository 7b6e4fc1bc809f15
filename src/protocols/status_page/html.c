/* SPDX-License-Identifier: BSD-2-Clause */
/* The page: a table for each kind of thing, a row for each thing. page.js replaces the tables by
 * those of later replies, and draws charts of the cells' numbers. */
#include "protocols/status_page/status_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>forkbeard</title>\n<link rel=\"stylesheet\" href=\"status.css\">\n"
    "<script src=\"status.js\" defer></script>\n"
    "<h1>forkbeard</h1>\n<p id=\"state\">As of the request. The same numbers: "
    "<a href=\"status.json\">JSON</a>, <a href=\"metrics\">Prometheus</a>.</p>\n"
    "<div id=\"charts\"></div>\n<main>\n";

static bool escape_html(struct page_text *text, char c)
{
    if (c != '<' && c != '>' && c != '&' && c != '"')
        return false;
    page_add(text, "&#%d;", c);
    return true;
}

static bool is_part(const fb_sample *sample)
{
    return sample->label_n > sample->key_n;
}

static void add_table(struct page_text *text, const fb_sample *row, uint32_t n)
{
    page_add(text,
        "<section tabindex=\"0\" aria-labelledby=\"%s\"><table><caption id=\"%s\">%s</caption>\n"
        "<thead><tr>",
        row->thing, row->thing, row->thing);
    for (uint32_t i = 0; i < row->key_n; i++)
        page_add(text, "<th scope=\"col\" class=\"text\">%s", row->labels[i].name);
    for (uint32_t i = 0; i < n; i++)
        if (!is_part(&row[i]))
            page_add(text, "<th scope=\"col\" title=\"%s\">%s", row[i].help, page_column(&row[i]));
    page_add(text, "<th scope=\"col\" class=\"text\">by cause or kind</thead>\n<tbody>\n");
}

static void add_bytes(struct page_text *text, int64_t value)
{
    static const char units[] = "kMGTPE";
    double n = (double)value;
    int unit = -1;

    for (; n >= 1000 && units[unit + 1] != '\0'; unit++)
        n /= 1000;
    if (unit < 0)
        page_add(text, "%" PRId64 " B", value);
    else
        page_add(text, "%.1f %cB", n, units[unit]);
}

/* Adds a time that a share of all times is below. */
static void add_quantile(struct page_text *text, const fb_sample *sample, unsigned percent)
{
    uint64_t all = page_times(sample), n = 0;
    unsigned i = 0;

    for (; i + 1 < FB_SAMPLE_BUCKETS; i++) {
        n += sample->buckets[i];
        if (n >= all - all * (100 - percent) / 100)
            break;
    }
    if (i < 10)
        page_add(text, "%u ms", 1u << i);
    else
        page_add(text, "%u s", (1u << (i - 10)) * 128 / 125);
}

static void add_cell(struct page_text *text, const fb_sample *sample)
{
    if (sample->kind == FB_SAMPLE_HISTOGRAM) {
        page_add(text, "<td>");
        if (page_times(sample) == 0)
            return;
        page_add(text, "half &lt; ");
        add_quantile(text, sample, 50);
        page_add(text, ", 99 %% &lt; ");
        add_quantile(text, sample, 99);
        return;
    }
    page_add(text, "<td data-%s=\"%" PRId64 "\">", page_column(sample), sample->value);
    if (sample->unit != NULL && strcmp(sample->unit, "bytes") == 0)
        add_bytes(text, sample->value);
    else
        page_add(text, "%" PRId64, sample->value);
}

static void add_parts(struct page_text *text, const fb_sample *row, uint32_t n)
{
    const char *last = NULL;

    page_add(text, "<td class=\"text parts\">");
    for (uint32_t i = 0; i < n; i++) {
        if (!is_part(&row[i]))
            continue;
        if (row[i].name != last)
            page_add(text, "%s%s: ", last != NULL ? "; " : "", page_column(&row[i]));
        else
            page_add(text, ", ");
        page_add_value(text, row[i].labels[row[i].label_n - 1].value, escape_html);
        page_add(text, " %" PRId64, row[i].value);
        last = row[i].name;
    }
}

static void add_table_row(struct page_text *text, const fb_sample *row, uint32_t n)
{
    page_add(text, "<tr>");
    for (uint32_t i = 0; i < row->key_n; i++) {
        page_add(text, i == 0 ? "<th scope=\"row\">" : "<td class=\"text\">");
        page_add_value(text, row->labels[i].value, escape_html);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!is_part(&row[i]))
            add_cell(text, &row[i]);
    add_parts(text, row, n);
    page_add(text, "\n");
}

static const struct page_format html = {
    .head = head,
    .add_kind = add_table,
    .add_row = add_table_row,
    .between = "",
    .kind_end = "</tbody></table></section>\n",
    .tail = "</main>\n</html>\n",
};

bool page_add_html(fb_worker *worker, struct page_worker *own, struct page_client *client)
{
    return page_add_rows(worker, own, client, &html);
}
