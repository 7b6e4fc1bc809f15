/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between the two master processes of an upgrade: messages are objects of JSON on a line,
 * some with a descriptor. The two processes may be of different versions: unknown members are
 * ignored, and received bytes never asserted. Effects of a message are upgrade.c's. */
#pragma once

#include "base/diag.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct upgrade;

struct upgrade_link {
    int fd;   /* -1: no second process runs */
    char *in; /* received bytes */
    size_t in_n, in_size;
    size_t line_n; /* bytes of the message handled last */
    int passed;    /* descriptor for the next message, or -1 */
};

/* Takes the descriptor, or -1. */
void upgrade_link_init(struct upgrade_link *link, int fd);
/* Closes and frees; the link is as after an init with -1. */
void upgrade_link_close(struct upgrade_link *link);
void upgrade_link_check(const struct upgrade_link *link);
/* Begins a message; the caller adds members before upgrade_link_send(). */
void upgrade_link_begin(struct json *json);
/* Sends a message with the caller's descriptor or -1; -1 with errno, not for a gone process. */
int upgrade_link_send(struct upgrade_link *link, struct json *json, int fd);
/* Sends a message; a message that is not read in time is lost, with a log line. */
void upgrade_link_tell(struct upgrade *upgrade, struct json *json, int fd);
/* Receives the next message, valid until the next call, and its descriptor, the caller's to close,
 * or -1; false: none has come, or the link is closed. */
bool upgrade_link_next(struct upgrade_link *link, struct json_value *message, int *fd);
/* Sends diagnostics of a failed start, and waits for seconds at most; `link` may be -1. */
void upgrade_report(int link, const struct diag *diag);
