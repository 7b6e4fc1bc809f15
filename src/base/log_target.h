/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets of a log: files and standard error, a syslog server, the journal. A line goes to a target
 * by one system call, which waits for no reader and no receiver. A line that is not accepted, or
 * that a full disk has no room for, is counted as lost; a socket whose receiver has gone is marked
 * as broken, and its owner connects it again. */
#pragma once

#include "base/log_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LOG_TARGET_NAME 320 /* bytes of a name with its terminator; a longer path is cut */

/* The system call that writes to a file, or to what standard error leads to. */
enum log_way {
    LOG_WAY_WRITE,  /* write(): what is open does not have us wait */
    LOG_WAY_SEND,   /* sendmsg() with MSG_DONTWAIT: a socket */
    LOG_WAY_NOWAIT, /* os/files.h: a pipe that we could not open again */
    LOG_WAY_WAIT,   /* write(), although it may wait */
};

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* A server that takes lines as datagrams, in the format of RFC 3164. */
struct syslog_server {
    const struct sockaddr *address;
    socklen_t address_n;
    const char *name; /* the address as lines show it */
    const char *host; /* "NAME ", or "" */
    const char *tag;
    unsigned facility;
    enum log_level severity; /* an access log's lines have no own */
};

struct log_target {
    int fd;               /* -1: closed, nothing is written */
    enum log_level level; /* least severe level that is written */
    enum log_format format;
    enum log_way way;
    const char *path;                   /* file, or NULL */
    const struct syslog_server *syslog; /* server to which `fd` is a connected socket, or NULL */
    /* Without path and syslog the target is standard error, which is never reopened. If it leads to
     * the journal, text goes to the journal's own socket, and to `fd` only what that socket
     * refuses. */
    bool journal;
    int journal_fd; /* connected, or -1 */
    uint64_t lost;  /* lines that were refused and not yet reported */
    bool torn;      /* a part of the last line was accepted: the next begins with a newline */
    bool is_pipe;   /* takes PIPE_BUF bytes whole, and more than these perhaps in part */
    bool broken;    /* the receiver has gone: the owner connects the target again */
    bool down;      /* connecting again has failed, and that was logged */
};

struct log_entry;

/* Lines that are whole already, with their newlines: an access log's. */
struct log_lines {
    const char *bytes;
    size_t n;
    unsigned count;
    bool packed; /* compressed, so that no byte of it is a line's end */
};

/* Opens the target's path as log_file_open() does; -1 with errno, and then the old descriptor
 * stays. */
int log_target_open(struct log_target *target);
/* Finds out how the descriptor is written to; to be called when it has become another. */
void log_target_find_way(struct log_target *target);
/* Makes the socket of a syslog target; -1 with errno. */
int log_target_make_socket(struct log_target *target);
/* Connects it, or connects it again, in all processes that have inherited it; -1 with errno. */
int log_target_connect(struct log_target *target);
/* Whether the target has a descriptor of its own, which its owner opens and closes. */
static inline bool log_target_is_own(const struct log_target *target)
{
    return target->path != NULL || target->syslog != NULL;
}
/* Whether both lead to one place by their configuration, perhaps by other descriptors. */
bool log_target_is_same(const struct log_target *a, const struct log_target *b);
/* Writes the target's name, as lines about it show it, and returns it. */
const char *log_target_name(const struct log_target *target, char name[LOG_TARGET_NAME]);
/* Writes the entry to a target that is open. */
void log_target_write(struct log_target *target, struct log_entry *entry);
/* Writes the lines to a target that is open, a file's by one system call; false, with errno, where
 * some were lost, and 0 in it where a part was accepted. Syslog and the journal take a line each
 * call. */
bool log_target_put(
    struct log_target *target, const struct log_lines *lines, struct log_stamp *stamp);
