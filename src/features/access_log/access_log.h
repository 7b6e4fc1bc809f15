/* SPDX-License-Identifier: BSD-2-Clause */
/* Access logs: a line for each ended session. Responsible for a worker's buffers, and for writing
 * each line, or a buffer, by one system call. Never waits for a reader, and never opens a log: the
 * master does (configuration/logs.c). Invariant: a buffer holds whole lines alone, and the buffer's
 * timer runs only while there are lines. */
#pragma once

#include "base/log_target.h"
#include "features/access_log/cache.h"
#include "features/access_log/log_format.h"
#include "shm/slot.h"

#include <stdint.h>

struct access_destination;
struct conf_word;
struct cycle;
struct stream;

/* A destination of access_log directives: a file is shared by directives with equal paths. */
struct access_file {
    struct access_file *next;
    unsigned index;                 /* among a worker's buffers */
    struct log_target *target;      /* opened by the master; of a path with variables the count */
    const struct access_path *path; /* NULL: it has no variables */
    size_t buffer;                  /* bytes; 0: each line is written at once */
    int64_t flush;                  /* ms; 0: none */
    int64_t gzip;                   /* level; 0: none */
};

/* An access_log directive. */
struct access_log {
    struct access_log *next;
    const struct access_file *file;
    const struct conf_word *named;    /* the format, as the configuration names it */
    const struct line_format *format; /* found at the end of stream {} */
    const struct template *condition; /* NULL: each session is logged */
};

/* A server's logs, inherited all or none. */
struct access_logs_setting {
    struct access_log *first, *last;
    bool off;
};

/* The feature's struct of a server. */
struct access_log_values {
    struct access_logs_setting logs;
    const struct access_cache_setting *cache; /* open_log_file_cache; NULL: none */
};

/* The feature's struct of the configuration. */
struct access_log_conf {
    struct line_formats formats;
    struct line_format *ready; /* the format that has a name without a log_format; NULL: not used */
    RB_HEAD(access_destinations, access_destination) destinations;
    struct access_file *files; /* destinations, once each */
    unsigned file_n, cache_n;
};

/* The handler of PHASE_LOG; `arg` is the first of the server's logs. */
unsigned access_log_run(struct fb_conn *conn, const void *arg);

/* Makes the worker's part, if there are access logs; -1 after a line in the log. */
int access_log_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot);
/* Writes all buffered lines, or the lines for the target. */
void access_log_flush(struct stream *stream);
void access_log_flush_to(struct stream *stream, const struct log_target *target);
/* Writes all buffered lines, and closes the files that the worker has opened. */
void access_log_reopen(struct stream *stream);
/* Writes what is buffered, and ends. */
void access_log_close(struct stream *stream, const struct cycle *cycle);
