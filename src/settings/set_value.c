/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses an argument; a refusal reports the argument, the reason and the expected value. */
#include "settings/set_value.h"

#include "base/check.h"
#include "base/number.h"
#include "net/address_parse.h"
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
    return report_error(apply->report, word, "invalid value \"%s\" in \"%s\" directive: %s",
        word->text, directive->name.text, text);
}

int set_bad_name(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected)
{
    struct nearest near = { .word = directive->args[arg].text };

    for (; *names != NULL; names++)
        nearest_try(&near, *names);
    if (near.found != NULL)
        return set_bad_value(
            apply, directive, arg, "expected %s, did you mean \"%s\"?", expected, near.found);
    return set_bad_value(apply, directive, arg, "expected %s", expected);
}

int set_bad_address(struct apply *apply, const struct conf_directive *directive, const char *wrong)
{
    set_bad_value(apply, directive, 0, "%s", wrong);
    if (address_is_unresolved(wrong))
        report_note_temporary(apply->report);
    return -1;
}

/* Lists the names as `"a", "b" or "c"`. */
static const char *list_names(const char *const *names, char *text, size_t size)
{
    size_t n = 0;

    text[0] = '\0';
    for (int i = 0; names[i] != NULL && n < size; i++) {
        const char *between = i == 0 ? "" : names[i + 1] != NULL ? ", " : " or ";
        int length = snprintf(text + n, size - n, "%s\"%s\"", between, names[i]);

        n += length > 0 ? (size_t)length : size;
    }
    return text;
}

int set_choice(struct apply *apply, const struct conf_directive *directive,
    const char *const *names, const char *expected, void *field)
{
    const char *text = directive->args[0].text;
    char list[256];
    int64_t found = -1;

    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0 || (found == -1 && strcasecmp(text, names[i]) == 0))
            found = i;
    if (found != -1) {
        *(int64_t *)field = found;
        return 0;
    }
    if (expected == NULL)
        expected = list_names(names, list, sizeof(list));
    return set_bad_name(apply, directive, 0, names, expected);
}

int set_name(struct apply *apply, const struct conf_directive *directive, void *field)
{
    assert(apply->setting->names != NULL);
    return set_choice(apply, directive, apply->setting->names, NULL, field);
}

int set_flag(struct apply *apply, const struct conf_directive *directive, void *field)
{
    static const char *const flags[] = { "off", "on", NULL };

    return set_choice(apply, directive, flags, "\"on\" or \"off\"", field);
}

/* Numbers and their units. */
static const struct quantity {
    enum number_status (*parse)(const char *text, int64_t least, int64_t greatest, int64_t *out);
    const char *expected, *unit;
} number = { number_parse, "a number", "" },
  size = { number_parse_size, "a size such as 512, 16k or 1m", "" },
  msec = { number_parse_msec, "a time such as 500ms, 30s or 1h 30m", " milliseconds" },
  usec = { number_parse_usec, "a time such as 50us or 1ms", " microseconds" };

static int set_quantity(struct apply *apply, const struct conf_directive *directive, int64_t *field,
    const struct quantity *quantity)
{
    const char *text = directive->args[0].text;
    int64_t least = apply->setting->least_value, greatest = apply->setting->greatest_value, any;

    assert(field != NULL && directive->arg_n == 1);
    if (least == 0 && greatest == 0)
        greatest = INT64_MAX;
    switch (quantity->parse(text, least, greatest, field)) {
    case NUMBER_OK:
        return 0;
    case NUMBER_RANGE:
        if (quantity->parse(text, INT64_MIN, INT64_MAX, &any) != NUMBER_OK)
            return set_bad_value(apply, directive, 0, "the value is too large");
        if (greatest == INT64_MAX)
            return set_bad_value(apply, directive, 0, "the value must be at least %" PRId64, least);
        return set_bad_value(apply, directive, 0,
            "the value must be between %" PRId64 " and %" PRId64 "%s", least, greatest,
            quantity->unit);
    default:
        return set_bad_value(apply, directive, 0, "expected %s", quantity->expected);
    }
}

static int set_quantity_or_off(struct apply *apply, const struct conf_directive *directive,
    int64_t *field, const struct quantity *quantity)
{
    if (apply->setting->least_value != 0 || strcmp(directive->args[0].text, "off") != 0)
        return set_quantity(apply, directive, field, quantity);
    *field = 0;
    return 0;
}

int set_number(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity(apply, directive, field, &number);
}

int set_size(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity(apply, directive, field, &size);
}

int set_size_or_off(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity_or_off(apply, directive, field, &size);
}

int set_msec(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity_or_off(apply, directive, field, &msec);
}

int set_usec(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_quantity_or_off(apply, directive, field, &usec);
}

int set_number_or_auto(
    struct apply *apply, const struct conf_directive *directive, int64_t *field, bool *is_auto)
{
    const char *text = directive->args[0].text;
    int64_t any;

    *is_auto = strcmp(text, "auto") == 0;
    if (*is_auto)
        return 0;
    if (number_parse(text, INT64_MIN, INT64_MAX, &any) == NUMBER_MALFORMED)
        return set_bad_value(apply, directive, 0, "expected a number, or \"auto\"");
    return set_number(apply, directive, field);
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
