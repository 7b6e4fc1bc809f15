/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples as text: the format of Prometheus (0.0.4), or OpenMetrics 1.0, which names counters
 * without "_total" in comments, and ends with "# EOF". */
#include "protocols/status_page/status_page.h"

#include <inttypes.h>
#include <stdio.h>

/* Adds the name of a sample up to its value; `le`, the bound of a bucket, is NULL for none. */
static void add_sample_name(
    struct page_text *text, const fb_sample *sample, const char *ending, const char *le)
{
    const char *before = "{";

    page_add(text, "%s%s%s%s", sample->name, sample->unit != NULL ? "_" : "",
        sample->unit != NULL ? sample->unit : "", ending);
    for (uint32_t i = 0; i < sample->label_n; i++) {
        page_add(text, "%s%s=\"", before, sample->labels[i].name);
        page_add_value(text, sample->labels[i].value, page_escape_quoted);
        page_add(text, "\"");
        before = ",";
    }
    if (le != NULL)
        page_add(text, "%sle=\"%s\"", before, le);
    page_add(text, "%s ", le != NULL || sample->label_n > 0 ? "}" : "");
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

    page_add(text, "# HELP %s%s%s%s %s\n", sample->name, line, unit, ending, sample->help);
    page_add(text, "# TYPE %s%s%s%s %s\n", sample->name, line, unit, ending, kinds[sample->kind]);
    if (open_metrics && *unit != '\0')
        page_add(text, "# UNIT %s%s%s %s\n", sample->name, line, unit, unit);
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
        page_add(text, "%" PRIu64 "\n", n);
    }
    add_sample_name(text, sample, "_bucket", "+Inf");
    page_add(text, "%" PRIu64 "\n", n);
    add_sample_name(text, sample, "_sum", NULL);
    page_add(text, "%" PRIu64 ".%03u\n", sample->sum / 1000, (unsigned)(sample->sum % 1000));
    add_sample_name(text, sample, "_count", NULL);
    page_add(text, "%" PRIu64 "\n", n);
}

bool page_add_metrics(fb_worker *worker, struct page_worker *own, struct page_client *client)
{
    struct page_text *text = &own->text;
    fb_sample sample = { .size = sizeof(sample) };

    while (text->n < PAGE_PIECE) {
        if (own->metrics->next(worker, &client->cursor, &sample) == 0) {
            if (client->open_metrics)
                page_add(text, "# EOF\n");
            return false;
        }
        if (sample.name != client->last)
            add_family(text, &sample, client->open_metrics);
        client->last = sample.name;
        if (sample.kind == FB_SAMPLE_HISTOGRAM) {
            add_histogram(text, &sample);
            continue;
        }
        add_sample_name(text, &sample, sample.kind == FB_SAMPLE_COUNTER ? "_total" : "", NULL);
        page_add(text, "%" PRId64 "\n", sample.value);
    }
    return true;
}
