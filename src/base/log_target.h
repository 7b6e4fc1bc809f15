/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets of a log: files and standard error, a syslog server, the journal. A line goes to a target
 * by one system call. Only files can block the process. A line that a socket does not accept is
 * counted as lost; a socket whose receiver has gone is marked as broken, and its owner connects it
 * again. */
#pragma once

#include "base/log_level.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* A server that takes lines as datagrams, in the format of RFC 3164. */
struct syslog_server {
    const struct sockaddr *address;
    socklen_t address_n;
    const char *name; /* the address as lines show it */
    const char *host; /* "NAME ", or "" */
    const char *tag;
    unsigned facility;
};

struct log_target {
    int fd;               /* -1: closed, nothing is written */
    enum log_level level; /* least severe level that is written */
    enum log_format format;
    const char *path;                   /* file, or NULL */
    const struct syslog_server *syslog; /* server to which `fd` is a connected socket, or NULL */
    /* Without path and syslog the target is standard error, which is never reopened. If it leads to
     * the journal, text goes to the journal's own socket, and to `fd` only what that socket
     * refuses. */
    bool journal;
    int journal_fd;    /* connected, or -1 */
    uint64_t lost;     /* lines that were refused and not yet reported */
    bool broken;       /* the receiver has gone: the owner connects the target again */
    uint64_t retry_ms; /* monotonic time before which the owner does not try */
    bool down;         /* connecting again has failed, and that was logged */
};

struct log_entry;

/* Opens the target's path for appending; -1 with errno, and then the old descriptor stays. */
int log_target_open(struct log_target *target);
/* Makes the socket of a syslog target; -1 with errno. */
int log_target_make_socket(struct log_target *target);
/* Connects it, or connects it again, in all processes that have inherited it; -1 with errno. */
int log_target_connect(struct log_target *target);
/* Whether the target has a descriptor of its own, which its owner opens and closes. */
static inline bool log_target_is_own(const struct log_target *target)
{
    return target->path != NULL || target->syslog != NULL;
}
/* Writes the entry to a target that is open. */
void log_target_write(struct log_target *target, struct log_entry *entry);
