/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of PROXY headers, and the addresses of `set_real_ip_from`: $proxy_protocol_... has
 * the values of a header, trusted or not, parsed anew for each, and $realip_... the sender of the
 * header. A name is resolved when the configuration is read, as a name of `listen` is. */
#include "features/proxy_protocol/proxy_protocol.h"

#include "features/access/access.h"
#include "features/features.h"
#include "net/proxy_protocol.h"
#include "session/session.h"
#include "settings/listen.h"
#include "settings/lookup.h"
#include "settings/set_value.h"

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

static struct value value_of_bytes(fb_bytes bytes)
{
    return value_found((const char *)bytes.p, bytes.n);
}

/* Ends of a proxied connection, by the numbers of variables. */
enum { END_CLIENT, END_SERVER };

static int get_addr(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;
    bool server = variable->number == END_SERVER;

    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    *value = value_of_bytes(server ? header.destination_text : header.source_text);
    return value->n > 0 ? 0
                        : value_address(conn, value, server ? &header.destination : &header.source);
}

static int get_port(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;

    if (!header_of(conn, &header) || !header.has_addresses)
        return 0;
    return value_port(
        conn, value, variable->number == END_SERVER ? &header.destination : &header.source);
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
    if (type == -1 || !header_of(conn, &header))
        return 0;
    tlvs = header.tlvs;
    if (strncmp(name, SSL_PREFIX, strlen(SSL_PREFIX)) == 0 && !find_ssl(&header, &verify, &tlvs))
        return 0;
    if (proxy_protocol_find(tlvs, (unsigned)type, &found))
        *value = value_of_bytes(found);
    return 0;
}

static int get_ssl_verify(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    struct proxy_protocol header;
    fb_bytes ssl;
    uint32_t verify;

    (void)variable;
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

static const struct variable_row variables_proxy[] = {
    { "proxy_protocol_addr", .get = get_addr },
    { "proxy_protocol_port", .get = get_port },
    { "proxy_protocol_server_addr", .get = get_addr, .number = END_SERVER },
    { "proxy_protocol_server_port", .get = get_port, .number = END_SERVER },
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

/* Whether the variable is a row of the table. */
static bool is_header_variable(const struct variable *variable)
{
    for (const struct variable_row *row = variables_proxy; row->name != NULL; row++)
        if (row->get == variable->get)
            return true;
    return false;
}

/* ---- The directives ---- */

static int realip_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct address_block found[LOOKUP_ADDRESSES_MAX];
    struct trusted_setting *trusted = field;
    unsigned n;

    if (lookup_clients(apply, directive, found, &n) == -1)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        trusted->blocks =
            apply_grow(apply, trusted->blocks, (unsigned)trusted->n, sizeof(*trusted->blocks));
        if (trusted->blocks == NULL)
            return -1;
        trusted->blocks[trusted->n++] = found[i];
    }
    return 0;
}

static void realip_finish(struct apply *apply, struct scope *stream)
{
    struct variables *variables = apply->cycle->stream.variables;
    struct variable *variable = NULL;

    (void)stream;
    while ((variable = variables_next(variables, variable)) != NULL) {
        if (variable->index == 0 || !is_header_variable(variable))
            continue;
        variables->uses_proxy = true;
        /* the name may contain the number of a type */
        if (variable->get == get_type && type_of(variable->name + strlen(TYPE_PREFIX)) == -1)
            report_error(apply->report, variable->used_at,
                "unknown \"%s\" variable: expected the number "
                "of a type, 0x00 to 0xff",
                variable->name);
    }
}

/* Gives the bindings of addresses with `proxy_protocol` the callbacks for the header. */
static void realip_bind(struct apply *apply, struct scope *stream)
{
    const struct scope *server;
    const struct listen_address *listen;

    (void)apply;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->binding != NULL && listen->proxy_protocol)
                listen->binding->ops = &proxy_protocol_ops;
}

/* The rules are good for a server that proxies alone may reach: a notice. */
static void note_rules_of_proxies(struct apply *apply, const struct scope *server)
{
    const struct access_values *access = feature_values(server, FEATURE_ACCESS);
    const struct proxy_protocol_values *values = feature_values(server, FEATURE_PROXY_PROTOCOL);
    const struct listen_address *listen;

    if (access->access == NULL || values->trusted.n > 0)
        return;
    STAILQ_FOREACH (listen, &server->listens, link)
        if (listen->proxy_protocol) {
            report_notice(apply->report, &server->directive->name,
                "\"allow\" and \"deny\" of this server are for the addresses of proxies: without "
                "\"set_real_ip_from\" no PROXY header is believed");
            return;
        }
}

static void realip_warn(struct apply *apply, const struct scope *stream)
{
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        note_rules_of_proxies(apply, server);
}

static const struct setting rows[] = {
    { "proxy_protocol_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct proxy_protocol_values, timeout), .least_value = 1,
        .greatest_value = INT64_MAX, .initial = "30s" },
    { "set_real_ip_from", CONTEXT_SERVERS, 1, 1, .set = realip_set, .repeats = true,
        SETTING_FIELD(struct proxy_protocol_values, trusted), .unset = "none" },
    { .name = NULL },
};

const struct feature proxy_protocol_feature = {
    .name = "proxy_protocol",
    .rows = rows,
    .server_size = sizeof(struct proxy_protocol_values),
    .variables = variables_proxy,
    .finish = realip_finish,
    .bind = realip_bind,
    .warn = realip_warn,
};
