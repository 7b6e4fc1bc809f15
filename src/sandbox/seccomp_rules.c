/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds rules to a filter of system calls. A call that this architecture or libseccomp does not know
 * is passed over; the first failure stays with the filter. */
#include "sandbox/seccomp_rules.h"

#include <assert.h>
#include <stddef.h>

#define INT UINT32_MAX /* the bits of one */

void seccomp_add_all(struct filter *filter, uint32_t action, const char *name, unsigned n,
    const struct scmp_arg_cmp *conditions)
{
    int call = seccomp_syscall_resolve_name(name), error;

    assert(filter->error <= 0);
    if (call == __NR_SCMP_ERROR || filter->error != 0)
        return;
    error = seccomp_rule_add_array(filter->context, action, call, n, conditions);
    if (error != 0 && error != -EDOM && error != -EEXIST) /* no call of this architecture; twice */
        filter->error = error;
}

void seccomp_add_rule(struct filter *filter, uint32_t action, const char *name)
{
    seccomp_add_all(filter, action, name, 0, NULL);
}

void seccomp_add_if(
    struct filter *filter, uint32_t action, const char *name, struct scmp_arg_cmp condition)
{
    seccomp_add_all(filter, action, name, 1, &condition);
}

void seccomp_add_list(struct filter *filter, uint32_t action, const char *const *names)
{
    for (; *names != NULL; names++)
        seccomp_add_rule(filter, action, *names);
}

struct scmp_arg_cmp seccomp_arg_is(unsigned arg, uint32_t value)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, INT, value);
}

struct scmp_arg_cmp seccomp_arg_compare(unsigned arg, enum scmp_compare op, uint64_t value)
{
    return (struct scmp_arg_cmp) { .arg = arg, .op = op, .datum_a = value };
}

struct scmp_arg_cmp seccomp_arg_has_not(unsigned arg, uint64_t bits)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, 0);
}

struct scmp_arg_cmp seccomp_arg_has(unsigned arg, uint64_t bits)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, bits);
}
