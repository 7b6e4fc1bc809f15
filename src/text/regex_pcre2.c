/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular expressions by PCRE2, interpreted: in the configuration's memory, but for a match, which
 * takes and frees the C library's. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include "session/record.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

struct regex {
    const char *text;
    struct arena *arena; /* memory of the object in the making; NULL: the C library's */
    pcre2_general_context *general;
    pcre2_match_context *limits;
    pcre2_code *code;
    unsigned name_n;
    const unsigned char *names; /* PCRE2's table: entries of a capture's number, a name and a NUL */
    unsigned name_size;
};

static void *get_memory(size_t n, void *data)
{
    const struct regex *regex = data;

    return regex->arena != NULL ? arena_alloc(regex->arena, n) : malloc(n);
}

static void release_memory(void *p, void *data)
{
    const struct regex *regex = data;

    if (regex->arena == NULL)
        free(p);
}

static int compile(struct regex *regex, const char *text, char error[REGEX_ERROR_TEXT])
{
    uint32_t options = text[0] == '*' ? PCRE2_CASELESS : 0;
    pcre2_compile_context *context = pcre2_compile_context_create(regex->general);
    unsigned char message[REGEX_ERROR_TEXT / 2];
    size_t place;
    int number;

    assert(regex->arena != NULL); /* memory of a pattern is never given back */
    regex->limits = pcre2_match_context_create(regex->general);
    if (context == NULL || regex->limits == NULL)
        return -1;
    if (text[0] == '*')
        text++;
    regex->code =
        pcre2_compile((const unsigned char *)text, strlen(text), options, &number, &place, context);
    if (regex->code != NULL)
        return 0;
    pcre2_get_error_message(number, message, sizeof(message));
    snprintf(error, REGEX_ERROR_TEXT, "%s at its byte %zu", (const char *)message, place + 1);
    return -1;
}

static int find_names(struct regex *regex, char error[REGEX_ERROR_TEXT])
{
    uint32_t n, size;

    if (pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &n) != 0 ||
        pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &size) != 0 ||
        pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &regex->names) != 0)
        return -1;
    regex->name_n = n;
    regex->name_size = size;
    if (n <= REGEX_NAMES_MAX)
        return 0;
    snprintf(
        error, REGEX_ERROR_TEXT, "the expression has more than %d named captures", REGEX_NAMES_MAX);
    return -1;
}

const struct regex *regex_compile(
    struct arena *arena, const char *text, char error[REGEX_ERROR_TEXT])
{
    struct regex *regex = arena_alloc(arena, sizeof(*regex));

    snprintf(error, REGEX_ERROR_TEXT, "out of memory");
    if (regex == NULL)
        return NULL;
    regex->text = arena_strdup(arena, text);
    if (regex->text == NULL)
        return NULL;
    regex->arena = arena;
    regex->general = pcre2_general_context_create(get_memory, release_memory, regex);
    if (regex->general == NULL || compile(regex, text, error) == -1 ||
        find_names(regex, error) == -1)
        return NULL;
    pcre2_set_match_limit(regex->limits, REGEX_STEPS_MOST);
    pcre2_set_heap_limit(regex->limits, REGEX_KIB_MOST);
    regex->arena = NULL;
    return regex;
}

unsigned regex_names(const struct regex *regex)
{
    return regex->name_n;
}

const char *regex_name(const struct regex *regex, unsigned i)
{
    assert(i < regex->name_n);
    return (const char *)regex->names + (size_t)i * regex->name_size + 2;
}

static struct value capture_of(const pcre2_match_data *data, int n, unsigned i, const char *p)
{
    const size_t *at = pcre2_get_ovector_pointer((pcre2_match_data *)data) + 2 * (size_t)i;

    if (i >= (unsigned)n || at[0] == PCRE2_UNSET || at[1] < at[0])
        return value_missing();
    return value_found(p + at[0], at[1] - at[0]);
}

static struct value named_of(
    const struct regex *regex, const pcre2_match_data *data, int n, unsigned i, const char *p)
{
    const unsigned char *row = regex->names + (size_t)i * regex->name_size;
    struct value value = capture_of(data, n, (unsigned)row[0] << 8 | row[1], p);

    return value_found(value.p, value.n);
}

static int fail(const struct regex *regex, struct fb_conn *conn, int number)
{
    unsigned char message[REGEX_ERROR_TEXT];

    if (number == PCRE2_ERROR_MATCHLIMIT)
        snprintf((char *)message, sizeof(message), "the match takes more than %d steps",
            REGEX_STEPS_MOST);
    else
        pcre2_get_error_message(number, message, sizeof(message));
    conn_log(conn, LEVEL_ERROR, 0, "the regular expression \"%s\" has failed: %s", regex->text,
        (const char *)message);
    return -1;
}

int regex_match(const struct regex *regex, struct fb_conn *conn, const char *p, size_t n,
    struct captures *captures, struct value named[REGEX_NAMES_MAX])
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(regex->code, regex->general);
    int matched = PCRE2_ERROR_NOMEMORY;

    assert(regex->arena == NULL && regex->limits != NULL);
    assert(regex->name_n <= REGEX_NAMES_MAX);
    if (data != NULL)
        matched = pcre2_match(regex->code, (const unsigned char *)p, n, 0, 0, data, regex->limits);
    for (unsigned i = 0; matched > 0 && i < CAPTURES_MAX; i++)
        captures->at[i] = capture_of(data, matched, i, p);
    for (unsigned i = 0; matched > 0 && i < regex->name_n; i++)
        named[i] = named_of(regex, data, matched, i, p);
    if (data != NULL)
        pcre2_match_data_free(data);
    if (matched == PCRE2_ERROR_NOMATCH)
        return 0;
    return matched > 0 ? 1 : fail(regex, conn, matched);
}
