/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a worker in the checked mode, from the start of its first protocol that is checked
 * to the end of its last one. Never there for a worker without such a protocol. */
#include "checked/checked.h"

#include <assert.h>
#include <stdlib.h>

struct checked *checked_of(const struct worker *worker)
{
    struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if (checked->worker == worker)
            break;
    return checked;
}

struct checked *checked_begin(struct worker *worker)
{
    const struct source_table *table = &worker->stream.net.loop.sources;
    struct checked *checked = checked_of(worker);

    if (checked != NULL) {
        checked->protocol_n++;
        return checked;
    }
    checked = calloc(1, sizeof(*checked));
    if (checked == NULL)
        return NULL;
    checked->slots = calloc(table->n, sizeof(*checked->slots));
    if (checked->slots == NULL) {
        free(checked);
        return NULL;
    }
    checked->slot_n = table->n;
    checked->base = table->base;
    checked->stride = table->stride;
    checked->worker = worker;
    checked->thread = pthread_self();
    checked->protocol_n = 1;
    TAILQ_INIT(&checked->live);
    TAILQ_INIT(&checked->ended);
    SLIST_INSERT_HEAD(checked_scope_workers(), checked, link);
    checked_report_crashes();
    return checked;
}

static void free_slots(struct checked *checked)
{
    for (uint32_t i = 0; i < checked->slot_n; i++)
        checked_slot_end(checked, &checked->slots[i]);
    free(checked->slots);
}

void checked_end(struct checked *checked)
{
    struct checked_ops *ops;
    struct checked_watch *watch;
    struct checked_resolution *resolution;

    assert(checked->protocol_n > 0);
    if (--checked->protocol_n > 0)
        return;
    SLIST_REMOVE(checked_scope_workers(), checked, checked, link);
    free_slots(checked);
    checked_blocks_free(&checked->live);
    checked_blocks_free(&checked->ended);
    while ((ops = SLIST_FIRST(&checked->ops)) != NULL) {
        SLIST_REMOVE_HEAD(&checked->ops, link);
        free(ops);
    }
    while ((watch = SLIST_FIRST(&checked->watches)) != NULL) {
        SLIST_REMOVE_HEAD(&checked->watches, link);
        free(watch);
    }
    while ((resolution = SLIST_FIRST(&checked->resolutions)) != NULL) {
        SLIST_REMOVE_HEAD(&checked->resolutions, link);
        free(resolution);
    }
    free(checked);
}
