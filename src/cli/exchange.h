/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to a daemon's control socket: a request is a line of JSON, and so is a reply. Each
 * call but cli_receive_next() ends at the connection's deadline. */
#pragma once

#include "base/json.h"
#include "cli/cmdline.h"

#include <stddef.h>
#include <stdint.h>

struct cli_exchange {
    int fd;           /* -1: not connected */
    int passed;       /* of a connection: descriptor that came last, or -1 */
    int64_t deadline; /* in milliseconds of CLOCK_MONOTONIC */
    char *text;       /* bytes received; the latest line comes first */
    size_t line_n;    /* bytes of the line including the end; 0: no line */
    size_t n, size;
};

/* The time now, in milliseconds. */
int64_t cli_now_ms(void);
/* Connects; -1 with errno, EAGAIN when the deadline has passed. */
int cli_connect(struct cli_exchange *exchange, const char *path, int64_t deadline);
/* Sends a line; -1 with errno, not for a closed connection: the reply has the reason. */
int cli_send(struct cli_exchange *exchange, const char *request);
/* Connects and sends the command without further members; -1 with errno. */
int cli_request(
    struct cli_exchange *exchange, const char *path, const char *command, int64_t deadline);
/* Receives a line, valid until the next call; -1 with errno: 0: closed, EAGAIN: the deadline. */
int cli_receive(struct cli_exchange *exchange);
/* Receives a line without a deadline; -1 with errno at the end of the connection. */
int cli_receive_next(struct cli_exchange *exchange);
/* Closes the connection and frees the line; also after cli_connect() has failed. */
void cli_disconnect(struct cli_exchange *exchange);
/* Prints the line received last, if any. */
void cli_print_line(const struct cli_exchange *exchange);
/* Prints the error of a reply without "ok". */
void cli_print_error(struct json_value reply, struct log *log);
/* Prints the outcome of a command of -s; returns the exit code. */
int cli_print_outcome(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log);
