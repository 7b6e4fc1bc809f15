/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the groups of protocols' clients. A text may name a group further down: groups are looked
 * up at the end, where an address becomes a group, shared by all directives of that address. */
#include "features/resolver/resolver.h"
#include "features/upstream/upstream.h"
#include "names/client.h"
#include "net/address_parse.h"
#include "settings/apply.h"
#include "settings/calls.h"
#include "settings/protocol.h"
#include "settings/template.h"

/* Returns the argument that has the text, or the place of the directive. */
static const struct conf_word *word_of(const fb_conf *conf, const char *directive, const char *text)
{
    for (unsigned i = 0; conf->directive != NULL && i < conf->directive->arg_n; i++)
        if (conf->directive->args[i].text == text)
            return &conf->directive->args[i];
    return settings_place(conf, directive);
}

const fb_upstream *upstream_of_conf(fb_conf *conf, const char *directive, const char *text)
{
    struct apply *apply = conf->apply;
    struct fb_upstream *where = apply_alloc(apply, sizeof(*where));
    struct upstream_use *use = apply_alloc(apply, sizeof(*use));
    const char *copy = apply_strdup(apply, text);
    const fb_template *template = settings_template(conf, directive, text);

    if (where == NULL || use == NULL || copy == NULL || template == NULL)
        return NULL;
    where->named = &upstream_conf_of(apply)->named;
    where->text = (const struct template *)template;
    *use = (struct upstream_use) {
        .where = where,
        .text = copy,
        .word = word_of(conf, directive, text),
        .settings = conf->scope->settings,
        .server = conf->scope->server,
    };
    STAILQ_INSERT_TAIL(&upstream_conf_of(apply)->uses, use, link);
    if (conf->scope->server != NULL)
        conf->scope->server->connects = true;
    return where;
}

/* A text with variables may become any address, and any name. */
static void finish_text(struct apply *apply, const struct upstream_use *use)
{
    const struct stream_settings *stream = &apply->cycle->stream;
    struct fb_upstream *where = use->where;

    where->resolver = use->settings->resolver;
    if (where->resolver == NULL)
        where->resolver = stream->resolver;
    where->resolver_timeout = use->settings->resolver_timeout;
    if (where->resolver_timeout == 0)
        where->resolver_timeout = stream->resolver_timeout;
    apply->cycle->needs.rights |= FB_NEEDS_CONNECT;
    if (names_client_built())
        resolver_use(apply, where->resolver, NAMES_OF_SESSIONS);
}

/* Reports an address without a port that is no name of a group. */
static void report_no_port(struct apply *apply, const struct upstream_use *use)
{
    const char *near = upstream_nearest(apply, use->text);

    report_error(apply->report, use->word, "no port in upstream \"%s\"%s%s%s", use->text,
        near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "");
}

/* Parses the one server of a group; -1 after a report. */
static int parse_single(
    struct apply *apply, const struct upstream_use *use, struct upstream_server *server)
{
    const char *wrong = upstream_server_parse(apply, use->text, server);
    bool is_name = wrong == NULL && server->host != NULL;

    server->word = use->word;
    if (is_name && server->port != 0 && upstream_find(apply, server->host) != NULL)
        report_error(apply->report, use->word, "upstream \"%s\" may not have port %u", server->host,
            server->port);
    else if (is_name && server->port == 0)
        report_no_port(apply, use);
    else if (wrong != NULL)
        report_error(apply->report, use->word, "invalid address \"%s\": %s", use->text, wrong);
    else
        return 0;
    return -1;
}

/* Makes the group of a single address, unless there is one; NULL after a report. */
static struct upstream *make_single(
    struct apply *apply, const struct upstream_use *use, const struct upstream *like)
{
    struct upstream *upstream = apply_alloc(apply, sizeof(*upstream)), *found;
    struct upstream_server *server = upstream_server_make(apply);

    if (upstream == NULL || server == NULL || parse_single(apply, use, server) == -1)
        return NULL;
    if (server->target != NULL)
        server->name = server->target->text;
    *upstream = *like;
    upstream->name = server->name;
    STAILQ_INIT(&upstream->servers);
    found = upstream_find_like(apply, upstream);
    if (found != NULL)
        return found;
    upstream_server_add(apply, upstream, server);
    return upstream_add(apply, upstream) == 0 ? upstream : NULL;
}

/* Returns the group of a single address, made where there is none yet; NULL after a report. */
static struct upstream *find_single(struct apply *apply, const struct upstream_use *use)
{
    struct upstream like = {
        .kind = UPSTREAM_KIND,
        .name = use->text,
        .word = use->word,
        .is_single = true,
    };
    struct upstream *found;

    if (address_has_name(use->text)) { /* different resolvers know different addresses */
        like.resolver = use->settings->resolver;
        like.resolver_timeout = use->settings->resolver_timeout;
    }
    found = upstream_find_like(apply, &like);
    return found != NULL ? found : make_single(apply, use, &like);
}

void upstream_finish_uses(struct apply *apply, struct scope *stream)
{
    const struct upstream_use *use;
    struct upstream *upstream;
    struct value constant;
    bool any = false; /* a text may become the name of any group */

    assert(stream->at == CONTEXT_STREAM);
    if (apply->cut || apply->cycle->source.partial) /* groups may stand in an unread file */
        return;
    upstream_number_names(apply);
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link) {
        if (!template_is_constant(use->where->text, &constant)) {
            finish_text(apply, use);
            any = true;
            continue;
        }
        use->where->upstream = upstream_find(apply, use->text);
        if (use->where->upstream == NULL)
            use->where->upstream = find_single(apply, use);
        if (use->where->upstream != NULL)
            use->where->upstream->is_used = true;
    }
    STAILQ_FOREACH (upstream, &apply->cycle->stream.upstreams, link)
        upstream->is_used = upstream->is_used || any;
}
