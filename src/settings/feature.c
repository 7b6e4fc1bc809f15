/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows, structs and variables of all features for the reading of stream {}. */
#include "settings/feature.h"

#include "text/variable.h"

#include <assert.h>
#include <string.h>

static unsigned count_rows(const struct setting *rows)
{
    unsigned n = 0;

    while (rows != NULL && rows[n].name != NULL)
        n++;
    return n;
}

/* Appends rows of a feature, counted from 1; 0: no feature. Returns the end. */
static struct setting *add_rows(struct setting *end, const struct setting *rows, unsigned feature)
{
    for (unsigned i = 0; i < count_rows(rows); i++) {
        *end = rows[i];
        (end++)->feature = feature;
    }
    return end;
}

const struct setting *feature_rows(struct apply *apply)
{
    const struct feature *const *features = apply->options->features;
    unsigned n = count_rows(stream_rows);
    struct setting *rows, *end;

    for (unsigned i = 0; features[i] != NULL; i++)
        n += count_rows(features[i]->rows);
    rows = apply_alloc(apply, (n + 1) * sizeof(*rows));
    if (rows == NULL)
        return NULL;
    end = add_rows(rows, stream_rows, 0);
    for (unsigned i = 0; features[i] != NULL; i++)
        end = add_rows(end, features[i]->rows, features[i]->server_size > 0 ? 1 + i : 0);
    return rows;
}

void **feature_make_structs(struct apply *apply, size_t size)
{
    const struct feature *const *features = apply->options->features;
    void **structs = apply_alloc(apply, STREAM_FEATURES * sizeof(void *));

    for (unsigned i = 0; structs != NULL && features[i] != NULL; i++) {
        size_t n = *(const size_t *)(const void *)((const char *)features[i] + size);

        assert(i < STREAM_FEATURES);
        if (n > 0 && (structs[i] = apply_alloc(apply, n)) == NULL)
            return NULL;
    }
    return structs;
}

const struct variable_row *const *feature_variables(struct apply *apply)
{
    const struct feature *const *features = apply->options->features;
    const struct variable_row **tables =
        apply_alloc(apply, (STREAM_FEATURES + 2) * sizeof(struct variable_row *));
    unsigned n = 0;

    if (tables == NULL)
        return NULL;
    tables[n++] = variables_builtin;
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->variables != NULL)
            tables[n++] = features[i]->variables;
    return tables;
}

int feature_add_handler(struct apply *apply, struct server *server, enum stream_phase phase,
    unsigned (*run)(struct fb_conn *conn, const void *arg), const void *arg)
{
    struct phase_handler *handler = apply_alloc(apply, sizeof(*handler));
    struct phase_handler **at = phase == PHASE_LOG ? &server->after : &server->before;

    assert(phase < STREAM_PHASES && run != NULL);
    if (handler == NULL)
        return -1;
    while (*at != NULL && (*at)->phase <= phase)
        at = &(*at)->next;
    *handler = (struct phase_handler) { .next = *at, .phase = phase, .run = run, .arg = arg };
    *at = handler;
    return 0;
}
