/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets of a log: files and standard error, a syslog server, the journal. A line goes to a target
 * by one system call, which never waits; lines for a TCP connection may wait in memory. A refused
 * line is counted as lost; a socket without a receiver is marked as broken, and its owner connects
 * it again. */
#pragma once

#include "base/log_line.h"
#include "base/log_stream.h"
#include "base/syslog_server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LOG_TARGET_NAME 320 /* bytes of a name with its terminator; a longer path is cut */

/* The system call that writes to a file, or to what standard error leads to. */
enum log_way {
    LOG_WAY_WRITE,  /* write(), which does not wait */
    LOG_WAY_SEND,   /* sendmsg() with MSG_DONTWAIT: a socket */
    LOG_WAY_NOWAIT, /* os/files.h: a pipe that could not be opened again */
    LOG_WAY_WAIT,   /* write(), although it may wait */
};

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_target {
    int fd;               /* -1: closed, nothing is written */
    enum log_level level; /* least severe level that is written */
    enum log_format format;
    enum log_way way;
    const char *path;                   /* file, or NULL */
    const struct syslog_server *syslog; /* server to which `fd` is a connected socket, or NULL */
    struct log_stream *stream;          /* of an open server by TCP, or NULL */
    /* Without path and syslog the target is standard error, which is never reopened. If it leads to
     * the journal, text goes to the journal's own socket, and to `fd` after a refusal. */
    bool journal;
    int journal_fd; /* connected, or -1 */
    uint64_t lost;  /* lines that were refused and not yet reported */
    bool torn;      /* a part of the last line was accepted: the next begins with a newline */
    bool is_pipe;   /* takes PIPE_BUF bytes whole, and more than these perhaps in part */
    bool broken;    /* the receiver has gone: the owner connects the target again */
    bool down;      /* connecting again has failed, and that was logged */
};

struct log_entry;

/* Whole lines with newlines, of an access log. */
struct log_lines {
    const char *bytes;
    size_t n;
    unsigned count;
    bool packed; /* compressed: no byte is a line's end */
};

/* Opens the target's path as log_file_open() does; -1 with errno, with the old descriptor kept. */
int log_target_open(struct log_target *target);
/* Finds the way to write to a new descriptor. */
void log_target_find_way(struct log_target *target);
/* Makes the socket of a server, with the stream of a server by TCP; -1 with errno. */
int log_target_make_socket(struct log_target *target);
/* Connects the socket, perhaps again, for all processes that have inherited it; by TCP begins a new
 * connection, for this process alone. -1 with errno. */
int log_target_connect(struct log_target *target);
/* Returns a new socket that is being connected to the server by TCP; -1 with errno. */
int log_target_dial(const struct log_target *target);
/* Replaces the inherited connection by TCP of a process that was forked; `connects`: by a new one,
 * else by none, until one is needed. */
void log_target_separate(struct log_target *target, bool connects);
/* Closes the descriptor, and forgets what waits. */
void log_target_close(struct log_target *target);
/* Whether lines wait for the connection. */
static inline bool log_target_waits(const struct log_target *target)
{
    return target->stream != NULL && log_stream_waits(target->stream);
}
/* Whether the owner opens and closes the target's descriptor. */
static inline bool log_target_is_own(const struct log_target *target)
{
    return target->path != NULL || target->syslog != NULL;
}
/* Whether both are configured alike, perhaps with other descriptors. */
bool log_target_is_same(const struct log_target *a, const struct log_target *b);
const char *log_target_name(const struct log_target *target, char name[LOG_TARGET_NAME]);
void log_target_write(struct log_target *target, struct log_entry *entry);
/* Writes the lines to an open target, to a file by one system call; false with errno: lines were
 * lost, 0: a part was accepted. Syslog and the journal take one line a call. */
bool log_target_put(
    struct log_target *target, const struct log_lines *lines, struct log_stamp *stamp);
