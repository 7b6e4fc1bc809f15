/* SPDX-License-Identifier: BSD-2-Clause */
/* Prepares the passing of clients from server to server. A configuration without passing protocols
 * gets no list, and sessions begin as ever. */
#include "features/pass/directives.h"

#include "features/features.h"
#include "features/pass/circles.h"
#include "session/session.h"
#include "settings/calls.h"
#include "settings/lookup.h"
#include "settings/protocol.h"
#include "settings/template.h"

#include <string.h>

/* Reads an address without variables; -1 after a report. */
static int set_address(
    fb_conf *conf, const char *directive, const char *text, struct address *address)
{
    const char *whole = apply_address(conf->apply, text), *wrong;
    struct fb_target target;

    if (whole == NULL)
        return -1;
    wrong = lookup_target(conf->apply, whole, &target);
    if (wrong != NULL)
        return settings_report(conf, directive, "invalid address \"%s\": %s", text, wrong);
    *address = target.address;
    return 0;
}

const fb_listener *pass_listener_of_conf(fb_conf *conf, const char *directive, const char *text)
{
    const struct conf_word *word = settings_word(conf, directive, text);
    struct fb_listener *listener = apply_alloc(conf->apply, sizeof(*listener));
    struct pass_use *use = apply_alloc(conf->apply, sizeof(*use));
    struct pass_conf *passes = feature_conf(conf->apply, FEATURE_PASS);
    struct value constant;

    if (word == NULL || listener == NULL || use == NULL)
        return NULL;
    listener->text = template_of(conf->apply, word, word->text);
    if (listener->text == NULL)
        return NULL;
    if (template_is_constant(listener->text, &constant) &&
        set_address(conf, directive, text, &listener->address) == -1)
        return NULL;
    *use = (struct pass_use) { .listener = listener, .word = word, .protocol = conf->protocol };
    STAILQ_INSERT_TAIL(&passes->uses, use, link);
    return listener;
}

static bool passes(const struct pass_conf *conf, const fb_protocol *protocol)
{
    const struct pass_use *use;

    STAILQ_FOREACH (use, &conf->uses, link)
        if (use->protocol == protocol)
            return true;
    return false;
}

/* Whether the addresses of some servers are known to the daemon alone. */
static bool are_unknown(const struct scope *stream)
{
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        if (server->listens_unknown)
            return true;
    return false;
}

static void pass_servers(struct apply *apply, const struct scope *stream)
{
    const struct pass_conf *conf = feature_conf(apply, FEATURE_PASS);
    bool connects = stream_connects(&apply->cycle->stream);
    struct binding_list *list;
    struct pass_use *use;

    if (STAILQ_EMPTY(&conf->uses) || apply->report->error_n > 0)
        return;
    list = apply_alloc(apply, sizeof(*list));
    if (list == NULL || pass_bindings_list(apply, list) == -1)
        return;
    for (unsigned i = 0; i < list->n; i++) {
        struct binding *binding = list->places[i].binding;

        binding->server->passes = passes(conf, binding->server->protocol);
        if (binding->server->passes && connects) /* perhaps to one of those that do */
            binding->server->connects = true;
        if (binding->server->passes && binding->ops == &session_conn_ops)
            binding->ops = &pass_conn_ops;
        if (binding->server->passes)
            binding->server->proceed = pass_begin_client;
    }
    STAILQ_FOREACH (use, &conf->uses, link) {
        struct fb_listener *listener = use->listener;

        listener->bindings = list;
        if (listener->address.length > 0 && !are_unknown(stream) &&
            pass_bindings_find(list, &listener->address) == NULL)
            report_error(apply->report, use->word, "no server listens on \"%s\"", use->word->text);
    }
}

static void pass_begin(struct apply *apply)
{
    struct pass_conf *conf = feature_conf(apply, FEATURE_PASS);

    STAILQ_INIT(&conf->uses);
}

static void pass_bind(struct apply *apply, struct scope *stream)
{
    pass_servers(apply, stream);
    circles_check(apply);
}

const struct feature pass_feature = {
    .name = "pass",
    .conf_size = sizeof(struct pass_conf),
    .begin = pass_begin,
    .bind = pass_bind,
};
