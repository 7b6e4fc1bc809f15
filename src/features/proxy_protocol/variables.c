/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of PROXY headers: $proxy_protocol_... has the values of a header, trusted or not,
 * and $realip_... the sender of the header. Each parses the header kept by the session. */
#include "features/proxy_protocol/variables.h"
#include "features/proxy_protocol/proxy_protocol.h"
#include "net/proxy_protocol.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_PREFIX "proxy_protocol_tlv_"
#define SSL_PREFIX "ssl_"

/* Parses the header once more; false: the client has sent none. */
static bool header_of(const struct fb_conn *conn, struct proxy_protocol *header)
{
    const struct proxy_protocol_part *proxy = proxy_protocol_of(conn);
    enum proxy_protocol_status status;

    if (proxy == NULL)
        return false;
    status = proxy_protocol_parse((fb_bytes) { proxy->header, proxy->n }, header);
    assert(status == PROXY_PROTOCOL_WHOLE); /* broken ones are not kept */
    assert(header->length == proxy->n);
    return status == PROXY_PROTOCOL_WHOLE;
}

static struct value value_of(fb_bytes bytes)
{
    return value_found((const char *)bytes.p, bytes.n);
}

static int get_addr(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;

    (void)variable;
    *value = value_missing();
    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    *value = value_of(header.source_text);
    return header.source_text.n > 0 ? 0 : value_address(conn, value, &header.source);
}

static int get_server_addr(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;

    (void)variable;
    *value = value_missing();
    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    *value = value_of(header.destination_text);
    return header.destination_text.n > 0 ? 0 : value_address(conn, value, &header.destination);
}

static int get_port(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;

    (void)variable;
    *value = value_missing();
    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    return value_port(conn, value, &header.source);
}

static int get_server_port(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;

    (void)variable;
    *value = value_missing();
    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    return value_port(conn, value, &header.destination);
}

/* ---- What follows the addresses ---- */

static const struct {
    const char *name;
    uint8_t type;
} types[] = {
    { "alpn", PROXY_PROTOCOL_ALPN },
    { "authority", PROXY_PROTOCOL_AUTHORITY },
    { "netns", PROXY_PROTOCOL_NETNS },
    { "ssl", PROXY_PROTOCOL_SSL },
    { "ssl_cipher", PROXY_PROTOCOL_SSL_CIPHER },
    { "ssl_cn", PROXY_PROTOCOL_SSL_CN },
    { "ssl_key_alg", PROXY_PROTOCOL_SSL_KEY_ALG },
    { "ssl_sig_alg", PROXY_PROTOCOL_SSL_SIG_ALG },
    { "ssl_version", PROXY_PROTOCOL_SSL_VERSION },
    { "unique_id", PROXY_PROTOCOL_UNIQUE_ID },
};

/* Returns the type of a name, or of a number such as 0x21; -1: there is none. */
static int type_of(const char *name)
{
    unsigned long type;

    for (size_t i = 0; i < countof(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    if (strncmp(name, SSL_PREFIX, strlen(SSL_PREFIX)) == 0)
        name += strlen(SSL_PREFIX);
    if (name[0] != '0' || name[1] != 'x' || !isxdigit((unsigned char)name[2]) ||
        strspn(name + 2, "0123456789abcdefABCDEF") != strlen(name + 2))
        return -1;
    type = strtoul(name, NULL, 16);
    return type <= UINT8_MAX ? (int)type : -1;
}

/* Finds what the header says of TLS. */
static bool find_ssl(const struct proxy_protocol *header, uint32_t *verify, fb_bytes *ssl)
{
    fb_bytes all;

    return proxy_protocol_find(header->tlvs, PROXY_PROTOCOL_SSL, &all) &&
           proxy_protocol_ssl(all, verify, ssl);
}

static int get_type(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const char *name = variable->name + strlen(TYPE_PREFIX);
    int type = type_of(name);
    struct proxy_protocol header;
    fb_bytes tlvs, found;
    uint32_t verify;

    assert(strncmp(variable->name, TYPE_PREFIX, strlen(TYPE_PREFIX)) == 0);
    *value = value_missing();
    if (type == -1 || !header_of(conn, &header))
        return 0;
    tlvs = header.tlvs;
    if (strncmp(name, SSL_PREFIX, strlen(SSL_PREFIX)) == 0 && !find_ssl(&header, &verify, &tlvs))
        return 0;
    if (proxy_protocol_find(tlvs, (unsigned)type, &found))
        *value = value_of(found);
    return 0;
}

static int get_ssl_verify(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;
    fb_bytes ssl;
    uint32_t verify;

    (void)variable;
    *value = value_missing();
    if (!header_of(conn, &header) || !find_ssl(&header, &verify, &ssl))
        return 0;
    return value_printf(conn, value, "%u", (unsigned)verify);
}

/* ---- The connection's own peer ---- */

/* Fills in the peer, as it was before the header. */
static void own_peer(const struct fb_conn *conn, struct address *out)
{
    const struct proxy_protocol_part *proxy = proxy_protocol_of(conn);

    conn_peer_of(proxy != NULL ? &proxy->own : &conn->peer, out);
}

static int get_own_addr(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct address peer;

    (void)variable;
    own_peer(conn, &peer);
    return value_address(conn, value, &peer);
}

static int get_own_port(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct address peer;

    (void)variable;
    own_peer(conn, &peer);
    return value_port(conn, value, &peer);
}

const struct variable_row variables_proxy[] = {
    { "proxy_protocol_addr", .get = get_addr },
    { "proxy_protocol_port", .get = get_port },
    { "proxy_protocol_server_addr", .get = get_server_addr },
    { "proxy_protocol_server_port", .get = get_server_port },
    { TYPE_PREFIX "alpn", .get = get_type },
    { TYPE_PREFIX "authority", .get = get_type },
    { TYPE_PREFIX "netns", .get = get_type },
    { TYPE_PREFIX "ssl", .get = get_type },
    { TYPE_PREFIX "ssl_cipher", .get = get_type },
    { TYPE_PREFIX "ssl_cn", .get = get_type },
    { TYPE_PREFIX "ssl_key_alg", .get = get_type },
    { TYPE_PREFIX "ssl_sig_alg", .get = get_type },
    { TYPE_PREFIX "ssl_verify", .get = get_ssl_verify },
    { TYPE_PREFIX "ssl_version", .get = get_type },
    { TYPE_PREFIX "unique_id", .get = get_type },
    { TYPE_PREFIX "0x*", .get = get_type },
    { TYPE_PREFIX SSL_PREFIX "0x*", .get = get_type },
    { "realip_remote_addr", .get = get_own_addr },
    { "realip_remote_port", .get = get_own_port },
    { .name = NULL },
};

bool variables_proxy_has(const struct variable *variable)
{
    for (const struct variable_row *row = variables_proxy; row->name != NULL; row++)
        if (row->get == variable->get)
            return true;
    return false;
}

bool variables_proxy_knows(const struct variable *variable)
{
    return variable->get != get_type || type_of(variable->name + strlen(TYPE_PREFIX)) != -1;
}
