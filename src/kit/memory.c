/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of connections and protocols: counts allocations, and refuses the allocations that a
 * test has named. Memory for the start of a worker is counted too, and refused only by a
 * conversation.
 *
 * Each piece has a block of its own. The address sanitizer and valgrind see all wrong uses of a
 * block; without them zones around the block show writes beyond its ends, and a freed block is kept
 * for a while, to show late writes. */
#include "checked/memory.h"
#include "kit/kit.h"

#include <errno.h>
#include <string.h>

/* Bytes before a block, with the size, and of the zone behind. */
#define ZONE 16

/* A function of the address sanitizer; NULL in a program without it. */
extern void __asan_poison_memory_region(const volatile void *p, size_t n) __attribute__((weak));

static fb_test *test_of_memory(struct kit_memory *m)
{
    return container_of(m, struct fb_test, memory);
}

static struct kit_memory *kit_memory_of(const struct memory *memory)
{
    return container_of(memory, struct kit_memory, memory);
}

/* Whether a sanitizer sees wrong uses of memory, given blocks of exact size. */
static bool memory_is_watched(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return __asan_poison_memory_region != NULL ||
           (preload != NULL && strstr(preload, "vgpreload") != NULL);
}

/* Makes a block between zones, of which the first begins with the size. */
static void *make_block(size_t n)
{
    uint8_t *whole = n < SIZE_MAX - 2 * ZONE ? malloc(n + 2 * ZONE) : NULL;

    if (whole == NULL)
        return NULL;
    memset(whole, CHECKED_BYTE, ZONE);
    memcpy(whole, &n, sizeof(n));
    memset(whole + ZONE + n, CHECKED_BYTE, ZONE);
    return whole + ZONE;
}

static size_t block_size(const uint8_t *block)
{
    size_t n;

    memcpy(&n, block - ZONE, sizeof(n));
    return n;
}

/* Frees a kept block, and reports a use of the block. */
static void free_kept(struct kit_memory *m, uint8_t *block)
{
    if (block == NULL)
        return;
    if (!checked_is_filled(block, block_size(block) + ZONE))
        kit_fault(
            test_of_memory(m), "wrote to memory of %zu bytes after its end", block_size(block));
    free(block - ZONE);
}

/* Checks an ending block, and keeps the block in place of the oldest. */
static void keep_block(struct kit_memory *m, uint8_t *block)
{
    size_t n = block_size(block);

    if (!checked_is_filled(block - ZONE + sizeof(n), ZONE - sizeof(n)))
        kit_fault(test_of_memory(m), "wrote before the beginning of memory of %zu bytes", n);
    if (!checked_is_filled(block + n, ZONE))
        kit_fault(test_of_memory(m), "wrote beyond memory of %zu bytes", n);
    memset(block, CHECKED_BYTE, n + ZONE);
    free_kept(m, m->kept[m->kept_at]);
    m->kept[m->kept_at] = block;
    m->kept_at = (m->kept_at + 1) % countof(m->kept);
}

static void *counted_alloc(const struct memory *memory, size_t n)
{
    struct kit_memory *m = kit_memory_of(memory);
    uint64_t number = m->requested++;
    void *p = NULL;

    if (number >= m->from && number - m->from < m->most) {
        m->refused++;
        errno = ENOMEM;
        return NULL;
    }
    p = m->is_watched ? malloc(n) : make_block(n);
    m->live += p != NULL;
    return p;
}

static void counted_release(const struct memory *memory, void *p)
{
    struct kit_memory *m = kit_memory_of(memory);

    assert(p == NULL || m->live > 0);
    m->live -= p != NULL;
    if (m->is_watched)
        free(p);
    else if (p != NULL)
        keep_block(m, p);
}

void kit_memory_init(struct kit_memory *memory)
{
    *memory = (struct kit_memory) {
        .memory = { .alloc = counted_alloc, .release = counted_release, .block = 1 },
        .is_watched = memory_is_watched(),
    };
}

void kit_memory_done(struct kit_memory *memory)
{
    for (unsigned i = 0; i < countof(memory->kept); i++)
        free_kept(memory, memory->kept[i]);
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
