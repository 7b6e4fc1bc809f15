/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and checks one argument, and reports what is wrong with it and what was expected. */
#include "settings/set_value.h"

#include "base/check.h"
#include "base/number.h"
#include "settings/apply.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fb_bad_value(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *format, ...)
{
    const struct fb_conf_word *word = &directive->args[arg];
    char text[512];
    va_list args;

    assert(arg < directive->arg_n);
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_conf_error(apply->report, word, "invalid value \"%s\" in \"%s\" directive: %s", word->text,
        directive->name.text, text);
    return -1;
}

static const char *next_name(void *arg)
{
    const char *const **names = arg;

    return **names != NULL ? *(*names)++ : NULL;
}

int fb_bad_name(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected)
{
    const char *near = fb_nearest(directive->args[arg].text, next_name, &names);

    if (near != NULL)
        return fb_bad_value(
            apply, directive, arg, "expected %s, did you mean \"%s\"?", expected, near);
    return fb_bad_value(apply, directive, arg, "expected %s", expected);
}

int set_choice(struct fb_apply *apply, const struct fb_conf_directive *directive,
    const char *const *names, const char *expected, void *field)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(directive->args[0].text, names[i]) == 0) {
            *(int64_t *)field = i;
            return 0;
        }
    return fb_bad_name(apply, directive, 0, names, expected);
}

static const char *const flags[] = { "off", "on", NULL };

FB_SETTER(fb_set_flag)
{
    (void)setting;
    return set_choice(apply, directive, flags, "\"on\" or \"off\"", field);
}

typedef enum fb_number_status parse(
    const char *text, int64_t least, int64_t greatest, int64_t *out);

static int set_quantity(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive, int64_t *field, parse *parse_text,
    const char *expected)
{
    const char *text = directive->args[0].text;
    int64_t greatest = setting->greatest_value, any;

    assert(field != NULL && directive->arg_n == 1);
    if (setting->least_value == 0 && greatest == 0)
        greatest = INT64_MAX;
    switch (parse_text(text, setting->least_value, greatest, field)) {
    case FB_NUMBER_OK:
        return 0;
    case FB_NUMBER_RANGE:
        if (parse_text(text, INT64_MIN, INT64_MAX, &any) != FB_NUMBER_OK)
            return fb_bad_value(apply, directive, 0, "it is too large");
        if (greatest == INT64_MAX)
            return fb_bad_value(
                apply, directive, 0, "it must be at least %" PRId64, setting->least_value);
        return fb_bad_value(apply, directive, 0, "it must be between %" PRId64 " and %" PRId64 "%s",
            setting->least_value, greatest, parse_text == fb_parse_msec ? " milliseconds" : "");
    default:
        return fb_bad_value(apply, directive, 0, "expected %s", expected);
    }
}

FB_SETTER(fb_set_number)
{
    return set_quantity(apply, setting, directive, field, fb_parse_number, "a number");
}

FB_SETTER(fb_set_size)
{
    return set_quantity(
        apply, setting, directive, field, fb_parse_size, "a size such as 512, 16k or 1m");
}

FB_SETTER(fb_set_msec)
{
    if (setting->least_value == 0 && strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = 0;
        return 0;
    }
    return set_quantity(
        apply, setting, directive, field, fb_parse_msec, "a time such as 500ms, 30s or 1h 30m");
}

FB_SETTER(fb_set_string)
{
    (void)apply;
    (void)setting;
    *(const char **)field = directive->args[0].text;
    return 0;
}

FB_SETTER(fb_set_path)
{
    (void)setting;
    if (directive->args[0].text[0] == '\0')
        return fb_bad_value(apply, directive, 0, "expected a path");
    *(const char **)field = fb_apply_path(apply, directive->args[0].text);
    return *(const char **)field == NULL ? -1 : 0;
}

FB_SETTER(fb_set_nothing)
{
    (void)apply;
    (void)setting;
    (void)directive;
    (void)field;
    return 0;
}

static int apply_included(void *arg, struct fb_conf_block *block)
{
    struct fb_apply *apply = arg;

    CHECK_KIND(apply, APPLY_KIND);
    fb_apply_block(apply, block);
    return 0;
}

FB_SETTER(fb_set_include)
{
    const char *pattern = fb_apply_path(apply, directive->args[0].text);

    CHECK_KIND(apply, APPLY_KIND);
    (void)setting;
    (void)field;
    if (pattern == NULL)
        return -1;
    return fb_conf_include(
        &apply->cycle->source, &directive->args[0], pattern, apply_included, apply);
}
