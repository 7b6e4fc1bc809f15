/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes replies. Each is one object on one line that begins with "ok", and has "error" when
 * that is false. Memory that runs out cuts the client off. */
#include "control/reply.h"

#include "base/diag_json.h"

#include <stdlib.h>
#include <sys/socket.h>

void control_reply_begin(struct json *json, bool ok)
{
    json_begin(json);
    json_object(json, NULL);
    json_bool(json, "ok", ok);
}

static void end_reply(struct json *json, struct control_client *client, bool last)
{
    size_t n;
    char *line;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(json->depth == 1); /* the caller has closed all that it has opened */
    json_close(json);
    line = json_end(json, &n);
    control_client_reply(client, line, n, last);
}

void control_reply_end(struct json *json, struct control_client *client)
{
    end_reply(json, client, false);
}

void control_reply_error(struct control_client *client, const char *error, bool last)
{
    struct json json;

    control_reply_begin(&json, false);
    json_string(&json, "error", error);
    end_reply(&json, client, last);
}

void control_reply_waiting(struct control_client *client, const char *why)
{
    struct json json;
    size_t n;
    char *line;

    assert(client->phase == CLIENT_WAITING);
    json_begin(&json);
    json_object(&json, NULL);
    json_string(&json, "waiting", why);
    json_close(&json);
    line = json_end(&json, &n);
    /* a unix socket takes such a short line whole or not at all */
    if (line != NULL && send(client->fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT) != -1)
        client->told = true;
    free(line);
}

void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome)
{
    struct json json;

    assert(client->phase == CLIENT_WAITING);
    control_reply_begin(&json, outcome->ok);
    if (!outcome->ok)
        json_string(&json, "error", outcome->error);
    if (outcome->pid != 0)
        json_number(&json, "pid", outcome->pid);
    if (outcome->generation != 0)
        json_number(&json, "generation", outcome->generation);
    if (client->waiting_for != CONTROL_WAIT_EXIT) /* a quit */
        diag_to_json(&json, outcome->diag);
    if (outcome->in_force != NULL)
        json_string(&json, "in_force", outcome->in_force);
    end_reply(&json, client, false);
}
