/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of processors, in words for os_cpu_bind() and os_cpu_bound() (os/process.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CPU_MASK_MAX 1024
#define CPU_MASK_WORDS (CPU_MASK_MAX / 64)

struct cpu_mask {
    uint64_t words[CPU_MASK_WORDS];
};

static inline bool cpu_mask_has(const struct cpu_mask *mask, unsigned cpu)
{
    return cpu < CPU_MASK_MAX && (mask->words[cpu / 64] >> cpu % 64 & 1) != 0;
}

void cpu_mask_add(struct cpu_mask *mask, unsigned cpu);
unsigned cpu_mask_count(const struct cpu_mask *mask);
/* The processors of `mask` that `other` lacks. */
struct cpu_mask cpu_mask_without(const struct cpu_mask *mask, const struct cpu_mask *other);
/* The first processor; CPU_MASK_MAX: there is none. */
unsigned cpu_mask_first(const struct cpu_mask *mask);
/* "0101": the rightmost digit is processor 0. Returns NULL, or what is wrong. */
const char *cpu_mask_parse(const char *text, struct cpu_mask *out);
/* A worker's mask by `worker_cpu_affinity auto`: a processor of `allowed`, in turn. */
struct cpu_mask cpu_mask_choose(const struct cpu_mask *allowed, unsigned index);
/* Finds the processors that this process may be bound to; false where the kernel does not tell. For
 * config checks: changes the mask for a moment, which then no longer follows the control group. */
bool cpu_mask_find_usable(struct cpu_mask *out);
