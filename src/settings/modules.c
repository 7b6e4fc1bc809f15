/* SPDX-License-Identifier: BSD-2-Clause */
/* `load_module`: loads a module and adds its protocol, unless the name of the protocol or of a
 * directive exists. A module of nginx is left alone, for unchanged configurations of nginx. */
#include "base/check.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/nginx_only.h"
#include "settings/protocol.h"
#include "settings/rows.h"
#include "settings/set_value.h"

#include "session/stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *path_of(struct apply *apply, const char *text)
{
    if (text[0] == '/')
        return text;
    return apply_taken(
        apply, arena_printf(apply->cycle->arena, "%s/%s", apply->options->module_directory, text));
}

/* Names the owner of a protocol, or of a directive that is no protocol's (NULL). */
static const char *owner_name(
    const struct apply *apply, const fb_protocol *protocol, char text[512])
{
    const char *path = protocol != NULL ? protocol_module(apply, protocol) : NULL;

    if (path == NULL || path[0] != '/')
        return "forkbeard itself";
    snprintf(text, 512, "module \"%s\"", path);
    return text;
}

/* Checks that all names of the protocol are new; -1 after a report. */
static int check_names(struct apply *apply, const struct conf_word *word, const char *path,
    const fb_protocol *protocol)
{
    const fb_protocol *const *others = apply->cycle->protocols;
    const struct setting *taken;
    char text[512];

    for (unsigned i = 0; others[i] != NULL; i++)
        if (strcmp(others[i]->name, protocol->name) == 0)
            return report_error(apply->report, word,
                "module \"%s\" has a protocol \"%s\", and so has %s: load only one of them", path,
                protocol->name, owner_name(apply, others[i], text));
    for (uint32_t i = 0; i < protocol->directive_n; i++) {
        const char *name = protocol->directives[i].name;

        taken = rows_find(apply, name, CONTEXT_ANY & ~(unsigned)CONTEXT_OWN);
        if (taken != NULL)
            return report_error(apply->report, word,
                "module \"%s\" has a directive \"%s\", and so has %s: load only one of them", path,
                name, owner_name(apply, taken->protocol, text));
    }
    return 0;
}

static int check_number(struct apply *apply, const struct conf_word *word, const char *path)
{
    unsigned n = 0;

    while (apply->cycle->protocols[n] != NULL)
        n++;
    if (n < STREAM_PROTOCOLS_MAX)
        return 0;
    return report_error(apply->report, word,
        "too many protocols with module \"%s\": at most %d can exist", path, STREAM_PROTOCOLS_MAX);
}

/* With -t an unreadable file is a warning, and directives may then be unknown. */
static void refuse_module(
    struct apply *apply, const struct conf_word *word, const char *path, const char *why, int error)
{
    struct conf_source *source = &apply->cycle->source;

    if (error != EACCES || !source->lenient) {
        report_error(apply->report, word, "module \"%s\" %s", path, why);
        return;
    }
    source->partial = true;
    report_warn(apply->report, word, "module \"%s\" %s", path, why);
}

/* Puts the checked protocol in the module's place, for `debug_modules`; -1 after a report. */
static int check_module(
    struct apply *apply, const struct conf_word *word, const char *path, struct module *module)
{
    const fb_protocol *checked =
        module_debug(apply->cycle->arena, module->protocol, module->original);

    if (checked == NULL)
        return report_error(apply->report, NULL, "out of memory");
    if (checked == module->protocol)
        return report_error(apply->report, word,
            "module \"%s\" cannot be checked, as \"debug_modules\" asks: the module's calls could "
            "not "
            "be redirected",
            path);
    module->protocol = checked;
    return 0;
}

/* -1 after a report. */
static int load_one(struct apply *apply, const struct conf_word *word, const char *path)
{
    struct cycle *cycle = apply->cycle;
    char why[MODULE_TEXT];
    struct module *module;

    assert(path[0] == '/');
    check_progress_enter(
        apply->options->progress, word, "while it was loaded", "module \"%s\"", path);
    module = module_load(&cycle->modules, cycle->arena, path, why);
    check_progress_leave(apply->options->progress);
    if (module == NULL) {
        refuse_module(apply, word, path, why, errno);
        return -1;
    }
    if (cycle->core.debug_modules != 0 && check_module(apply, word, path, module) == -1)
        return -1;
    if (check_number(apply, word, path) == -1 ||
        check_names(apply, word, path, module->protocol) == -1 ||
        protocol_add(apply, module->protocol) == -1)
        return -1;
    return 0;
}

int modules_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *path;

    (void)field;
    if (directive->args[0].text[0] == '\0')
        return set_bad_value(apply, directive, 0, "expected a path");
    if (nginx_module(directive->args[0].text)) {
        report_notice(apply->report, &directive->args[0],
            "\"%s\" is a module of nginx, and is not loaded: its features are built in, or not "
            "supported",
            directive->args[0].text);
        return 0;
    }
    path = path_of(apply, directive->args[0].text);
    if (path != NULL && load_one(apply, &directive->args[0], path) == 0)
        return 0;
    apply->lacks_module = true;
    return -1;
}
