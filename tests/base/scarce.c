/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/scarce.h"

#include "base/compiler.h"

#include <check.h>

static void *alloc(const struct memory *memory, size_t n)
{
    struct scarce *scarce = container_of(memory, struct scarce, memory);
    void *p;

    scarce->asked++;
    if (scarce->fails_at != 0 && (scarce->asked == scarce->fails_at ||
                                     (scarce->for_good && scarce->asked > scarce->fails_at))) {
        scarce->failed = true;
        return NULL;
    }
    p = malloc(n);
    ck_assert_ptr_nonnull(p);
    return p;
}

static void release(const struct memory *memory, void *p)
{
    (void)memory;
    free(p);
}

void scarce_init(struct scarce *scarce)
{
    *scarce = (struct scarce) { .memory = { .alloc = alloc, .release = release, .block = 1 } };
}

void scarce_restart(struct scarce *scarce, unsigned fails_at)
{
    scarce->asked = 0;
    scarce->fails_at = fails_at;
    scarce->failed = false;
}
