/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the struct for a directive of a protocol, and gives a server the protocol. */
#include "settings/protocol_field.h"

#include "base/check.h"
#include "session/stream.h"

unsigned protocol_index(const struct apply *apply, const fb_protocol *protocol)
{
    unsigned i = 0;

    while (apply->cycle->protocols[i] != protocol) {
        assert(apply->cycle->protocols[i] != NULL);
        i++;
    }
    assert(i < STREAM_PROTOCOLS_MAX);
    return i;
}

/* Returns a directive of the protocol with the flags, written in the scope, or NULL. */
const struct scope_entry *protocol_seen(
    const struct scope *scope, const fb_protocol *protocol, uint32_t flags)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting->protocol == protocol &&
            (seen->setting->declared->flags & flags) == flags)
            return seen;
    return NULL;
}

/* Returns the stream's values of a protocol; NULL if it has no values, or after a report. */
void *protocol_stream_conf(struct apply *apply, struct scope *stream, const fb_protocol *protocol)
{
    void **conf = &stream->confs[protocol_index(apply, protocol)];

    if (*conf == NULL && protocol->conf_state > 0)
        *conf = apply_alloc(apply, protocol->conf_state);
    return *conf;
}

/* Makes the protocol the server's only protocol; -1 after a report. */
static int claim_server(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    struct server *server = apply->scope->server;
    const fb_protocol *protocol = setting->protocol;

    CHECK_KIND(apply->scope, SCOPE_KIND);
    if (server->protocol == NULL) {
        server->protocol = protocol;
        server->protocol_index = protocol_index(apply, protocol);
        if (protocol->conf_state > 0)
            server->protocol_conf = apply_alloc(apply, protocol->conf_state);
    }
    if (server->protocol != protocol) {
        const struct scope_entry *other = protocol_seen(apply->scope, server->protocol, 0);

        report_error(apply->report, &directive->name,
            "\"%s\" directive conflicts with \"%s\" in line %u: a server has one protocol",
            setting->name, other->setting->name, other->directive->name.line);
        return -1;
    }
    return 0;
}

void *protocol_field(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    const fb_protocol *protocol = setting->protocol;
    char *conf;

    assert(protocol != NULL && (apply->scope->at & (CONTEXT_STREAM | CONTEXT_SERVER)));
    if (apply->scope->server != NULL && claim_server(apply, setting, directive) == -1)
        return NULL;
    if (protocol->conf_state == 0)
        return apply->scope; /* no value to set */
    conf = apply->scope->server != NULL ? apply->scope->server->protocol_conf
                                        : protocol_stream_conf(apply, apply->scope, protocol);
    return conf == NULL ? NULL : conf + setting->offset; /* no memory, which was reported */
}

const char *protocol_module(const struct apply *apply, const fb_protocol *protocol)
{
    const struct module *module;

    SLIST_FOREACH (module, &apply->cycle->modules, link)
        if (module->protocol == protocol)
            return module->path;
    return protocol->name;
}
