/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects needs for the sandbox: of all protocols with a server, of their directives' values, and
 * targets of all protocols. Each path and port is listed once. */
#include "settings/needs.h"

#include "base/check.h"
#include "net/address_parse.h"
#include "settings/apply.h"
#include "settings/blocks.h"

#include <string.h>

/* First version of the SDK with declared needs of protocols. */
#define API_OF_NEEDS 2

void needs_add_path(struct apply *apply, const char *path, enum needs_access access)
{
    struct needs *needs = &apply->cycle->needs;
    struct needs_path *needed;

    if (path == NULL || *path == '\0')
        return;
    STAILQ_FOREACH (needed, &needs->paths, link)
        if (needed->access == access && strcmp(needed->path, path) == 0)
            return;
    needed = apply_alloc(apply, sizeof(*needed));
    if (needed == NULL)
        return;
    needed->path = path;
    needed->access = access;
    STAILQ_INSERT_TAIL(&needs->paths, needed, link);
}

static void add_list(struct apply *apply, const char *const *paths, enum needs_access access)
{
    for (; paths != NULL && *paths != NULL; paths++)
        needs_add_path(apply, *paths, access);
}

/* Returns the directory of an absolute path; NULL after a report. */
static const char *directory_of(struct apply *apply, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory;

    if (slash == NULL || slash == path)
        return "/";
    directory = apply_strdup(apply, path);
    if (directory != NULL)
        directory[slash - path] = '\0';
    return directory;
}

static void add_value(struct apply *apply, const char *path, uint32_t flags)
{
    bool write = (flags & FB_DIRECTIVE_WRITES) != 0;

    if (!write && !(flags & FB_DIRECTIVE_READS))
        return;
    if (path != NULL && *path != '\0' && (flags & FB_DIRECTIVE_REPLACED))
        path = directory_of(apply, path);
    needs_add_path(apply, path, write ? NEEDS_TO_WRITE : NEEDS_TO_READ);
}

/* Adds the paths given by the operator in the protocol's directives. */
static void add_values(struct apply *apply, const struct server *server)
{
    const fb_protocol *protocol = server->protocol;

    assert(
        protocol->directive_n == 0 || protocol->conf_state == 0 || server->protocol_conf != NULL);
    for (uint32_t i = 0; i < protocol->directive_n; i++) {
        const fb_directive *directive = &protocol->directives[i];
        const char *value = (const char *)server->protocol_conf + directive->offset;

        if (directive->flags & (FB_DIRECTIVE_READS | FB_DIRECTIVE_WRITES))
            add_value(apply, *(const char *const *)(const void *)value, directive->flags);
    }
}

/* Adds FB_NEEDS_... that are rights; the right to ask servers of names comes with `resolver`. */
static void add_rights(struct needs *needs, uint64_t rights)
{
    needs->rights |=
        rights & ~(uint64_t)(FB_NEEDS_RESOLVER | FB_NEEDS_TLVS | FB_NEEDS_CERTIFICATES);
    if (rights & FB_NEEDS_TRANSPARENT)
        needs->rights |= FB_NEEDS_BIND;
}

static void add_protocol(struct apply *apply, const fb_protocol *protocol)
{
    struct needs *needs = &apply->cycle->needs;

    add_rights(needs, protocol->needs);
    if (protocol->api < API_OF_NEEDS)
        needs->unknown = protocol->name;
    add_list(apply, protocol->reads, NEEDS_TO_READ);
    add_list(apply, protocol->writes, NEEDS_TO_WRITE);
}

void needs_add_target(struct apply *apply, const struct fb_target *target)
{
    if (target->address.any.sa_family == AF_UNIX)
        apply->cycle->needs.rights |= NEEDS_UNIX_TARGETS;
    else
        needs_add_port(apply, address_port(&target->address));
}

void needs_add_port(struct apply *apply, in_port_t port)
{
    struct needs *needs = &apply->cycle->needs;
    struct needs_port *needed;

    STAILQ_FOREACH (needed, &needs->ports, link)
        if (needed->port == port)
            return;
    needed = apply_alloc(apply, sizeof(*needed));
    if (needed == NULL)
        return;
    needed->port = port;
    STAILQ_INSERT_TAIL(&needs->ports, needed, link);
}

void needs_collect(struct apply *apply)
{
    struct needs *needs = &apply->cycle->needs;
    const struct server *server;

    needs->rights |= apply->cycle->events.mechanism->unfiltered ? NEEDS_RING : 0;
    add_rights(needs, apply->cycle->stream.needs);
    STAILQ_FOREACH (server, &apply->cycle->stream.servers, link) {
        if (server->protocol == NULL)
            continue;
        add_protocol(apply, server->protocol);
        add_rights(needs, server->needs);
        add_values(apply, server);
        needs->rights |= server->settings.aio.way == FB_AIO_ON ? NEEDS_AIO : 0;
    }
}
