/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages on a connection to a syslog server, with their lengths in front (RFC 6587, octet
 * counting). A process has a connection of its own. Messages wait in bounded memory while the
 * connection takes none; a connection begins with a whole message, so that a message which an
 * earlier one has taken in part is sent again. The descriptor is the owner's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Bytes of messages that wait, with their lengths; a longer message is refused. */
#define LOG_STREAM_SIZE (1u << 20)

enum log_stream_phase {
    LOG_STREAM_DOWN,    /* the descriptor takes nothing, and waits for its replacement */
    LOG_STREAM_OPENING, /* nothing was accepted yet */
    LOG_STREAM_UP,
};

struct log_stream;

/* A stream that is down; NULL without memory. */
struct log_stream *log_stream_create(void);
void log_stream_destroy(struct log_stream **stream);
/* Begins with a new connection. */
void log_stream_open(struct log_stream *stream);
/* Forgets the messages of the process from which this process was forked; true: there was one, and
 * the descriptor, too, is still that process's. */
bool log_stream_separate(struct log_stream *stream);
/* Takes a message of up to LOG_STREAM_PARTS parts; false with errno: it is lost. Never waits. */
#define LOG_STREAM_PARTS 2
bool log_stream_put(struct log_stream *stream, int fd, const struct iovec *parts, unsigned part_n);
/* Sends waiting messages, as far as the connection has room. */
void log_stream_flush(struct log_stream *stream, int fd);
/* Does so for a process that is about to end: waits for the connection, for so long at most. */
void log_stream_finish(struct log_stream *stream, int fd, int ms);
enum log_stream_phase log_stream_phase(const struct log_stream *stream);
/* Returns the errno that has ended the last connection. */
int log_stream_error(const struct log_stream *stream);
/* Whether messages wait. */
bool log_stream_waits(const struct log_stream *stream);
/* Drops waiting messages; returns the number. */
unsigned log_stream_drop(struct log_stream *stream);
/* Moves waiting messages to another stream of this process, where each is whole again; returns the
 * number of messages without room. */
unsigned log_stream_move(struct log_stream *from, struct log_stream *to);
