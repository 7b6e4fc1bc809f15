/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples as text: the format of Prometheus (0.0.4), or OpenMetrics 1.0, which names counters
 * without "_total" in comments, and ends with "# EOF". */
#include "protocols/status_page/status_page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Adds to the text; what does not fit is cut, which PAGE_TEXT leaves room for. */
static void add(struct page_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct page_text *text, const char *format, ...)
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

/* Adds a label's value of at most 300 bytes, and so never cuts what follows. */
static void add_label_value(struct page_text *text, const char *value)
{
    for (unsigned n = 0; *value != '\0' && n < 300; value++, n++)
        if (*value == '"' || *value == '\\')
            add(text, "\\%c", *value);
        else
            add(text, "%c", (unsigned char)*value < ' ' ? '?' : *value);
}

/* Adds the name of a sample up to its value; `le`, the bound of a bucket, is NULL for none. */
static void add_sample_name(
    struct page_text *text, const fb_sample *sample, const char *ending, const char *le)
{
    const char *before = "{";

    add(text, "%s%s%s%s", sample->name, sample->unit != NULL ? "_" : "",
        sample->unit != NULL ? sample->unit : "", ending);
    for (uint32_t i = 0; i < sample->label_n; i++) {
        add(text, "%s%s=\"", before, sample->labels[i].name);
        add_label_value(text, sample->labels[i].value);
        add(text, "\"");
        before = ",";
    }
    if (le != NULL)
        add(text, "%sle=\"%s\"", before, le);
    add(text, "%s ", le != NULL || sample->label_n > 0 ? "}" : "");
}

static void add_family(struct page_text *text, const fb_sample *sample, bool open_metrics)
{
    static const char *const kinds[] = {
        [FB_SAMPLE_COUNTER] = "counter",
        [FB_SAMPLE_GAUGE] = "gauge",
        [FB_SAMPLE_HISTOGRAM] = "histogram",
    };
    const char *unit = sample->unit != NULL ? sample->unit : "";
    const char *line = *unit != '\0' ? "_" : "";
    const char *ending = sample->kind == FB_SAMPLE_COUNTER && !open_metrics ? "_total" : "";

    add(text, "# HELP %s%s%s%s %s\n", sample->name, line, unit, ending, sample->help);
    add(text, "# TYPE %s%s%s%s %s\n", sample->name, line, unit, ending, kinds[sample->kind]);
    if (open_metrics && *unit != '\0')
        add(text, "# UNIT %s%s%s %s\n", sample->name, line, unit, unit);
}

/* Adds every second bucket: 1 ms, 4 ms, 16 ms and so on. */
static void add_histogram(struct page_text *text, const fb_sample *sample)
{
    uint64_t n = 0;
    char le[32];

    for (unsigned i = 0; i < FB_SAMPLE_BUCKETS; i++) {
        n += sample->buckets[i];
        if (i % 2 == 1)
            continue;
        snprintf(le, sizeof(le), "%.10g", (double)(UINT64_C(1) << i) / 1000);
        add_sample_name(text, sample, "_bucket", le);
        add(text, "%" PRIu64 "\n", n);
    }
    add_sample_name(text, sample, "_bucket", "+Inf");
    add(text, "%" PRIu64 "\n", n);
    add_sample_name(text, sample, "_sum", NULL);
    add(text, "%" PRIu64 ".%03u\n", sample->sum / 1000, (unsigned)(sample->sum % 1000));
    add_sample_name(text, sample, "_count", NULL);
    add(text, "%" PRIu64 "\n", n);
}

bool page_add_metrics(fb_worker *worker, struct page_worker *own, struct page_client *client)
{
    struct page_text *text = &own->text;
    fb_sample sample = { .size = sizeof(sample) };

    while (text->n < PAGE_PIECE) {
        if (own->metrics->next(worker, &client->cursor, &sample) == 0) {
            if (client->open_metrics)
                add(text, "# EOF\n");
            return false;
        }
        if (sample.name != client->family)
            add_family(text, &sample, client->open_metrics);
        client->family = sample.name;
        if (sample.kind == FB_SAMPLE_HISTOGRAM) {
            add_histogram(text, &sample);
            continue;
        }
        add_sample_name(text, &sample, sample.kind == FB_SAMPLE_COUNTER ? "_total" : "", NULL);
        add(text, "%" PRId64 "\n", sample.value);
    }
    return true;
}
