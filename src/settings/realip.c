/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of `set_real_ip_from`, and the variables of PROXY headers. A name is resolved when
 * the configuration is read, as a name of `listen` is. */
#include "settings/realip.h"

#include "settings/apply.h"
#include "settings/lookup.h"
#include "settings/set_value.h"
#include "stream/session_proxy.h"

#include <string.h>

/* Returns the place behind the last block; the memory doubles when it is full. NULL after a
 * report. */
static struct address_block *add_block(struct apply *apply, struct trusted_setting *trusted)
{
    size_t n = (size_t)trusted->n;
    struct address_block *larger;

    assert((n == 0) == (trusted->blocks == NULL));
    if ((n & (n - 1)) == 0) {
        larger = apply_alloc(apply, (n > 0 ? 2 * n : 1) * sizeof(*larger));
        if (larger == NULL)
            return NULL;
        if (n > 0)
            memcpy(larger, trusted->blocks, n * sizeof(*larger));
        trusted->blocks = larger;
    }
    trusted->n++;
    return &trusted->blocks[n];
}

SETTER(realip_set)
{
    struct address_block found[LOOKUP_ADDRESSES_MAX], *block;
    unsigned n;

    (void)setting;
    if (lookup_clients(apply, directive, found, &n) == -1)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        block = add_block(apply, field);
        if (block == NULL)
            return -1;
        *block = found[i];
    }
    return 0;
}

void realip_finish(struct apply *apply)
{
    struct variables *variables = &apply->cycle->stream.variables;
    struct variable *variable = NULL;

    while ((variable = variables_next(variables, variable)) != NULL) {
        if (variable->index == 0 || !variables_proxy_has(variable))
            continue;
        variables->uses_proxy = true;
        if (!variables_proxy_knows(variable))
            report_error(apply->report, variable->used_at,
                "unknown \"%s\" variable: expected the number "
                "of a type, 0x00 to 0xff",
                variable->name);
    }
}
