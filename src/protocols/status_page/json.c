/* SPDX-License-Identifier: BSD-2-Clause */
/* /status.json: an array for each kind of thing, an object for each thing with labels, numbers,
 * objects for the parts of numbers, and objects for histograms. */
#include "protocols/status_page/status_page.h"

#include <inttypes.h>

/* Adds a comma, but after the begin of an object. */
static void add_comma(struct page_text *text)
{
    if (text->p[text->n - 1] != '{')
        page_add(text, ",");
}

static void add_string(struct page_text *text, const char *value)
{
    page_add(text, "\"");
    page_add_value(text, value, page_escape_quoted);
    page_add(text, "\"");
}

static void add_times(struct page_text *text, const fb_sample *sample)
{
    page_add(text, "{\"count\":%" PRIu64 ",\"sum\":%" PRIu64 ".%03u,\"buckets\":[",
        page_times(sample), sample->sum / 1000, (unsigned)(sample->sum % 1000));
    for (unsigned i = 0; i < FB_SAMPLE_BUCKETS; i++)
        page_add(text, "%s%" PRIu64, i > 0 ? "," : "", sample->buckets[i]);
    page_add(text, "]}");
}

/* Adds a number under its name, or the number of a part within an object of all parts. */
static void add_number(struct page_text *text, const fb_sample *sample, bool opens, bool closes)
{
    bool is_part = sample->label_n > sample->key_n;

    add_comma(text);
    if (opens)
        page_add(text, "\"%s%s%s\":%s", page_column(sample), sample->unit != NULL ? "_" : "",
            sample->unit != NULL ? sample->unit : "", is_part ? "{" : "");
    if (is_part) {
        add_string(text, sample->labels[sample->label_n - 1].value);
        page_add(text, ":");
    }
    if (sample->kind == FB_SAMPLE_HISTOGRAM)
        add_times(text, sample);
    else
        page_add(text, "%" PRId64, sample->value);
    if (is_part && closes)
        page_add(text, "}");
}

static void add_object(struct page_text *text, const fb_sample *row, uint32_t n)
{
    page_add(text, "{");
    for (uint32_t i = 0; i < row->key_n; i++) {
        add_comma(text);
        page_add(text, "\"%s\":", row->labels[i].name);
        add_string(text, row->labels[i].value);
    }
    for (uint32_t i = 0; i < n; i++)
        add_number(text, &row[i], i == 0 || row[i - 1].name != row[i].name,
            i + 1 == n || row[i + 1].name != row[i].name);
    page_add(text, "}");
}

static void add_kind(struct page_text *text, const fb_sample *row, uint32_t n)
{
    (void)n;
    page_add(text, ",\n\"%s\":[", row->thing);
}

static const struct page_format json = {
    .head = "{\"schema\":1",
    .add_kind = add_kind,
    .add_row = add_object,
    .between = ",\n",
    .kind_end = "]",
    .tail = "}\n",
};

bool page_add_json(fb_worker *worker, struct page_worker *own, struct page_client *client)
{
    return page_add_rows(worker, own, client, &json);
}
