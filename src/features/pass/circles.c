/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds servers whose clients never leave the configuration: all addresses of their groups are
 * listened on, by servers of the same kind. A client would be connected with itself without end.
 *
 * An address counts where it is the daemon's for certain: as it was written, or of the loopback
 * interface where a wildcard listens. A text with variables, or a name, may lead elsewhere. */
#include "features/pass/circles.h"

#include "features/pass/bindings.h"
#include "features/upstream/upstream.h"
#include "settings/apply.h"

#include <arpa/inet.h>

static bool is_loopback(const struct address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

/* Returns the server of ours that an address of a group leads to for certain, or NULL. */
static const struct server *find_own(
    const struct binding_list *list, const struct upstream_server *to)
{
    const struct address *address = to->target != NULL ? &to->target->address : NULL;
    const struct binding *binding = address != NULL ? pass_bindings_find(list, address) : NULL;

    if (binding == NULL || (address_is_wildcard(&binding->address) &&
                               !address_is_wildcard(address) && !is_loopback(address)))
        return NULL;
    return binding->server;
}

/* Whether all directives of the server that lead somewhere lead in a circle, as is known so far. */
static bool server_circles(const struct apply *apply, const struct server *server)
{
    const struct upstream_use *use;
    bool any = false;

    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        if (use->server == server) {
            if (!use->circles)
                return false;
            any = true;
        }
    return any;
}

/* Whether a directive leads to servers of ours alone; with `in_circle` to such as circle. */
static bool leads_home(const struct apply *apply, const struct binding_list *list,
    const struct upstream_use *use, bool in_circle)
{
    const struct upstream_server *to;
    bool any = false;

    if (use->where->upstream == NULL)
        return false;
    STAILQ_FOREACH (to, &use->where->upstream->servers, link) {
        const struct server *server;

        if (to->down)
            continue;
        server = find_own(list, to);
        if (server == NULL || (in_circle && !server_circles(apply, server)))
            return false;
        any = true;
    }
    return any;
}

void circles_check(struct apply *apply)
{
    struct binding_list list = { .n = 0 };
    struct upstream_use *use;
    bool changed = true;

    if (apply->report->error_n > 0 || STAILQ_EMPTY(&upstream_conf_of(apply)->uses) ||
        pass_bindings_list(apply, &list) == -1)
        return;
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        use->circles = use->server != NULL && leads_home(apply, &list, use, false);
    while (changed) {
        changed = false;
        STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
            if (use->circles && !leads_home(apply, &list, use, true)) {
                use->circles = false;
                changed = true;
            }
    }
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        if (use->circles)
            report_error(apply->report, use->word,
                "\"%s\" leads clients in a circle of this configuration's own servers", use->text);
}
