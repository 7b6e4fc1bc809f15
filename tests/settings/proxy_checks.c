/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the settings of the proxy's directives. In `stream {}`, without a protocol's server, they
 * set nothing. */
#include "protocols/proxy/proxy.h"
#include "settings/sample_checks.h"

#include "support/test.h"

#include <string.h>

static const struct proxy_conf *conf_of(const struct cycle *cycle)
{
    const struct server *server = STAILQ_FIRST(&cycle->stream.servers);

    if (server->protocol == NULL)
        return NULL;
    ck_assert_str_eq(server->protocol->name, "proxy");
    return server->protocol_conf;
}

#define CHECK_PROXY(directive, expression)                                                         \
    void check_##directive(const struct cycle *cycle)                                              \
    {                                                                                              \
        const struct proxy_conf *conf = conf_of(cycle);                                            \
                                                                                                   \
        if (conf != NULL)                                                                          \
            ck_assert(expression);                                                                 \
    }
CHECK_PROXY(proxy_bind,
    conf->bind.n == 2 && conf->bind.list[1].fixed->ss_family == AF_INET6 && conf->bind.transparent)
CHECK_PROXY(proxy_buffer_size, conf->buffer_size == 8192)
CHECK_PROXY(proxy_connect_timeout, conf->connect_timeout == 5000)
CHECK_PROXY(proxy_download_rate, conf->download.fixed == 3 * 1024 * 1024)
CHECK_PROXY(proxy_half_close, conf->half_close == 1)
CHECK_PROXY(proxy_next_upstream, conf->next_upstream == 0)
CHECK_PROXY(proxy_next_upstream_timeout, conf->next_upstream_timeout == 9000)
CHECK_PROXY(proxy_next_upstream_tries, conf->next_upstream_tries == 3)
CHECK_PROXY(proxy_pass, conf->upstream != NULL)
CHECK_PROXY(proxy_protocol, conf->header == PROXY_HEADER_V2)
CHECK_PROXY(proxy_reset, conf->reset == 1)
CHECK_PROXY(proxy_socket_keepalive, conf->socket_keepalive == 1)
CHECK_PROXY(proxy_timeout, conf->timeout == 60000)
CHECK_PROXY(proxy_upload_rate, conf->upload.text != NULL && conf->upload.fixed == 0)
