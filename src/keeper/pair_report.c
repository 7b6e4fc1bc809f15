/* SPDX-License-Identifier: BSD-2-Clause */
/* The report about certificates: see pair_report.h. */
#include "keeper/pair_report.h"

#include "base/json.h"
#include "keeper/pair_load.h"

#include <stdio.h>

static void write_pair(struct pairs *pairs, const struct tls_pair *of, struct json *json)
{
    const struct pair_failure *failure = pair_load_failure(pairs, of->number);
    char names[PAIR_NAMES], error[TLS_REPORT_TEXT];
    struct pair_facts facts;

    json_object(json, NULL);
    json_number(json, "certificate", of->certificate);
    json_number(json, "key", of->key);
    if (pair_get_facts(&facts, names, &pairs->store, of->number)) {
        json_string(json, "names", names);
        json_number(json, "not_after", facts.expiry);
        if (facts.swapped != 0)
            json_number(json, "swapped", facts.swapped);
    }
    if (failure != NULL) {
        snprintf(error, sizeof(error), "%s", failure->text);
        json_number(json, "refused", failure->at);
        json_string(json, "error", error);
    }
    json_close(json);
}

char *pair_report_write(struct pairs *pairs, size_t *n)
{
    uint32_t shown = 0, left_out = 0;
    struct pairs_walk walk;
    struct pair_place place;
    struct json json;

    json_begin(&json);
    json_object(&json, NULL);
    json_array(&json, "certificates");
    pairs_walk_begin(pairs, &walk);
    while ((place = pairs_walk_next(pairs, &walk)).of != NULL) {
        if (shown == TLS_REPORT_MOST) {
            left_out++;
            continue;
        }
        shown++;
        write_pair(pairs, place.of, &json);
    }
    json_close(&json);
    json_number(&json, "left_out", left_out);
    json_close(&json);
    return json_end(&json, n);
}
