/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and checks one argument of a directive. Each refusal reports the argument, the reason and
 * the expected value. */
#include "settings/set_value.h"

#include "base/check.h"
#include "base/number.h"
#include "settings/apply.h"
#include "settings/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

int set_bad_value(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *format, ...)
{
    const struct conf_word *word = &directive->args[arg];
    char text[512];
    va_list args;

    assert(arg < directive->arg_n);
    if (rows_is_unterminated(apply, directive, arg))
        return -1;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_error(apply->report, word, "invalid value \"%s\" in \"%s\" directive: %s", word->text,
        directive->name.text, text);
    return -1;
}

static const char *next_name(void *arg)
{
    const char *const **names = arg;

    return **names != NULL ? *(*names)++ : NULL;
}

int set_bad_name(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected)
{
    const char *near = nearest_name(directive->args[arg].text, next_name, &names);

    if (near != NULL)
        return set_bad_value(
            apply, directive, arg, "expected %s, did you mean \"%s\"?", expected, near);
    return set_bad_value(apply, directive, arg, "expected %s", expected);
}

int set_choice(struct apply *apply, const struct conf_directive *directive,
    const char *const *names, const char *expected, void *field)
{
    const char *text = directive->args[0].text;
    int64_t found = -1;

    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0 || (found == -1 && strcasecmp(text, names[i]) == 0))
            found = i;
    if (found != -1) {
        *(int64_t *)field = found;
        return 0;
    }
    return set_bad_name(apply, directive, 0, names, expected);
}

static const char *const flags[] = { "off", "on", NULL };

int set_flag(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_choice(apply, directive, flags, "\"on\" or \"off\"", field);
}

typedef enum number_status parse(const char *text, int64_t least, int64_t greatest, int64_t *out);

static const char *unit_of(parse *parse_text)
{
    if (parse_text == number_parse_usec)
        return " microseconds";
    return parse_text == number_parse_msec ? " milliseconds" : "";
}

static int set_quantity(struct apply *apply, const struct conf_directive *directive, int64_t *field,
    parse *parse_text, const char *expected)
{
    const struct setting *setting = apply->setting;
    const char *text = directive->args[0].text;
    int64_t greatest = setting->greatest_value, any;

    assert(field != NULL && directive->arg_n == 1);
    if (setting->least_value == 0 && greatest == 0)
        greatest = INT64_MAX;
    switch (parse_text(text, setting->least_value, greatest, field)) {
    case NUMBER_OK:
        return 0;
    case NUMBER_RANGE:
        if (parse_text(text, INT64_MIN, INT64_MAX, &any) != NUMBER_OK)
            return set_bad_value(apply, directive, 0, "it is too large");
        if (greatest == INT64_MAX)
            return set_bad_value(
                apply, directive, 0, "it must be at least %" PRId64, setting->least_value);
        return set_bad_value(apply, directive, 0,
            "it must be between %" PRId64 " and %" PRId64 "%s", setting->least_value, greatest,
            unit_of(parse_text));
    default:
        return set_bad_value(apply, directive, 0, "expected %s", expected);
    }
}

int set_number(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity(apply, directive, field, number_parse, "a number");
}

int set_size(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity(
        apply, directive, field, number_parse_size, "a size such as 512, 16k or 1m");
}

int set_size_or_off(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (apply->setting->least_value == 0 && strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = 0;
        return 0;
    }
    return set_size(apply, directive, field);
}

int set_msec(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (apply->setting->least_value == 0 && strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = 0;
        return 0;
    }
    return set_quantity(
        apply, directive, field, number_parse_msec, "a time such as 500ms, 30s or 1h 30m");
}

int set_usec(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = 0;
        return 0;
    }
    return set_quantity(apply, directive, field, number_parse_usec, "a time such as 50us or 1ms");
}

int set_string(struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)apply;
    *(const char **)field = directive->args[0].text;
    return 0;
}

int set_path(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (directive->args[0].text[0] == '\0')
        return set_bad_value(apply, directive, 0, "expected a path");
    *(const char **)field = apply_path(apply, directive->args[0].text);
    return *(const char **)field == NULL ? -1 : 0;
}

int set_nothing(struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)apply;
    (void)directive;
    (void)field;
    return 0;
}
