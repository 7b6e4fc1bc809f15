/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the daemon for a level of its error logs. The daemon knows the levels and the bounds of the
 * time: here only the words are put in place. */
#include "cli/log_command.h"

#include "base/json.h"
#include "cli/command.h"
#include "cli/reply_text.h"

#include <stdlib.h>
#include <string.h>

int cli_log(const struct cmdline *cmdline, struct log *log)
{
    bool timed = cmdline->more_n == 2 && strcmp(cmdline->more[0], "for") == 0;
    struct json json;
    char *request;
    int status;
    size_t n;

    if (cmdline->more_n > 0 && !timed) {
        log_write(log, LEVEL_EMERG, 0,
            "invalid option: \"log %s %s\", expected \"log level for time\"", cmdline->argument,
            cmdline->more[0]);
        return EXIT_FAILURE;
    }
    json_begin(&json);
    json_object(&json, NULL);
    json_string(&json, "command", "log");
    if (cmdline->argument != NULL)
        json_string(&json, "level", cmdline->argument);
    if (timed)
        json_string(&json, "for", cmdline->more[1]);
    json_close(&json);
    request = json_end(&json, &n);
    if (request == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the request");
        return EXIT_FAILURE;
    }
    status = cli_ask_first(cmdline, log, request, reply_text_log);
    free(request);
    return status;
}
