/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the tree of directives of one text. A syntax error ends the parsing; the directives before
 * the error stay, and their mistakes are reported too. */
#include "conf/conf.h"

#include "conf/lexer.h"
#include "conf/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A name in a message is clipped, so that the rest of the message is still seen. */
#define NAME "\"%.100s\""

struct parser {
    struct conf_source *source;
    const char *unit;
    /* the words of the directive under way, the name first */
    struct conf_word *words;
    unsigned word_n, word_max;
    /* the open blocks, the text itself first, and the directives that opened blocks */
    struct conf_block *blocks[CONF_DEPTH_MAX + 1];
    const struct conf_directive *openers[CONF_DEPTH_MAX + 1];
    unsigned depth;
};

static int fail_parse_memory(struct parser *parser, const struct conf_word *at)
{
    return report_error(parser->source->report, at, "out of memory");
}

static struct conf_block *create_block(struct arena *arena)
{
    struct conf_block *block = arena_alloc(arena, sizeof(*block));

    if (block != NULL)
        STAILQ_INIT(&block->directives);
    return block;
}

static int add_word(struct parser *parser, const struct conf_word *word)
{
    if (parser->word_n == parser->word_max) {
        unsigned max = parser->word_max == 0 ? 16 : parser->word_max * 2;
        struct conf_word *words = reallocarray(parser->words, max, sizeof(*words));

        if (words == NULL)
            return fail_parse_memory(parser, word);
        parser->words = words;
        parser->word_max = max;
    }
    assert(parser->word_n < parser->word_max);
    parser->words[parser->word_n++] = *word;
    return 0;
}

/* Makes a directive of the words and adds it to the innermost block; NULL without memory. */
static struct conf_directive *add_directive(struct parser *parser)
{
    struct arena *arena = parser->source->trees;
    struct conf_directive *directive = arena_alloc(arena, sizeof(*directive));
    unsigned n = parser->word_n - 1;

    assert(parser->word_n > 0 && parser->depth <= CONF_DEPTH_MAX);
    if (directive == NULL)
        return NULL;
    directive->name = parser->words[0];
    directive->arg_n = n;
    if (n > 0) {
        directive->args = arena_alloc(arena, n * sizeof(*directive->args));
        if (directive->args == NULL)
            return NULL;
        memcpy(directive->args, parser->words + 1, n * sizeof(*directive->args));
    }
    parser->word_n = 0;
    STAILQ_INSERT_TAIL(&parser->blocks[parser->depth]->directives, directive, link);
    return directive;
}

static int fail_unexpected(struct parser *parser, const struct conf_word *token)
{
    return report_error(parser->source->report, token, "unexpected \"%s\", expecting a directive%s",
        token->text, parser->depth > 0 ? " or \"}\"" : "");
}

static int end_directive(struct parser *parser, const struct conf_word *token)
{
    if (parser->word_n == 0)
        return fail_unexpected(parser, token);
    return add_directive(parser) != NULL ? 0 : fail_parse_memory(parser, token);
}

/* Whether a regular expression that is not quoted goes on with the "{". */
static bool is_within_regex(const struct parser *parser, const struct conf_word *token)
{
    const struct conf_word *word = &parser->words[parser->word_n - 1];

    return word->text[0] == '~' && word->width == strlen(word->text) && word->line == token->line &&
           word->column + word->width == token->column;
}

static int open_block(struct parser *parser, const struct conf_word *token)
{
    struct conf_directive *directive;
    struct conf_block *block;

    if (parser->word_n == 0)
        return fail_unexpected(parser, token);
    if (is_within_regex(parser, token))
        return report_error(parser->source->report, token,
            "\"{\" within the regular expression " NAME " opens a block: quote the expression",
            parser->words[parser->word_n - 1].text);
    if (parser->depth == CONF_DEPTH_MAX)
        return report_error(parser->source->report, &parser->words[0],
            "block " NAME " is nested too deeply: at most %d blocks can contain it",
            parser->words[0].text, CONF_DEPTH_MAX);
    if ((block = create_block(parser->source->trees)) == NULL ||
        (directive = add_directive(parser)) == NULL)
        return fail_parse_memory(parser, token);
    directive->block = block;
    parser->depth++;
    parser->blocks[parser->depth] = block;
    parser->openers[parser->depth] = directive;
    return 0;
}

static int close_block(struct parser *parser, const struct conf_word *token)
{
    /* the last word is where the ";" is missing; the "}" may be many lines below */
    if (parser->word_n > 0)
        return report_error(parser->source->report, &parser->words[parser->word_n - 1],
            "directive " NAME " is not terminated by \";\"", parser->words[0].text);
    if (parser->depth == 0)
        return report_error(parser->source->report, token, "unexpected \"}\", no block is open");
    assert(parser->depth > 0 &&
           parser->openers[parser->depth]->block == parser->blocks[parser->depth]);
    parser->depth--;
    return 0;
}

static int end_text(struct parser *parser, const struct conf_word *token)
{
    const struct conf_word *opener;

    if (parser->word_n > 0)
        return report_error(parser->source->report, &parser->words[parser->word_n - 1],
            "unexpected end of %s, expecting \";\": directive " NAME " is not terminated",
            parser->unit, parser->words[0].text);
    if (parser->depth == 0)
        return -1;
    opener = &parser->openers[parser->depth]->name;
    return report_error(parser->source->report, token,
        "unexpected end of %s, expecting \"}\" to close " NAME " opened at line %u", parser->unit,
        opener->text, opener->line);
}

/* Returns -1 at the end of the text, or after a report. */
static int handle_token(struct parser *parser, enum lexer_token token, const struct conf_word *word)
{
    switch (token) {
    case TOKEN_WORD:
        return add_word(parser, word);
    case TOKEN_SEMICOLON:
        return end_directive(parser, word);
    case TOKEN_OPEN:
        return open_block(parser, word);
    case TOKEN_CLOSE:
        return close_block(parser, word);
    case TOKEN_END:
        return end_text(parser, word);
    case TOKEN_FAILED:
        break;
    }
    return -1;
}

struct conf_block *conf_parse(
    struct conf_source *source, const struct conf_file *file, const char *unit)
{
    struct parser parser = { .source = source, .unit = unit };
    struct lexer lexer;
    struct conf_word word;
    enum lexer_token token;

    if ((parser.blocks[0] = create_block(source->trees)) == NULL) {
        fail_parse_memory(&parser, NULL);
        return NULL;
    }
    lexer_init(&lexer, source, file, unit);
    do
        token = lexer_next(&lexer, &word);
    while (handle_token(&parser, token, &word) == 0);
    free(parser.words);
    return parser.blocks[0];
}
