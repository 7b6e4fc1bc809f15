/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between the two master processes of an upgrade: messages, each an object of JSON on a
 * line, some with a descriptor. The two may be of different versions: what is not known is
 * ignored, and nothing that the other process writes is asserted on. Here messages become bytes
 * and bytes messages; what they cause is upgrade.c's. */
#pragma once

#include "base/diag_json.h"
#include "base/json.h"
#include "base/log.h"
#include "settings/cycle.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct upgrade_link {
    int fd;   /* -1: there is no other process, or it has gone */
    char *in; /* received, and not handled yet */
    size_t in_n, in_size;
    size_t line_n; /* bytes of `in` that are the message handled last */
    int passed;    /* a descriptor that goes with the next message, or -1 */
};

struct upgrade_message {
    bool serves;                        /* the sender, which is new, serves */
    bool main;                          /* the receiver is the main process from now on */
    bool rescan;                        /* the receiver's workers are to look at their listeners */
    char control[CONTROL_PATH_MAX + 1]; /* the sender's control socket, or "" */
    struct json_value sockets;          /* the sender listens on these; or none */
    struct json_value diag;             /* why the sender cannot start; or none */
    struct json_value whole;            /* the message, for others to look into */
    int fd;                             /* the receiver's to close, or -1 */
};

enum upgrade_link_status { LINK_MESSAGE, LINK_EMPTY, LINK_ENDED };

/* Takes the descriptor, or -1. */
void upgrade_link_init(struct upgrade_link *link, int fd);
/* Closes and frees; the link is as after an init with -1. */
void upgrade_link_close(struct upgrade_link *link);
void upgrade_link_check(const struct upgrade_link *link);

/* Begins a message, to which the caller adds members before upgrade_link_send(). */
void upgrade_link_begin(struct json *json);
/* Ends and sends it, with a descriptor unless that is -1, which stays the caller's; -1 with errno. A
 * process that has gone is no error. */
int upgrade_link_send(struct upgrade_link *link, struct json *json, int fd);
/* Sends a message, or logs that process `other` does not read, and loses the message. */
void upgrade_link_tell(
    struct upgrade_link *link, struct json *json, int fd, pid_t other, struct log *log);
/* Receives the next message, which is valid until the next call. */
enum upgrade_link_status upgrade_link_next(
    struct upgrade_link *link, struct upgrade_message *message);

/* A new process that cannot start sends the old one its diagnostics, and waits until they are
 * read or a few seconds are over. `link` may be -1. */
void upgrade_report(int link, const struct diag *diag);
