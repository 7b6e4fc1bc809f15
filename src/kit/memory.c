/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of connections and their protocols: counts allocations, and refuses those that the
 * test has named. Memory of the worker itself, before its start, is counted but never refused. */
#include "kit/kit.h"

#include <errno.h>

static struct kit_memory *memory_of(const struct memory *memory)
{
    return container_of(memory, struct kit_memory, memory);
}

static void *counted_alloc(const struct memory *memory, size_t n)
{
    struct kit_memory *m = memory_of(memory);
    uint64_t number = m->requested++;
    void *p = NULL;

    if (number >= m->from && number - m->from < m->most) {
        m->refused++;
        errno = ENOMEM;
        return NULL;
    }
    p = malloc(n);
    m->live += p != NULL;
    return p;
}

static void counted_release(const struct memory *memory, void *p)
{
    struct kit_memory *m = memory_of(memory);

    assert(p == NULL || m->live > 0);
    m->live -= p != NULL;
    free(p);
}

void kit_memory_init(struct kit_memory *memory)
{
    *memory = (struct kit_memory) {
        .memory = { .alloc = counted_alloc, .release = counted_release },
    };
}

void fb_test_refuse_memory(fb_test *test, uint64_t after, uint64_t n)
{
    CHECK_KIND(test, KIT_TEST);
    test->memory.from = test->memory.requested + after;
    test->memory.most = n;
}

uint64_t fb_test_allocations(const fb_test *test)
{
    return test->memory.requested;
}
