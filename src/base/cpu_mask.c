/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads sets of processors, and picks those of workers. Binds no worker. */
#include "base/cpu_mask.h"

#include "os/process.h"

#include <assert.h>
#include <string.h>

void cpu_mask_add(struct cpu_mask *mask, unsigned cpu)
{
    assert(cpu < CPU_MASK_MAX);
    mask->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

unsigned cpu_mask_count(const struct cpu_mask *mask)
{
    unsigned n = 0;

    for (unsigned cpu = 0; cpu < CPU_MASK_MAX; cpu++)
        n += cpu_mask_has(mask, cpu);
    return n;
}

struct cpu_mask cpu_mask_without(const struct cpu_mask *mask, const struct cpu_mask *other)
{
    struct cpu_mask left = *mask;

    for (unsigned i = 0; i < CPU_MASK_WORDS; i++)
        left.words[i] &= ~other->words[i];
    return left;
}

unsigned cpu_mask_first(const struct cpu_mask *mask)
{
    unsigned cpu = 0;

    while (cpu < CPU_MASK_MAX && !cpu_mask_has(mask, cpu))
        cpu++;
    return cpu;
}

struct cpu_mask cpu_mask_choose(const struct cpu_mask *allowed, unsigned index)
{
    unsigned count = cpu_mask_count(allowed), nth = count > 0 ? index % count : 0;
    struct cpu_mask chosen = { { 0 } };

    for (unsigned cpu = 0; cpu < CPU_MASK_MAX; cpu++)
        if (cpu_mask_has(allowed, cpu) && nth-- == 0)
            cpu_mask_add(&chosen, cpu);
    return chosen;
}

const char *cpu_mask_parse(const char *text, struct cpu_mask *out)
{
    size_t n = strlen(text);

    *out = (struct cpu_mask) { { 0 } };
    if (text[strspn(text, "01")] != '\0' || n == 0)
        return "a mask consists of the digits 0 and 1";
    if (n > CPU_MASK_MAX)
        return "a mask has at most 1024 digits";
    for (unsigned cpu = 0; cpu < n; cpu++)
        if (text[n - 1 - cpu] == '1')
            cpu_mask_add(out, cpu);
    return cpu_mask_count(out) > 0 ? NULL : "a mask needs at least one processor";
}

bool cpu_mask_find_usable(struct cpu_mask *out)
{
    struct cpu_mask before, all;
    bool known;

    memset(&all, 0xff, sizeof(all));
    if (os_cpu_bound(before.words, CPU_MASK_WORDS) == -1 ||
        os_cpu_bind(all.words, CPU_MASK_WORDS) == -1)
        return false;
    known = os_cpu_bound(out->words, CPU_MASK_WORDS) == 0;
    os_cpu_bind(before.words, CPU_MASK_WORDS);
    return known && cpu_mask_count(out) > 0;
}
