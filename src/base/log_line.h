/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of a log line: everything but its message. The strings belong to the caller and must
 * last only as long as the call that logs. */
#pragma once

#include "base/log_level.h"

#include <stdbool.h>
#include <stdint.h>

/* A place in the configuration that a line is about. */
struct log_place {
    const char *file;
    unsigned line, column; /* from 1 */
    /* makes the excerpt for a reader who has asked for the change; NULL where there is none */
    const char *(*excerpt)(const struct log_place *place);
};

struct log_route;

/* The state of a session that is led to a server, as nginx has it. Only the text form shows it. */
struct log_relay {
    const char *action; /* for example "connecting to upstream" */
    uint64_t from_client, to_client, from_upstream, to_upstream; /* bytes */
};

/* How bytes were to be moved where a line says that this has failed. */
enum log_transfer { LOG_NO_TRANSFER, LOG_RECEIVING, LOG_SENDING };

/* Texts may be NULL. */
struct log_line {
    enum log_level level;
    int error;                              /* an errno to name, or 0 */
    uint64_t connection;                    /* number of the connection, or 0 */
    const char *client, *server, *upstream; /* addresses */
    const char *protocol;                   /* name; not shown in the text form */
    const struct log_place *place;          /* NULL: none */
    const char *action;                     /* for example "prereading client data"; without it: */
    struct log_relay relay;                 /* without meaning where it has no action */
    enum log_transfer transfer;             /* not shown: it decides about the action */
    const struct log_route *route;          /* where the line goes; NULL: to the log's targets */
    bool named; /* the message names client and server, which the text form does not repeat */
    bool force; /* write to every target whatever its level (debug_connection) */
};
