/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads an invented block. Nothing but memory is touched. */
#include "fuzz/block.h"

#include <stdlib.h>
#include <string.h>

static const struct conf_directive *parse(struct block *block, const char *text, size_t n)
{
    const struct conf_block *parsed = conf_parse_text(&block->cycle.source, "fuzz", text, n);
    const struct conf_directive *first = STAILQ_FIRST(&parsed->directives);

    if (block->report.error_n > 0 || first == NULL || first->block == NULL)
        return NULL;
    return first;
}

static const struct variable *defined(struct block *block)
{
    return block->report.error_n > 0 ? NULL
                                     : variables_add(&block->variables, block->cycle.arena, "v", 1);
}

static const struct variable_row *const no_tables[] = { variables_builtin, NULL };

void block_read(struct block *block, const char *head,
    int (*set)(struct apply *apply, const struct conf_directive *directive, void *field),
    const uint8_t *data, size_t size)
{
    const uint8_t *nul = memchr(data, '\0', size);
    size_t n = nul != NULL ? (size_t)(nul - data) : size;
    char *text;

    *block = (struct block) { .at = data + n + (nul != NULL), .end = data + size };
    block->cycle.arena = arena_create();
    require(block->cycle.arena != NULL, "there is memory");
    RB_INIT(&block->variables.all);
    block->variables.tables = no_tables;
    block->cycle.stream.variables = &block->variables;
    report_init(&block->report, block->cycle.arena);
    conf_source_init(&block->cycle.source, block->cycle.arena, &block->report);
    block->options.conf = "/nonexistent/conf";
    block->apply = (struct apply) { .kind = APPLY_KIND,
        .cycle = &block->cycle,
        .report = &block->report,
        .options = &block->options };
    text = arena_printf(block->cycle.arena, "%s {\n%.*s\n}", head, (int)n, (const char *)data);
    require(text != NULL, "there is memory");
    if (strstr(text, "include") != NULL)
        return;
    block->directive = parse(block, text, strlen(text));
    if (block->directive == NULL)
        return;
    require((set(&block->apply, block->directive, NULL) == -1) == (block->report.error_n > 0),
        "what is refused is reported");
    block->variable = defined(block);
}

void block_free(struct block *block)
{
    arena_destroy(&block->cycle.arena);
}

const char *block_next(struct block *block, size_t *n)
{
    const uint8_t *start = block->at, *nul;

    if (start == block->end)
        return NULL;
    nul = memchr(start, '\0', (size_t)(block->end - start));
    *n = nul != NULL ? (size_t)(nul - start) : (size_t)(block->end - start);
    block->at = start + *n + (nul != NULL);
    return (const char *)start;
}
