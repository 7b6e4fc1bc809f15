/* SPDX-License-Identifier: BSD-2-Clause */
/* A syslog server of the configuration, and the head of a message for it: RFC 3164, which /dev/log
 * and old servers know, or RFC 5424, whose time has a fraction and a zone. */
#pragma once

#include "base/log_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* ANY: the configuration names none, and what reads it chooses. */
enum syslog_format { SYSLOG_ANY, SYSLOG_RFC3164, SYSLOG_RFC5424 };

/* A server for lines as datagrams, or by a stream. */
struct syslog_server {
    const struct sockaddr *address;
    socklen_t address_n;
    const char *name; /* the address as lines show it */
    const char *host; /* "NAME ", or "" */
    const char *tag;
    unsigned facility;
    enum log_level severity; /* severity of an access log's lines */
    enum syslog_format format;
    bool by_tcp; /* on a connection of each process; else as datagrams */
};

/* Bytes of a head, with its terminator. */
#define SYSLOG_HEAD_MAX 400

/* Writes the head of a message of this kind, a MSGID of RFC 5424; returns its length. */
size_t syslog_server_head(const struct syslog_server *server, struct log_stamp *stamp,
    enum log_level severity, const char *kind, char head[SYSLOG_HEAD_MAX]);
