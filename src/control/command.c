/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns a client's request into a reply, or into a command that the host takes. The words of
 * commands are those of -s, which the table of signals has. Requests are input: each is checked,
 * none is trusted. */
#include "control/command.h"

#include "base/json.h"
#include "control/reply.h"
#include "control/upstream.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS "expected status, upstream, reload, reopen, upgrade, resume, quit, leave or stop"

static void reply_status(struct control_client *client)
{
    struct json json;

    control_reply_begin(&json, true);
    control_status_write(client->control, &json);
    control_reply_end(&json, client);
}

/* Replies at once to those who end the daemon, and keeps as many as may wait connected until it
 * has. */
static void reply_then_hold(struct control_client *client, bool full)
{
    struct json json;

    if (!full)
        client->waiting_for = CONTROL_WAIT_EXIT;
    control_reply_begin(&json, true);
    control_reply_end(&json, client);
}

static enum control_wait outcome_of(enum command command)
{
    switch (command) {
    case COMMAND_RELOAD:
        return CONTROL_WAIT_RELOAD;
    case COMMAND_REOPEN:
        return CONTROL_WAIT_REOPEN;
    case COMMAND_UPGRADE:
        return CONTROL_WAIT_UPGRADE;
    case COMMAND_RESUME:
        return CONTROL_WAIT_RESUME;
    case COMMAND_QUIT:
    case COMMAND_LEAVE:
        return CONTROL_WAIT_QUIT;
    default:
        return CONTROL_WAIT_EXIT;
    }
}

static void give_command(struct control_client *client, const struct signal_row *s)
{
    struct control *control = client->control;
    enum command command = s->commands[ROLE_MASTER];
    enum control_wait outcome = outcome_of(command);
    bool full = control_waiting_is_full(control);
    const char *refused;

    assert(command != COMMAND_NONE); /* the table has a command for each word */
    if (full && outcome != CONTROL_WAIT_EXIT && outcome != CONTROL_WAIT_QUIT)
        refused = "too many clients wait for an outcome, try again";
    else
        refused = control->ops->command(control->host, command);
    if (refused != NULL) {
        control_reply_error(client, refused, false);
        return;
    }
    log_write(control->log, LEVEL_NOTICE, 0, "\"%s\" received from %d by the control socket, %s",
        s->command, (int)client->pid, s->doing);
    client->told = false;
    if (outcome == CONTROL_WAIT_EXIT || (full && outcome == CONTROL_WAIT_QUIT))
        reply_then_hold(client, full);
    else
        control_client_wait(client, outcome);
}

void control_command_handle(struct control_client *client, size_t n)
{
    struct json_value request = json_parse(client->in, n);
    const struct signal_row *command;
    char word[32], error[160];

    assert(client->phase == CLIENT_READING);
    assert(n <= client->in_n);
    if (request.text == NULL || *request.text != '{') {
        control_reply_error(client, "the request is no JSON object on a line", false);
        return;
    }
    if (!json_text(json_member(request, "command"), word, sizeof(word))) {
        control_reply_error(client, "the request has no \"command\": " COMMANDS, false);
        return;
    }
    client->progress = json_is_true(json_member(request, "progress"));
    command = signals_named(word);
    if (strcmp(word, "status") == 0) {
        reply_status(client);
    } else if (strcmp(word, "upstream") == 0) {
        control_upstream_handle(client, request);
    } else if (command != NULL) {
        give_command(client, command);
    } else {
        snprintf(error, sizeof(error), "unknown command \"%s\", " COMMANDS, word);
        control_reply_error(client, error, false);
    }
}
