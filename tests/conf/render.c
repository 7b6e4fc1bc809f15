/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates the objects of a parse, and writes a tree as text, with every word in brackets. */
#include "conf/render.h"

#include <check.h>
#include <stdio.h>

void conf_create_from(struct conf *conf, const struct memory *memory)
{
    conf->arena = arena_create_from(memory);
    ck_assert_ptr_nonnull(conf->arena);
    report_init(&conf->report, conf->arena);
    conf_source_init(&conf->source, conf->arena, &conf->report);
}

void conf_create(struct conf *conf)
{
    conf_create_from(conf, &memory_plain);
}

void conf_destroy(struct conf *conf)
{
    arena_destroy(&conf->arena);
}

static void write_block(const struct conf_block *block, FILE *out)
{
    const struct conf_directive *directive;

    STAILQ_FOREACH (directive, &block->directives, link) {
        fprintf(out, "%s%s", directive == STAILQ_FIRST(&block->directives) ? "" : " ",
            directive->name.text);
        for (unsigned i = 0; i < directive->arg_n; i++)
            fprintf(out, "<%s>", directive->args[i].text);
        if (directive->block == NULL) {
            fputc(';', out);
            continue;
        }
        fputc('{', out);
        write_block(directive->block, out);
        fputc('}', out);
    }
}

static FILE *open_text(char **text, size_t *size)
{
    FILE *out = open_memstream(text, size);

    ck_assert_ptr_nonnull(out);
    return out;
}

char *render_block(const struct conf_block *block)
{
    char *text;
    size_t size;
    FILE *out = open_text(&text, &size);

    if (block == NULL)
        fputs("(none)", out);
    else
        write_block(block, out);
    fclose(out);
    return text;
}

char *render_report(const struct conf_report *report)
{
    const struct report_mistake *mistake;
    char *text;
    size_t size;
    FILE *out = open_text(&text, &size);

    STAILQ_FOREACH (mistake, &report->mistakes, link)
        fprintf(out, "%s%s\n", mistake->level == LEVEL_EMERG ? "" : "warning: ", mistake->message);
    fclose(out);
    return text;
}
