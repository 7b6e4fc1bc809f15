/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies with the workers that were asked for their sessions, and the reading end of the pipe into
 * which they write. The master makes the pipe, so that the client has no say in whether a write
 * waits, passes the ends, and reads and writes nothing. */
#include "control/sessions.h"

#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Asks all workers for clients, and writes whether each was. */
static void ask_workers(struct control *control, int pipe, struct json *json)
{
    const struct pool_worker *worker;

    json_array(json, "workers");
    POOL_FOREACH_SERVING (worker, control->pool) {
        if (worker->pid <= 0)
            continue;
        json_object(json, NULL);
        json_number(json, "pid", worker->pid);
        json_number(json, "generation", worker->generation->number);
        json_bool(json, "asked", control->ops->list_sessions(control->host, worker->pid, pipe));
        json_close(json);
    }
    json_close(json);
}

void control_sessions_handle(struct control_client *client)
{
    struct json json;
    char error[128];
    int ends[2];

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(client->passed == -1);
    if (descriptor_pipe(ends, O_NONBLOCK) == -1) {
        snprintf(error, sizeof(error), "the master process has no pipe for the sessions: %s",
            strerror(errno));
        control_reply_error(client, error, false);
        return;
    }
    control_reply_begin(&json, true);
    ask_workers(client->control, ends[1], &json);
    descriptor_close(ends[1]);
    client->passed = ends[0];
    control_reply_end(&json, client, false);
}
