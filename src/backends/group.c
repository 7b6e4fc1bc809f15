/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the group by a directive's text with the session's variables. A text without a group's name
 * is an address, or a name with a port, and gets a group in the session's memory: nothing outlives
 * the session. */
#include "backends/group.h"

#include "base/number.h"
#include "net/address_parse.h"
#include "session/record.h"
#include "text/template.h"

#include <string.h>
#include <strings.h>

/* The parts of such a group. */
struct own_group {
    struct upstream upstream;
    struct upstream_server server;
    struct fb_target target; /* unless it has a name */
};

/* Takes "HOST:PORT" apart, with a NUL behind the host. Returns NULL, or the mistake. */
static const char *split_name(char *text, struct own_group *group)
{
    char *colon = strchr(text, ':');
    int64_t port;

    if (text[strcspn(text, "/?")] != '\0')
        return "invalid host";
    if (colon != NULL && number_parse(colon + 1, 1, UINT16_MAX, &port) != NUMBER_OK)
        return "invalid port";
    if (colon == text || *text == '\0')
        return "no host";
    if (colon == NULL)
        return "no port";
    *colon = '\0';
    if (address_parse(text, (in_port_t)port, &group->target.address) == NULL)
        return NULL;
    group->server.host = text;
    group->server.port = (in_port_t)port;
    return NULL;
}

/* Reads an address, or a name with a port; NULL, or the mistake. A client names no unix socket. */
static const char *read_place(const struct value *text, char *copy, struct own_group *group)
{
    struct address *address = &group->target.address;
    const char *wrong;

    if (memchr(text->p, '\0', text->n) != NULL)
        return "invalid host";
    memcpy(copy, text->p, text->n);
    copy[text->n] = '\0';
    if (*copy != '[' && strncasecmp(copy, "unix:", 5) != 0)
        return split_name(copy, group);
    if (*copy != '[' && text->own_n < 5)
        return "the unix domain socket is not named by the configuration";
    wrong = address_parse(copy, 0, address);
    if (wrong == NULL && *copy == '[' && address_port(address) == 0)
        wrong = "no port";
    return wrong;
}

/* Fills in a group with a single server at a place already read, under the name. */
static void fill_group(struct own_group *group, const struct fb_upstream *where, const char *name)
{
    struct upstream_server *server = &group->server;
    struct upstream *upstream = &group->upstream;

    server->name = name;
    server->weight = server->max_fails = 1;
    server->fail_timeout = 10000;
    if (server->host == NULL) {
        address_format(&group->target.address, true, group->target.text);
        server->target = &group->target;
    }
    upstream->kind = UPSTREAM_KIND;
    upstream->name = name;
    upstream->is_single = upstream->is_of_session = true;
    upstream->resolver = where->resolver;
    upstream->resolver_timeout = where->resolver_timeout;
    STAILQ_INIT(&upstream->servers);
    STAILQ_INSERT_TAIL(&upstream->servers, server, link);
    upstream->server_n = 1;
}

static struct upstream *make_group(struct fb_conn *client, const struct fb_upstream *where,
    const struct value *text, fb_choice *status)
{
    struct own_group *group = session_keep(client, sizeof(*group));
    char *name = session_keep(client, 2 * (text->n + 1)), *copy;
    const char *wrong;

    if (group == NULL || name == NULL)
        return NULL;
    copy = name + text->n + 1;
    memset(group, 0, sizeof(*group));
    wrong = read_place(text, copy, group);
    if (wrong != NULL) {
        conn_log(client, LEVEL_ERROR, 0, "%s in upstream \"%.*s\"", wrong, (int)text->n, text->p);
        *status = FB_CHOICE_INVALID;
        return NULL;
    }
    memcpy(name, text->p, text->n);
    name[text->n] = '\0';
    fill_group(group, where, name);
    if (upstreams_open_group(&stream_of(client)->upstreams, &group->upstream) == -1)
        return NULL;
    return &group->upstream;
}

struct upstream *backend_group_find(
    struct fb_conn *client, const struct fb_upstream *where, fb_choice *status)
{
    struct value text;
    uint32_t number;

    assert(where->upstream == NULL);
    *status = FB_CHOICE_NO_MEMORY;
    if (template_value(client, where->text, &text) == -1)
        return NULL;
    number = map_table_find(&where->named->numbers, text.p, text.n);
    return number != MAP_NONE ? where->named->groups[number]
                              : make_group(client, where, &text, status);
}

void backend_group_close(struct upstream *upstream)
{
    if (upstream->is_of_session)
        upstreams_close_group(upstream);
}
