/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_bind: local addresses for connections to servers, given or worked out for each session.
 *
 * Sessions begin with the addresses in turn, so that all have as many connections, and try the rest
 * where the first cannot be used. A text without an address in a session is logged, and the kernel
 * chooses, as without the directive. */
#include "protocols/proxy/proxy.h"

#include <string.h>

void proxy_bind_begin(fb_conn *client)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    struct proxy_worker *own = fb_worker_state(client);
    struct proxy *proxy = fb_state_of(client);

    proxy->bind_at = own->bind_turn++ % conf->bind.n;
    proxy->bind_left = conf->bind.n - 1;
}

bool proxy_bind_next(fb_conn *client)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    struct proxy *proxy = fb_state_of(client);

    if (proxy->bind_left == 0)
        return false;
    proxy->bind_left--;
    proxy->bind_at = (proxy->bind_at + 1) % conf->bind.n;
    return true;
}

const struct sockaddr *proxy_bind_address(
    fb_conn *client, struct sockaddr_storage *room, int *status)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    const struct proxy_worker *own = fb_worker_state(client);
    struct proxy *proxy = fb_state_of(client);
    const struct proxy_bind_address *bind = &conf->bind.list[proxy->bind_at];
    fb_bytes text;

    *status = 0;
    if (bind->text == NULL)
        return (const struct sockaddr *)bind->fixed;
    if (proxy->unbound)
        return NULL;
    *status = own->stream->evaluate(client, bind->text, &text);
    if (*status != 0 || text.n == 0)
        return NULL;
    if (fb_parse_address(text, room) == 0)
        return (const struct sockaddr *)room;
    proxy->unbound = true;
    fb_conn_logf(
        client, FB_LOG_ERROR, "invalid local address \"%.*s\"", (int)text.n, (const char *)text.p);
    return NULL;
}

/* Reads one address; -1 after a report. */
static int set_address(fb_conf *conf, struct proxy_bind_address *address, const char *arg)
{
    const fb_bytes text = { (const uint8_t *)arg, strlen(arg) };
    struct sockaddr_storage *fixed;

    if (strchr(arg, '$') != NULL) {
        address->text = fb_conf_template(conf, "proxy_bind", arg);
        return address->text != NULL ? 0 : -1;
    }
    fixed = fb_conf_alloc(conf, sizeof(*fixed));
    if (fixed == NULL)
        return -1;
    if (fb_parse_address(text, fixed) != 0)
        return fb_conf_errorf(conf, "proxy_bind", "invalid address \"%s\"", arg);
    address->fixed = fixed;
    return 0;
}

int proxy_bind_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct proxy_bind *bind = value;
    struct proxy_bind_address *list;

    memset(bind, 0, sizeof(*bind));
    if (n == 1 && strcmp(args[0], "off") == 0)
        return 0;
    bind->transparent = n > 1 && strcmp(args[n - 1], "transparent") == 0;
    bind->n = n - bind->transparent;
    if (bind->n > PROXY_BIND_MOST)
        return fb_conf_errorf(conf, "proxy_bind", "more than %d addresses", PROXY_BIND_MOST);
    if (fb_conf_need(conf, bind->transparent ? FB_NEEDS_TRANSPARENT : FB_NEEDS_BIND) != 0)
        return -1;
    list = fb_conf_alloc(conf, bind->n * sizeof(*list));
    if (list == NULL)
        return -1;
    bind->list = list;
    for (uint32_t i = 0; i < bind->n; i++)
        if (set_address(conf, &list[i], args[i]) != 0)
            return -1;
    return 0;
}
