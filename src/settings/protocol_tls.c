/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes rows of a protocol's FB_VALUE_TLS: see protocol_tls.h. */
#include "settings/protocol_tls.h"

#include "settings/feature.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

/* Returns what the feature of TLS has; NULL: there is no TLS in this build. */
static const struct feature_tls *feature_tls_of(const struct apply *apply)
{
    const struct feature *const *features = apply->options->features;

    while (*features != NULL && (*features)->tls == NULL)
        features++;
    return *features != NULL ? (*features)->tls : NULL;
}

static unsigned count_declared(const fb_protocol *protocol)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < protocol->directive_n; i++)
        n += protocol->directives[i].value == FB_VALUE_TLS;
    return n;
}

/* Returns the place of the values of a protocol's declaration, in its configuration. */
static size_t values_offset(const struct feature_tls *tls, const fb_protocol *protocol, unsigned i)
{
    size_t align = alignof(max_align_t);

    return (protocol->conf_state + align - 1) / align * align + i * tls->size;
}

size_t protocol_tls_conf_size(const struct apply *apply, const fb_protocol *protocol)
{
    const struct feature_tls *tls = feature_tls_of(apply);
    unsigned n = count_declared(protocol);

    return tls != NULL && n > 0 ? values_offset(tls, protocol, n) : protocol->conf_state;
}

size_t protocol_tls_row_n(const struct apply *apply, const fb_protocol *protocol)
{
    const struct feature_tls *tls = feature_tls_of(apply);
    size_t n = 0;

    while (tls != NULL && tls->rows[n].name != NULL)
        n++;
    return n * count_declared(protocol);
}

/* Returns the index of a declaration among all of the protocol. */
static unsigned index_of_declared(const fb_protocol *protocol, const fb_directive *declared)
{
    unsigned n = 0;

    for (const fb_directive *before = protocol->directives; before != declared; before++)
        n += before->value == FB_VALUE_TLS;
    return n;
}

struct setting *protocol_tls_append(
    struct apply *apply, struct setting *end, const struct setting *like)
{
    const struct feature_tls *tls = feature_tls_of(apply);
    size_t offset, prefix;

    if (tls == NULL)
        return end;
    offset = values_offset(tls, like->protocol, index_of_declared(like->protocol, like->declared));
    prefix = strlen(tls->rows[0].name);
    for (const struct setting *row = tls->rows; row->name != NULL; row++) {
        assert(strncmp(row->name, tls->rows[0].name, prefix) == 0);
        *end = *row;
        end->name = apply_taken(apply,
            arena_printf(apply->cycle->arena, "%s%s", like->declared->name, row->name + prefix));
        if (end->name == NULL)
            return NULL;
        end->set = like->set;
        end->offset += offset;
        end->protocol = like->protocol;
        end->declared = like->declared;
        end->tls = row;
        if (row == tls->rows && like->initial != NULL)
            end->initial = like->initial;
        end++;
    }
    return end;
}

void protocol_tls_finish(struct apply *apply, struct scope *server)
{
    const struct feature_tls *tls = feature_tls_of(apply);
    const fb_protocol *protocol = server->server->protocol;
    char *conf = server->server->protocol_conf;
    unsigned n = 0;

    for (uint32_t i = 0; tls != NULL && conf != NULL && i < protocol->directive_n; i++) {
        const fb_directive *declared = &protocol->directives[i];

        if (declared->value == FB_VALUE_TLS)
            *(const fb_tls_profile **)(void *)(conf + declared->offset) =
                tls->make(apply, server, declared, conf + values_offset(tls, protocol, n++));
    }
}
