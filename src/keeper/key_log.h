/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with the secrets of sessions, in the format of SSLKEYLOGFILE, which programs such as
 * Wireshark read.
 *
 * Responsible for a line in one piece, because several processes append to a file. A line that
 * cannot be written is lost, and the first of them is told. */
#pragma once

#include "base/log.h"
#include "tls/engine.h"

#include <stdbool.h>

struct key_log {
    bool open;
    bool failed; /* a line was lost */
    int fd;
    const char *path;
    struct log *log;
};

/* The files of an engine, by the indexes of the profiles' files; zeroed at first. */
struct key_logs {
    struct key_log *list; /* NULL: no profile has any */
    unsigned n;
};

/* Opens the files that profiles name; -1 after a line about each mistake. The log outlives them. */
int key_logs_open(struct key_logs *logs, struct tls_files *files, struct log *log);
/* Returns the log of a profile; NULL: none. */
struct key_log *key_logs_find(const struct key_logs *logs, const struct tls_profile *profile);
void key_logs_close(struct key_logs *logs);
/* Appends a line, given without its end. */
void key_log_write(struct key_log *log, const char *line);
