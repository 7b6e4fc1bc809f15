/* SPDX-License-Identifier: BSD-2-Clause */
/* A log line: level, attributes (all but the message), and the text and JSON forms, each made once,
 * for the first target that needs it, in the caller's memory. Knows nothing of logs and targets.
 * The strings of a line are the caller's, for the time of the call that logs. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Levels: nginx's names, and the numbers of syslog's severities. */
enum log_level {
    LEVEL_EMERG,
    LEVEL_ALERT,
    LEVEL_CRIT,
    LEVEL_ERROR,
    LEVEL_WARN,
    LEVEL_NOTICE,
    LEVEL_INFO,
    LEVEL_DEBUG,
};

const char *log_level_name(enum log_level level);
/* Returns the level of the name, or -1. */
int log_level_parse(const char *name);

struct log_place {
    const char *file;
    unsigned line, column; /* from 1 */
    /* makes the excerpt for the client of a change; NULL: there is none */
    const char *(*excerpt)(const struct log_place *place);
};

struct log_route;

/* The state of a proxied session, as nginx has it, for the text form alone. */
struct log_relay {
    const char *action; /* for example "connecting to upstream" */
    uint64_t from_client, to_client, from_upstream, to_upstream; /* bytes */
};

/* The direction of a failed transfer of bytes. */
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
    enum log_transfer transfer;             /* hidden in the line: decides about the action */
    const struct log_route *route;          /* destination of the line; NULL: the log's targets */
    bool named; /* the message names client and server, which the text form does not repeat */
    bool force; /* write to every target whatever its level (debug_connection) */
};

/* The time of log lines as text, made once a second. */
struct log_stamp {
    int64_t second;   /* time of the texts, since the epoch; -1: none yet */
    char date[24];    /* 2026/11/21 09:30:00 */
    char syslog[16];  /* Nov 21 09:30:00 */
    char rfc5424[24]; /* 2026-11-21T09:30:00 */
    char zone[8];     /* +01:00 */
};

/* Makes the texts again, in the local time zone, in a new second. */
void log_stamp_update(struct log_stamp *stamp);
/* Makes the texts of this second, where the caller has read a finer clock. */
void log_stamp_set(struct log_stamp *stamp, time_t second);

/* Bytes of a line in any form: what a pipe takes whole. */
#define LOG_LINE_MAX 4096

struct log_text {
    char bytes[LOG_LINE_MAX];
    size_t n; /* a byte is always left for the newline */
};

struct log_entry {
    const struct log_line *line;
    const char *plain; /* name in place of the time and the pid, or NULL */
    pid_t pid;
    struct log_stamp *stamp;
    char message[LOG_LINE_MAX]; /* formatted by the caller */
    bool has_text, has_json;    /* forms that were made */
    struct log_text text, json; /* with their newlines */
    size_t head;                /* bytes of the text before the message */
    size_t place;               /* bytes of the text before the line's place, where it has one */
};

const struct log_text *log_text_make(struct log_entry *entry);
const struct log_text *log_json_make(struct log_entry *entry);
/* Adds to a text; bytes that a terminal would act on become \xNN. A text without room is cut. */
void log_text_add(struct log_text *text, const char *s);
