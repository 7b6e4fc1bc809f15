/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_bind: the address that servers are connected from, given or worked out for each session.
 *
 * A text that is no address in a session is logged, and the kernel chooses, as without the
 * directive. */
#include "protocols/proxy/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define LONGEST "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535"

/* Reads an address without a port. */
static bool parse_host(const char *text, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        out->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        out->ss_family = AF_INET6;
    return out->ss_family != AF_UNSPEC;
}

/* Reads a port, 1 to 65535; 0 for anything else. */
static uint16_t parse_port(const char *text)
{
    unsigned port = 0;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || port > 6553)
            return 0;
        port = port * 10 + (unsigned)(*p - '0');
    }
    return port <= 65535 ? (uint16_t)port : 0;
}

/* Reads "192.0.2.1", "192.0.2.1:80", "2001:db8::1" or "[2001:db8::1]:80". */
static bool parse(fb_bytes in, struct sockaddr_storage *out)
{
    char text[sizeof(LONGEST)], *host = text, *colon;
    uint16_t port;

    if (in.n >= sizeof(text) || memchr(in.p, '\0', in.n) != NULL)
        return false;
    memcpy(text, in.p, in.n);
    text[in.n] = '\0';
    if (parse_host(text, out))
        return true;
    colon = strrchr(text, ':');
    port = colon != NULL ? parse_port(colon + 1) : 0;
    if (port == 0)
        return false;
    *colon = '\0';
    if (*host == '[' && colon > host && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    if (!parse_host(host, out) || (out->ss_family == AF_INET6) != (host > text))
        return false;
    if (out->ss_family == AF_INET)
        ((struct sockaddr_in *)out)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)out)->sin6_port = htons(port);
    return true;
}

const struct sockaddr *proxy_bind_address(
    struct proxy *proxy, struct sockaddr_storage *room, int *status)
{
    const struct proxy_conf *conf = fb_conf_of(proxy->client);
    const struct proxy_worker *own = fb_worker_state(proxy->client);
    const struct proxy_bind *bind = &conf->bind;
    fb_bytes text;

    *status = 0;
    if (bind->text == NULL)
        return (const struct sockaddr *)bind->address;
    if (proxy->unbound)
        return NULL;
    *status = own->stream->evaluate(proxy->client, bind->text, &text);
    if (*status != 0 || text.n == 0)
        return NULL;
    if (parse(text, room))
        return (const struct sockaddr *)room;
    proxy->unbound = true;
    fb_conn_logf(proxy->client, FB_LOG_ERROR, "invalid local address \"%.*s\"", (int)text.n,
        (const char *)text.p);
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
    if (!parse(text, address))
        return fb_conf_errorf(conf, "proxy_bind", "invalid address \"%s\"", args[0]);
    bind->address = address;
    return 0;
}
