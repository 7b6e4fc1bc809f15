/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes replies. Each is one object on one line that begins with "ok", and has "error" when
 * that is false. Memory that runs out cuts the client off. */
#include "control/reply.h"

#include "base/diag_json.h"

void control_reply_begin(struct fb_json *json, bool ok)
{
    fb_json_begin(json);
    fb_json_object(json, NULL);
    fb_json_bool(json, "ok", ok);
}

static void end_reply(struct fb_json *json, struct control_client *client, bool last)
{
    size_t n;
    char *line;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    assert(json->depth == 1); /* the caller has closed all that it has opened */
    fb_json_close(json);
    line = fb_json_end(json, &n);
    control_client_reply(client, line, n, last);
}

void control_reply_end(struct fb_json *json, struct control_client *client)
{
    end_reply(json, client, false);
}

void control_reply_error(struct control_client *client, const char *error, bool last)
{
    struct fb_json json;

    control_reply_begin(&json, false);
    fb_json_string(&json, "error", error);
    end_reply(&json, client, last);
}

void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome)
{
    struct fb_json json;

    assert(client->phase == CLIENT_WAITING);
    control_reply_begin(&json, outcome->ok);
    if (!outcome->ok)
        fb_json_string(&json, "error", outcome->error);
    if (outcome->pid != 0)
        fb_json_number(&json, "pid", outcome->pid);
    if (outcome->generation != 0)
        fb_json_number(&json, "generation", outcome->generation);
    diag_to_json(&json, outcome->diag);
    end_reply(&json, client, false);
}
