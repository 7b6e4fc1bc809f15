/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of certificates for handshakes: see tls_paths.h. */
#include "text/tls_paths.h"

#include "session/record.h"
#include "text/template.h"

#include <assert.h>
#include <string.h>

/* Makes the name in the ClientHello the value of its variable; false: the connection has failed. */
static bool set_asked_name(struct fb_conn *conn, const struct variable *variable,
    const struct tls_hello *hello, fb_bytes in)
{
    size_t n = hello->status == TLS_HELLO_WHOLE ? hello->name.n : 0;
    char *name = n > 0 && n <= TLS_NAME_MOST ? session_keep(conn, n) : NULL;

    if (n == 0 || n > TLS_NAME_MOST)
        return true;
    if (name != NULL)
        tls_hello_copy(in, hello->name, (uint8_t *)name);
    if (name != NULL && variable_set(conn, variable, value_found(name, n)) == 0)
        return true;
    conn_fail(conn, FB_NO_MEMORY);
    return false;
}

/* Lists the names, each up to the first NUL, which ends a path; returns 1, or -1. */
static int write_paths(struct fb_conn *conn, const struct tls_named *named, fb_bytes *paths)
{
    char names[TLS_PATHS_MOST], *kept;
    size_t n = 0;

    for (unsigned i = 0; i < named->n; i++) {
        struct value value;
        size_t length;

        if (template_value(conn, named->names[i], &value) == -1) {
            conn_fail(conn, FB_NO_MEMORY);
            return -1;
        }
        length = strnlen(value.p, value.n);
        if (length >= sizeof(names) - n) {
            conn_log(conn, LEVEL_ERROR, 0, "the names of certificates have more than %d bytes",
                TLS_PATHS_MOST);
            return -1;
        }
        memcpy(names + n, value.p, length);
        n += length;
        names[n++] = '\0';
    }
    kept = session_keep(conn, n);
    if (kept == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return -1;
    }
    memcpy(kept, names, n);
    *paths = (fb_bytes) { (uint8_t *)kept, n };
    return 1;
}

int tls_paths_set(struct fb_conn *conn, const struct tls_profile *profile, struct tls_hello *hello,
    fb_bytes in, struct tls_start *start)
{
    assert(start->paths.n == 0);
    if (profile->named.n == 0)
        return 1;
    if (profile->role == TLS_SERVER) {
        if (tls_hello_parse(hello, in) == TLS_HELLO_MORE && in.n < TLS_HANDSHAKE_MOST)
            return 0;
        if (!set_asked_name(conn, profile->named.asked, hello, in))
            return -1;
    }
    return write_paths(conn, &profile->named, &start->paths);
}
