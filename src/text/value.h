/* SPDX-License-Identifier: BSD-2-Clause */
/* A value of a session: text of the session's memory, of the configuration, or of the program. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum value_state {
    VALUE_UNKNOWN, /* not worked out */
    VALUE_BEGUN,   /* being worked out; found so by a value in a cycle */
    VALUE_FOUND,
    VALUE_MISSING, /* no value: "-" in a log, nothing elsewhere */
};

/* A value in a session; the bytes are lent until the session has ended. */
struct value {
    const char *p;
    uint32_t n;
    uint8_t state; /* enum value_state */
    uint8_t own_n; /* leading bytes from the configuration, up to 255 */
};

#define VALUE_MOST UINT32_MAX
#define VALUE_OWN_MOST UINT8_MAX

static inline struct value value_found(const char *p, size_t n)
{
    return (struct value) { .p = p, .n = (uint32_t)n, .state = VALUE_FOUND };
}
/* A text of the configuration. */
static inline struct value value_own(const char *p, size_t n)
{
    struct value value = value_found(p, n);

    value.own_n = (uint8_t)(n < VALUE_OWN_MOST ? n : VALUE_OWN_MOST);
    return value;
}
static inline struct value value_missing(void)
{
    return (struct value) { .p = "", .state = VALUE_MISSING };
}
