/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables $ssl_preread_...: values of the ClientHello for which a session was held up.
 * Missing where nothing was read, or no ClientHello was found; empty where the ClientHello lacks
 * the value. */
#include "features/preread/preread.h"

#include <string.h>

/* Returns NULL where nothing is known. */
static const struct preread_part *hello_of(const struct fb_conn *conn)
{
    const struct preread_part *preread = preread_of(conn);

    if (preread == NULL || !preread->has_bytes || preread->hello.status == CLIENT_HELLO_NONE)
        return NULL;
    return preread;
}

static int get_protocol(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);
    const char *text;

    (void)variable;
    *value = value_missing();
    if (preread != NULL) {
        text = client_hello_version(preread->hello.version);
        *value = value_found(text, strlen(text));
    }
    return 0;
}

static int get_server_name(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);

    (void)variable;
    *value = value_missing();
    if (preread != NULL)
        *value = value_found(preread->name_n > 0 ? preread->name : "", preread->name_n);
    return 0;
}

static int get_alpn_protocols(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct preread_part *preread = hello_of(conn);

    (void)variable;
    *value = value_missing();
    if (preread != NULL)
        *value =
            value_found(preread->protocols_n > 0 ? preread->protocols : "", preread->protocols_n);
    return 0;
}

const struct variable_row variables_preread[] = {
    { "ssl_preread_alpn_protocols", .get = get_alpn_protocols },
    { "ssl_preread_protocol", .get = get_protocol },
    { "ssl_preread_server_name", .get = get_server_name },
    { .name = NULL },
};
