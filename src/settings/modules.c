/* SPDX-License-Identifier: BSD-2-Clause */
/* `load_module`: a module's protocol stands beside the built-in ones from then on. */
#include "settings/apply.h"

#include "stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *path_of(struct fb_apply *apply, const char *text)
{
    const char *path = text;

    if (text[0] != '/')
        path =
            fb_arena_printf(apply->cycle->arena, "%s/%s", apply->options->module_directory, text);
    if (path == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    return path;
}

/* Who has a protocol, or a directive that is no protocol's (NULL). */
static const char *owner(const struct fb_apply *apply, const fb_protocol *protocol, char text[512])
{
    const struct module *module;

    SLIST_FOREACH (module, &apply->cycle->modules, link)
        if (module->protocol == protocol) {
            snprintf(text, 512, "module \"%s\"", module->path);
            return text;
        }
    return "forkbeard itself";
}

/* -1 after a report: a name that it brings along is taken. */
static int check_names(struct fb_apply *apply, const struct fb_conf_word *word, const char *path,
    const fb_protocol *protocol)
{
    const fb_protocol *const *others = apply->cycle->protocols;
    const struct fb_setting *taken;
    char text[512];

    for (unsigned i = 0; others[i] != NULL; i++)
        if (strcmp(others[i]->name, protocol->name) == 0) {
            fb_conf_error(apply->report, word,
                "module \"%s\" has a protocol \"%s\", as has %s: load one of them", path,
                protocol->name, owner(apply, others[i], text));
            return -1;
        }
    for (uint32_t i = 0; i < protocol->directive_n; i++) {
        const char *name = protocol->directives[i].name;

        taken = fb_apply_find(apply, name);
        if (taken == NULL)
            continue;
        fb_conf_error(apply->report, word,
            "module \"%s\" has a directive \"%s\", as has %s: load one of them", path, name,
            owner(apply, taken->protocol, text));
        return -1;
    }
    return 0;
}

static int check_number(struct fb_apply *apply, const struct fb_conf_word *word, const char *path)
{
    unsigned n = 0;

    while (apply->cycle->protocols[n] != NULL)
        n++;
    if (n < FB_PROTOCOLS_MAX)
        return 0;
    fb_conf_error(apply->report, word, "module \"%s\" is one too many: there can be %d protocols",
        path, FB_PROTOCOLS_MAX);
    return -1;
}

/* What may not be read in a test is a warning, and what is missing may lie there. */
static void refuse(struct fb_apply *apply, const struct fb_conf_word *word, const char *path,
    const char *why, int error)
{
    struct fb_conf_source *source = &apply->cycle->source;

    if (error != EACCES || !source->lenient) {
        fb_conf_error(apply->report, word, "module \"%s\" %s", path, why);
        return;
    }
    source->partial = true;
    fb_conf_warn(apply->report, word, "module \"%s\" %s", path, why);
}

/* -1 after a report. */
static int load(struct fb_apply *apply, const struct fb_conf_word *word, const char *path)
{
    struct fb_cycle *cycle = apply->cycle;
    char why[FB_MODULE_TEXT];
    struct module *module;

    fb_progress_enter(apply->options->progress, word, "while it was loaded", "module \"%s\"", path);
    module = fb_module_load(&cycle->modules, cycle->arena, path, why);
    fb_progress_leave(apply->options->progress);
    if (module == NULL) {
        refuse(apply, word, path, why, errno);
        return -1;
    }
    if (check_number(apply, word, path) == -1 ||
        check_names(apply, word, path, module->protocol) == -1 ||
        protocol_add(apply, module->protocol) == -1)
        return -1;
    return 0;
}

FB_SETTER(fb_set_load_module)
{
    const char *path;

    (void)setting;
    (void)field;
    if (directive->args[0].text[0] == '\0')
        return fb_bad_value(apply, directive, 0, "expected a path");
    path = path_of(apply, directive->args[0].text);
    if (path != NULL && load(apply, &directive->args[0], path) == 0)
        return 0;
    apply->lacks_module = true;
    return -1;
}
