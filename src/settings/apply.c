/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/apply.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *context_name(unsigned at)
{
    switch (at) {
    case FB_AT_MAIN:
        return "the main context";
    case FB_AT_EVENTS:
        return "\"events\"";
    case FB_AT_STREAM:
        return "\"stream\"";
    case FB_AT_SERVER:
        return "\"server\"";
    default:
        return "\"stream\" or \"server\"";
    }
}

bool fb_frame_is_whole(const struct fb_apply *apply, const struct fb_frame *frame)
{
    return !frame->refused && !apply->cut && !apply->cycle->source.partial;
}

void *fb_apply_alloc(struct fb_apply *apply, size_t size)
{
    void *p = fb_arena_alloc(apply->cycle->arena, size);

    if (p == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    return p;
}

void *fb_apply_grow(struct fb_apply *apply, void *list, unsigned n, size_t size)
{
    void *larger = fb_apply_alloc(apply, (n + 1) * size);

    if (larger != NULL && n > 0)
        memcpy(larger, list, n * size);
    return larger;
}

char *fb_apply_keep(struct fb_apply *apply, const char *text)
{
    char *copy = fb_arena_strdup(apply->cycle->arena, text);

    if (copy == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    return copy;
}

const char *fb_apply_path(struct fb_apply *apply, const char *text)
{
    const char *conf = apply->options->conf;
    const char *path = text;

    if (text[0] != '/')
        path = fb_arena_printf(
            apply->cycle->arena, "%.*s/%s", (int)(strrchr(conf, '/') - conf), conf, text);
    if (path == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    return path;
}

int fb_bad_value(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *format, ...)
{
    const struct fb_conf_word *word = &directive->args[arg];
    char text[512];
    va_list args;

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

const struct fb_conf_directive *fb_frame_seen(
    const struct fb_frame *frame, const struct fb_setting *setting)
{
    const struct fb_seen *seen;

    STAILQ_FOREACH (seen, &frame->seen, link)
        if (seen->setting == setting)
            return seen->directive;
    return NULL;
}

/* Every row of every table, once each. */
struct rows {
    const struct fb_apply *apply;
    unsigned table, row;
    unsigned at; /* only rows that may stand there */
};

static const struct fb_setting *next_row(struct rows *rows)
{
    const struct fb_setting *const *tables = rows->apply->tables;

    for (; tables[rows->table] != NULL; rows->table++, rows->row = 0)
        while (tables[rows->table][rows->row].name != NULL) {
            const struct fb_setting *setting = &tables[rows->table][rows->row++];

            if (setting->at & rows->at)
                return setting;
        }
    return NULL;
}

static const char *next_row_name(void *arg)
{
    const struct fb_setting *setting = next_row(arg);

    return setting != NULL ? setting->name : NULL;
}

static const struct fb_setting *find_row(
    const struct fb_apply *apply, const char *name, unsigned at)
{
    struct rows rows = { .apply = apply, .at = at };
    const struct fb_setting *setting;

    while ((setting = next_row(&rows)) != NULL)
        if (strcmp(setting->name, name) == 0)
            return setting;
    return NULL;
}

/* What people bring along from nginx; a row of the same name goes first. */
static const char *const only_nginx[] = { "access_log", "allow", "debug_points", "deny", "geo",
    "http", "js_import", "limit_conn", "limit_conn_zone", "lock_file", "log_format", "mail", "map",
    "pcre_jit", "preread_buffer_size", "preread_timeout", "proxy_connect_timeout", "proxy_pass",
    "proxy_protocol", "proxy_timeout", "resolver", "server_name", "set", "split_clients",
    "ssl_certificate", "ssl_certificate_key", "ssl_engine", "ssl_preread", "ssl_protocols",
    "upstream", "worker_aio_requests" };

const struct fb_setting *fb_apply_find(const struct fb_apply *apply, const char *name)
{
    return find_row(apply, name, FB_AT_ANY);
}

static bool is_only_nginx(const char *name)
{
    for (size_t i = 0; i < fb_countof(only_nginx); i++)
        if (strcmp(only_nginx[i], name) == 0)
            return true;
    return false;
}

static void report_unknown(struct fb_apply *apply, const struct fb_conf_directive *directive)
{
    const struct fb_conf_word *name = &directive->name;
    const struct fb_setting *elsewhere = find_row(apply, name->text, FB_AT_ANY);
    struct rows here = { .apply = apply, .at = apply->frame->at };
    struct rows anywhere = { .apply = apply, .at = FB_AT_ANY };
    const char *near;

    if (elsewhere != NULL) {
        fb_conf_error(apply->report, name,
            "\"%s\" directive is not allowed here, it belongs into %s", name->text,
            context_name(elsewhere->at));
        return;
    }
    if (apply->lacks_module && (apply->frame->at & (FB_AT_STREAM | FB_AT_SERVER))) {
        apply->frame->refused = true;
        return;
    }
    if (is_only_nginx(name->text)) {
        fb_conf_error(
            apply->report, name, "\"%s\" directive of nginx is not supported", name->text);
        return;
    }
    near = fb_nearest(name->text, next_row_name, &here);
    if (near == NULL)
        near = fb_nearest(name->text, next_row_name, &anywhere);
    if (near != NULL)
        fb_conf_error(apply->report, name, "unknown directive \"%s\", did you mean \"%s\"?",
            name->text, near);
    else
        fb_conf_error(apply->report, name, "unknown directive \"%s\"", name->text);
}

static bool check_arguments(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    char expected[64];

    if (directive->arg_n >= setting->least && directive->arg_n <= setting->most)
        return true;
    if (setting->least == setting->most)
        snprintf(expected, sizeof(expected), "%u", setting->least);
    else if (setting->most == UCHAR_MAX)
        snprintf(expected, sizeof(expected), "at least %u", setting->least);
    else
        snprintf(expected, sizeof(expected), "%u to %u", setting->least, setting->most);
    fb_conf_error(apply->report,
        directive->arg_n > setting->most ? &directive->args[setting->most] : &directive->name,
        "invalid number of arguments in \"%s\" directive: expected %s, found %u", setting->name,
        expected, directive->arg_n);
    return false;
}

static bool check_form(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    if (setting->block && directive->block == NULL)
        fb_conf_error(apply->report, &directive->name, "directive \"%s\" has no opening \"{\"",
            setting->name);
    else if (!setting->block && directive->block != NULL)
        fb_conf_error(apply->report, &directive->name,
            "directive \"%s\" is not terminated by \";\", it takes no block", setting->name);
    else
        return check_arguments(apply, setting, directive);
    return false;
}

static bool check_repetition(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    const struct fb_conf_directive *first = fb_frame_seen(apply->frame, setting);
    struct fb_seen *seen;

    if (first != NULL && !setting->repeats) {
        fb_conf_error(apply->report, &directive->name,
            "\"%s\" directive is duplicate, it stands in %s:%u already", setting->name,
            first->name.file->name, first->name.line);
        return false;
    }
    seen = fb_apply_alloc(apply, sizeof(*seen));
    if (seen == NULL)
        return false;
    *seen = (struct fb_seen) { .setting = setting, .directive = directive };
    STAILQ_INSERT_TAIL(&apply->frame->seen, seen, link);
    return true;
}

/* The context's struct. */
static void *base_of(struct fb_apply *apply, const struct fb_setting *setting)
{
    if (setting->at & FB_AT_MAIN)
        return &apply->cycle->core;
    if (setting->at & FB_AT_EVENTS)
        return &apply->cycle->events;
    return apply->frame->settings;
}

static void set(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    char *field;

    if (setting->protocol != NULL)
        field = protocol_field(apply, setting, directive);
    else
        field = (char *)base_of(apply, setting) + setting->offset;
    if (field != NULL)
        setting->set(apply, setting, directive, field);
}

static bool leads_to_master(const struct fb_setting *setting)
{
    return setting != NULL &&
           (strcmp(setting->name, "pid") == 0 || strcmp(setting->name, "control") == 0 ||
               strcmp(setting->name, "include") == 0 ||
               strcmp(setting->name, "env_substitution") == 0);
}

void fb_apply_block(struct fb_apply *apply, const struct fb_conf_block *block)
{
    const struct fb_conf_directive *directive;

    STAILQ_FOREACH (directive, &block->directives, link) {
        const struct fb_setting *setting = find_row(apply, directive->name.text, apply->frame->at);
        const struct fb_conf_directive *substituted;

        if (apply->options->only_pid && !leads_to_master(setting))
            continue;
        if (setting == NULL)
            report_unknown(apply, directive);
        else if (check_form(apply, setting, directive) &&
                 check_repetition(apply, setting, directive) &&
                 (substituted = fb_apply_substitute(apply, directive)) != NULL)
            set(apply, setting, substituted);
    }
}

void fb_apply_inner(struct fb_apply *apply, struct fb_frame *frame, unsigned at,
    const struct fb_conf_directive *directive)
{
    unsigned errors = apply->report->error_n;

    frame->at = at;
    frame->outer = apply->frame;
    frame->directive = directive;
    STAILQ_INIT(&frame->seen);
    STAILQ_INIT(&frame->servers);
    STAILQ_INIT(&frame->listens);
    apply->frame = frame;
    if (directive != NULL)
        fb_apply_block(apply, directive->block);
    if (apply->report->error_n > errors + frame->server_errors)
        frame->refused = true;
    apply->frame = frame->outer;
}

static const char defaults[] = "the built-in defaults";

/* One that takes any number of arguments: its initial value is cut into words as if it were written. */
static void set_initial_words(struct fb_apply *apply, const struct fb_setting *setting)
{
    const char *text =
        fb_arena_printf(apply->cycle->arena, "%s %s;", setting->name, setting->initial);
    const struct fb_conf_block *block =
        text == NULL ? NULL
                     : fb_conf_parse_text(&apply->cycle->source, defaults, text, strlen(text));
    const struct fb_conf_directive *directive =
        block == NULL ? NULL : STAILQ_FIRST(&block->directives);

    if (text == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    else if (directive != NULL && check_form(apply, setting, directive))
        set(apply, setting, directive);
}

static void set_initial(struct fb_apply *apply, const struct fb_setting *setting)
{
    struct fb_conf_file file = { .name = defaults, .text = "" };
    struct fb_conf_word value = { .text = setting->initial, .file = &file };
    struct fb_conf_directive directive = {
        .name = { .text = setting->name, .file = &file },
        .args = &value,
        .arg_n = 1,
    };

    set(apply, setting, &directive);
}

void fb_apply_initial(
    struct fb_apply *apply, struct fb_frame *frame, const struct fb_setting *setting)
{
    bool words = setting->declared != NULL && setting->declared->value == FB_VALUE_CUSTOM;
    struct fb_frame *saved = apply->frame;

    if (setting->initial == NULL)
        return;
    apply->frame = frame;
    if (words)
        set_initial_words(apply, setting);
    else
        set_initial(apply, setting);
    apply->frame = saved;
}

void fb_apply_defaults(
    struct fb_apply *apply, struct fb_frame *frame, const struct fb_setting *table)
{
    struct fb_frame *outer = frame->outer;

    for (const struct fb_setting *setting = table; setting->name != NULL; setting++) {
        if (!(setting->at & frame->at) || fb_frame_seen(frame, setting) != NULL)
            continue;
        if (outer != NULL && setting->size > 0 && fb_frame_seen(outer, setting) != NULL)
            memcpy((char *)frame->settings + setting->offset,
                (char *)outer->settings + setting->offset, setting->size);
        else
            fb_apply_initial(apply, frame, setting);
    }
}
