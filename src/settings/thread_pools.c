/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `thread_pool`. The pool "default" is a member of the struct, and the first of the
 * list; other pools lie in the cycle's memory. A handle of the SDK is the address of a pool. */
#include "base/number.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/set_value.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define DEFAULT_POOL "default"
#define THREADS_MAX 1024
#define QUEUE 65536 /* default of a pool without `max_queue` */

const struct fb_pool *core_find_pool(const struct core_settings *core, const char *name)
{
    const struct fb_pool *pool = &core->pool;

    if (strcmp(name, DEFAULT_POOL) == 0)
        return pool; /* nameless until a directive, or the end of the file, sets the name */
    pool = pool->next;
    while (pool != NULL && strcmp(pool->name, name) != 0)
        pool = pool->next;
    return pool;
}

/* Reads "NAME=number". Returns 0 for a different option, -1 after a report. */
static int set_pool_option(struct apply *apply, const struct conf_directive *directive,
    unsigned arg, const char *name, int64_t greatest, int64_t *out)
{
    const char *value = set_option(directive->args[arg].text, name);

    if (value == NULL)
        return 0;
    if (number_parse(value, 1, greatest, out) == NUMBER_OK)
        return 1;
    return set_bad_value(
        apply, directive, arg, "expected a number between 1 and %" PRId64, greatest);
}

/* Appends a pool without threads; NULL after a report. */
static struct fb_pool *add_pool(struct apply *apply, const char *name)
{
    struct fb_pool *last = &apply->cycle->core.pool, *pool = apply_alloc(apply, sizeof(*pool));

    if (pool == NULL)
        return NULL;
    while (last->next != NULL)
        last = last->next;
    *pool = (struct fb_pool) { .name = name, .queue = QUEUE, .index = last->index + 1 };
    last->next = pool;
    return pool;
}

static int set_options(
    struct apply *apply, const struct conf_directive *directive, struct fb_pool *pool)
{
    for (unsigned i = 1; i < directive->arg_n; i++) {
        int is = set_pool_option(apply, directive, i, "threads", THREADS_MAX, &pool->threads);

        if (is == 0)
            is = set_pool_option(apply, directive, i, "max_queue", INT_MAX, &pool->queue);
        if (is == 0)
            is = set_bad_value(apply, directive, i, "expected threads=number or max_queue=number");
        if (is == -1)
            return -1;
    }
    return 0;
}

int thread_pools_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct fb_pool *first = &apply->cycle->core.pool, *pool;
    const char *name = directive->args[0].text;

    (void)field;
    if (first->name == NULL) { /* unwritten parts have their defaults */
        first->name = DEFAULT_POOL;
        apply_initial(apply, apply->scope, apply->setting);
    }
    pool = (struct fb_pool *)core_find_pool(&apply->cycle->core, name);
    if (pool != NULL && pool->written)
        return set_bad_value(apply, directive, 0, "there is a pool of this name already");
    if (*name == '\0')
        return set_bad_value(apply, directive, 0, "expected a name");
    if (pool == NULL && (pool = add_pool(apply, name)) == NULL)
        return -1;
    pool->written = directive->name.line > 0;
    if (set_options(apply, directive, pool) == -1)
        return -1;
    if (pool->threads == 0)
        return set_bad_value(apply, directive, 0, "expected threads=number after the name");
    return 0;
}
