/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug lines of the events of connections, with the connection's number and addresses. Compiled in
 * builds with --enable-debug alone. Never changes the connection; it can be called in any phase, as
 * long as the slot is in use. */
#include "net/conn_private.h"

void conn_debug_event(const struct source *source, const char *format, va_list args)
{
    const struct fb_conn *conn = container_of(source, struct fb_conn, source);

    assert(source->in_use && conn->net != NULL);
    if (conn_debugs(conn))
        conn_vlog(conn, LEVEL_DEBUG, 0, format, args);
}
