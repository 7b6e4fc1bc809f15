/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what a master process has replied to a command: its messages, why it has failed, and what
 * is in force then. The daemon may be of another version: a missing member of the reply counts as
 * empty, and no assertion depends on the reply. */
#include "cli/outcome.h"

#include "base/diag_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_message(const struct diag_message *message, struct log *log)
{
    if (message->line != 0)
        log_write(log, (enum log_level)message->level, 0, "%s in %s:%d:%d", message->text,
            message->file, (int)message->line, (int)message->column);
    else
        log_write(log, (enum log_level)message->level, 0, "%s", message->text);
    fputs(message->excerpt, stderr);
}

/* Returns the end of the error line: what a failed command leaves unchanged, or what is in force
 * after it ("": the reply does not say). */
static const char *unchanged_part(const char *order, const char *in_force)
{
    if (strcmp(in_force, "new") == 0)
        return ", and the previous configuration could not be started again: the new one stays in "
               "force";
    if (strcmp(in_force, "previous") == 0)
        return ": the previous configuration is in force again";
    if (strcmp(order, "resume") == 0)
        return ": nothing has changed";
    if (strcmp(order, "reload") == 0)
        return ": the previous configuration stays in force";
    return strcmp(order, "upgrade") == 0 ? ": nothing has changed, the daemon continues to serve"
                                         : "";
}

void outcome_print_error(struct json_value reply, struct log *log)
{
    char error[4096];

    if (!json_text(json_member(reply, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "the daemon's reply is not valid");
    log_write(log, LEVEL_EMERG, 0, "%s", error);
}

int outcome_print(const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log)
{
    struct json_value outcome = json_parse(reply->text, reply->line_n);
    struct json_value messages = json_member(outcome, "messages"), at = { NULL, 0 };
    bool ok = json_is_true(json_member(outcome, "ok")), shown = false;
    int64_t pid = json_integer(json_member(outcome, "pid"), 0);
    struct diag_message message;
    char in_force[16] = "";

    while (!(ok && cmdline->quiet) && diag_from_json(messages, &at, &message)) {
        print_message(&message, log);
        shown = true;
    }
    if (ok) {
        if (pid > 0 && !cmdline->quiet)
            log_write(log, LEVEL_NOTICE, 0,
                "the new binary serves now, process %d, beside the old one: \"forkbeard upgrade "
                "forward\" ends the old one, \"forkbeard upgrade back\" takes the upgrade back",
                (int)pid);
        return EXIT_SUCCESS;
    }
    if (!shown)
        outcome_print_error(outcome, log);
    json_text(json_member(outcome, "in_force"), in_force, sizeof(in_force));
    log_write(log, LEVEL_ERROR, 0, "%s failed%s", cmdline->signal,
        unchanged_part(cmdline->signal, in_force));
    return EXIT_FAILURE;
}
