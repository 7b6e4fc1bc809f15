/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a configuration text: they become a tree or a mistake, and a tree that is written
 * down with every word quoted becomes the same tree again. Environment variables are replaced in
 * every word, once. No file is read. */
#include "conf/conf.h"
#include "conf/report.h"
#include "conf/substitute.h"
#include "fuzz/input.h"

#include <stdlib.h>
#include <string.h>

static void check_word(const struct conf_word *word, struct conf_report *report)
{
    const struct conf_file *file = word->file;

    require(word->line >= 1 && word->column >= 1, "a word has a place");
    require(word->width >= 1 && word->width <= file->size, "a word has a width");
    require(strlen(word->text) <= word->width, "a word is no longer than its source");
    report_warn(report, word, "word");
}

/* With an environment of values like variables. */
static void check_substitution(const struct conf_word *word)
{
    static const char *const environment[] = { "A=${B}", "B=", "NAME=x y;{}\"$${A}", NULL };
    struct arena *arena = arena_create();
    struct conf_report report;
    struct conf_source source;
    struct conf_word out;
    int status;

    require(arena != NULL, "there is memory");
    report_init(&report, arena);
    conf_source_init(&source, arena, &report);
    status = substitute_variables(&source, word, environment, &out);
    require((status == -1) == (report.error_n == 1), "what is not replaced has one mistake");
    if (status == 0)
        require(strlen(out.text) <= strlen(word->text) * 4, "a value is replaced once");
    if (!substitute_finds(word))
        require(status == 0 && strcmp(out.text, word->text) == 0, "a word without variables stays");
    arena_destroy(&arena);
}

static void write_word(const struct conf_word *word, FILE *out)
{
    fputc('"', out);
    for (const char *p = word->text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc(*p, out);
    }
    fputs("\" ", out);
}

static void write_block(const struct conf_block *block, struct conf_report *report, FILE *out)
{
    const struct conf_directive *directive;

    STAILQ_FOREACH (directive, &block->directives, link) {
        check_word(&directive->name, report);
        write_word(&directive->name, out);
        for (unsigned i = 0; i < directive->arg_n; i++) {
            check_word(&directive->args[i], report);
            check_substitution(&directive->args[i]);
            write_word(&directive->args[i], out);
        }
        if (directive->block == NULL) {
            fputs(";\n", out);
            continue;
        }
        fputs("{\n", out);
        write_block(directive->block, report, out);
        fputs("}\n", out);
    }
}

static void check_mistake(const struct report_mistake *mistake)
{
    const char *p = mistake->excerpt;
    unsigned lines = 0;

    if (p == NULL)
        return;
    require(strstr(p, "^") != NULL && strlen(p) < 4096, "an excerpt marks a word");
    for (; *p != '\0'; p++) {
        require(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f), "an excerpt is harmless");
        lines += *p == '\n';
    }
    require(lines == 2, "an excerpt has two lines");
}

/* The text's tree with its words quoted, to be freed; *error_n is the number of mistakes. */
static char *rewrite_tree(const char *text, size_t size, size_t *written, unsigned *error_n)
{
    struct arena *arena = arena_create();
    const struct report_mistake *mistake;
    const struct conf_block *block;
    struct conf_report report;
    struct conf_source source;
    char *copy = NULL;
    FILE *out = open_memstream(&copy, written);

    require(arena != NULL && out != NULL, "there is memory");
    report_init(&report, arena);
    conf_source_init(&source, arena, &report);
    block = conf_parse_text(&source, "fuzz", text, size);
    require(block != NULL, "there is a tree");
    write_block(block, &report, out);
    STAILQ_FOREACH (mistake, &report.mistakes, link)
        check_mistake(mistake);
    *error_n = report.error_n;
    fclose(out);
    arena_destroy(&arena);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t first_n, second_n;
    unsigned error_n;
    char *first = rewrite_tree((const char *)data, size, &first_n, &error_n), *second;

    require(error_n <= 1, "a text ends with its first mistake");
    second = rewrite_tree(first, first_n, &second_n, &error_n);
    require(error_n == 0, "what was written has no mistake");
    require(first_n == second_n && memcmp(first, second, first_n) == 0, "both trees are the same");
    free(first);
    free(second);
    return 0;
}
