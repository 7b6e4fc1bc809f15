/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports calls on connections that have ended. The connection's slot still says whose it was,
 * because slots are never given back; nothing else of the connection is touched. */
#include "sdk/handle.h"

#include "base/log.h"

void sdk_handle_report(const fb_conn *conn, const char *call)
{
    struct stream *stream = stream_of(conn);

    assert(stream->net.log != NULL);
    if (stream->misused != NULL)
        stream->misused(stream, call);
    else
        log_write(stream->net.log, LEVEL_ALERT, 0, "%s() of a connection that has ended", call);
}
