/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `thread_pool`. The pool "default" is a member of the struct, and the first of the
 * list; other pools lie in the cycle's memory. A handle of the SDK is the address of a pool. */
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <string.h>

#define DEFAULT_POOL "default"
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

static const struct parameter parameters[] = {
    { "threads=", PARAMETER_NUMBER, offsetof(struct fb_pool, threads), 1, 1024,
        "a number between 1 and 1024" },
    { "max_queue=", PARAMETER_NUMBER, offsetof(struct fb_pool, queue), 1, INT32_MAX,
        "a number between 1 and 2147483647" },
    { .name = NULL },
};

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
    for (unsigned i = 1; i < directive->arg_n; i++)
        if (parameter_set(
                apply, directive, i, parameters, "threads=number or max_queue=number", pool) == -1)
            return -1;
    if (pool->threads == 0)
        return set_bad_value(apply, directive, 0, "expected threads=number after the name");
    return 0;
}
