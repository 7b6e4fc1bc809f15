/* SPDX-License-Identifier: BSD-2-Clause */
/* A filter of system calls under construction: the added rules. Private to sandbox/.
 *
 * The kernel uses 32 bits of an int argument, but a filter gets 64 bits: a rule that denies must
 * compare only these 32. */
#pragma once

#include "settings/needs.h"

#include <errno.h>
#include <seccomp.h>
#include <stdint.h>

#define DENY SCMP_ACT_ERRNO(EPERM)
#define ALLOW SCMP_ACT_ALLOW

struct filter {
    scmp_filter_ctx context;
    const struct needs *needs;
    /* a protocol of an older SDK cannot declare needs, so no need is denied */
    bool open;
    bool strict;
    bool ports_held; /* Landlock denies connections to other ports */
    int error;       /* the first, negative; 0 */
};

void seccomp_add_all(struct filter *filter, uint32_t action, const char *name, unsigned n,
    const struct scmp_arg_cmp *conditions);
void seccomp_add_rule(struct filter *filter, uint32_t action, const char *name);
void seccomp_add_if(
    struct filter *filter, uint32_t action, const char *name, struct scmp_arg_cmp condition);
void seccomp_add_list(struct filter *filter, uint32_t action, const char *const *names);

/* Compares the 32 bits of an int argument. */
struct scmp_arg_cmp seccomp_arg_is(unsigned arg, uint32_t value);
/* Compares all 64 bits of an argument. */
struct scmp_arg_cmp seccomp_arg_compare(unsigned arg, enum scmp_compare op, uint64_t value);
/* Compare an argument: none of the bits, or all bits. */
struct scmp_arg_cmp seccomp_arg_has_not(unsigned arg, uint64_t bits);
struct scmp_arg_cmp seccomp_arg_has(unsigned arg, uint64_t bits);
