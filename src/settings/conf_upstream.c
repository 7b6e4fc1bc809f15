/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads for protocols where clients are to be connected to. A text may name a group that stands
 * further down: it is looked up at the end. */
#include "settings/calls.h"

#include "settings/apply.h"
#include "settings/lookup.h"
#include "settings/protocol.h"
#include "settings/template.h"

/* Makes a group of one address. */
static struct upstream *make_single(fb_conf *conf, const char *directive, const char *text)
{
    struct apply *apply = conf->apply;
    struct upstream *upstream = apply_alloc(apply, sizeof(*upstream));
    struct upstream_server *server = apply_alloc(apply, sizeof(*server));
    const struct fb_target *target = settings_target(conf, directive, text);

    if (upstream == NULL || server == NULL || target == NULL)
        return NULL;
    upstream->kind = UPSTREAM_KIND;
    upstream->is_single = true;
    upstream->name = server->name = target->text;
    server->target = target;
    server->weight = server->max_fails = 1;
    server->fail_timeout = 10000;
    STAILQ_INIT(&upstream->servers);
    STAILQ_INSERT_TAIL(&upstream->servers, server, link);
    upstream->server_n = 1;
    STAILQ_INSERT_TAIL(&apply->cycle->stream.upstreams, upstream, link);
    return upstream;
}

const fb_upstream *settings_upstream(fb_conf *conf, const char *directive, const char *text)
{
    struct apply *apply = conf->apply;
    struct fb_upstream *where = apply_alloc(apply, sizeof(*where));
    const fb_template *template = settings_template(conf, directive, text);
    struct value constant;

    if (where == NULL || template == NULL)
        return NULL;
    where->all = &apply->cycle->stream.upstreams;
    where->text = (const struct template *)template;
    if (!template_is_constant(where->text, &constant))
        return where;
    where->upstream = make_single(conf, directive, text);
    return where->upstream != NULL ? where : NULL;
}
