/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector of log lines by TCP, which fails the test for a message without its length. */
#pragma once

#include "daemon/daemon.h"

#define COLLECTED_MAX 64

/* A connection of a process, and what it has sent behind the last whole message. */
struct collected {
    int fd;
    char *bytes;
    size_t n, size;
};

struct collector {
    in_port_t port; /* of 127.0.0.1 */
    int listener;
    struct collected connections[COLLECTED_MAX];
    unsigned connection_n; /* open ones */
    char *text;            /* all messages, a newline behind each */
    size_t text_n;
    unsigned message_n, torn_n; /* connections that have ended within a message */
};

/* Listens, on the same port after a stop. */
void collector_start(struct collector *collector);
/* Closes everything; what was collected stays. */
void collector_stop(struct collector *collector);
void collector_done(struct collector *collector);
/* Takes what has come; returns how often the text is in all messages. */
unsigned collector_count(struct collector *collector, const char *text);
