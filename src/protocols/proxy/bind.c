/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_bind: the address that servers are connected from, given or worked out for each session.
 *
 * A text that is no address in a session is logged, and the kernel chooses, as without the
 * directive. */
#include "protocols/proxy/proxy.h"

#include <string.h>

const struct sockaddr *proxy_bind_address(
    fb_conn *client, struct sockaddr_storage *room, int *status)
{
    const struct proxy_conf *conf = fb_conf_of(client);
    const struct proxy_worker *own = fb_worker_state(client);
    struct proxy *proxy = fb_state_of(client);
    const struct proxy_bind *bind = &conf->bind;
    fb_bytes text;

    *status = 0;
    if (bind->text == NULL)
        return (const struct sockaddr *)bind->address;
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

int proxy_bind_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct proxy_bind *bind = value;
    const fb_bytes text = { (const uint8_t *)args[0], strlen(args[0]) };
    struct sockaddr_storage *address;

    memset(bind, 0, sizeof(*bind));
    if (n == 1 && strcmp(args[0], "off") == 0)
        return 0;
    if (n == 2 && strcmp(args[1], "transparent") != 0)
        return fb_conf_errorf(conf, "proxy_bind", "expected \"transparent\", not \"%s\"", args[1]);
    bind->transparent = n == 2;
    if (fb_conf_need(conf, bind->transparent ? FB_NEEDS_TRANSPARENT : FB_NEEDS_BIND) != 0)
        return -1;
    if (strchr(args[0], '$') != NULL) {
        bind->text = fb_conf_template(conf, "proxy_bind", args[0]);
        return bind->text != NULL ? 0 : -1;
    }
    address = fb_conf_alloc(conf, sizeof(*address));
    if (address == NULL)
        return -1;
    if (fb_parse_address(text, address) != 0)
        return fb_conf_errorf(conf, "proxy_bind", "invalid address \"%s\"", args[0]);
    bind->address = address;
    return 0;
}
