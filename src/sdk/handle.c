/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports calls on ended connections. The connection's slot still tells the protocol, because slots
 * are never given back; nothing else of the connection is touched. */
#include "sdk/handle.h"

#include "base/log.h"

void sdk_handle_report(const fb_conn *conn, const char *call)
{
    struct stream *stream;
    const struct worker *worker;

    if (conn->net == NULL) /* a child of fork(): the slots of all connections are empty */
        os_wiped_end();
    stream = stream_of(conn);
    worker = container_of(stream, struct worker, stream);
    assert(stream->net.log != NULL);
    if (stream->misused != NULL) {
        stream->misused(stream, call);
        return;
    }
    log_write(stream->net.log, LEVEL_ALERT, 0,
        "%s() of a connection that has ended, by protocol \"%s\"", call,
        worker_protocols_name(worker, heartbeat_running_protocol(stream->net.heartbeat)));
    log_debug_point(stream->net.log, "a connection that has ended was used");
}
