/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics: the messages that explain to a client why a requested change failed. All processes
 * of the change add to one shared memory: a log adds lines of level alert and above, and the report
 * of a configuration its messages. A process may write at any time, even by mistake: readers get
 * checked copies and never assert on the memory. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct json_value;

#define DIAG_MAX 128 /* messages; further ones are only counted */

#define DIAG_REASON_MAX 3200 /* bytes of a message with its place */

struct diag_message {
    _Atomic uint32_t whole; /* 0: being written, or left by a dead writer */
    uint32_t level;         /* enum log_level */
    uint32_t line, column;  /* in `file`; 0: the message has no place */
    char text[2048];
    char file[1024];
    char excerpt[2816]; /* the file's line and its mark, or "" */
};

struct diag {
    _Atomic uint32_t session; /* messages of other sessions are discarded */
    _Atomic uint32_t n;       /* messages begun */
    struct diag_message lines[DIAG_MAX];
};

/* A message to be added; strings may be NULL. */
struct diag_text {
    uint32_t level, line, column;
    const char *text, *file, *excerpt;
    int text_n; /* bytes of the text; -1: up to its NUL */
};

/* Makes a mapping that children share; NULL with errno. */
struct diag *diag_create(void);
void diag_destroy(struct diag **diag);
/* Discards all messages and begins a session; returns its number. */
uint32_t diag_begin(struct diag *diag);
/* Adds a message to its session, from any process; long strings are cut. */
void diag_add(struct diag *diag, uint32_t session, const struct diag_text *telling);
uint32_t diag_count(const struct diag *diag);
/* Copies a message; false if it was not written to its end. */
bool diag_get(const struct diag *diag, uint32_t i, struct diag_message *copy);
/* Copies the first message of at least this severity into `reason`, with its place: later messages
 * are mostly consequences. False: none, and `reason` stays. `diag` may be NULL. */
bool diag_reason(const struct diag *diag, uint32_t level, char *reason, size_t size);
/* Writes the member "messages", an array with all messages of `diag` (NULL: none). */
void diag_to_json(struct json *json, const struct diag *diag);
/* Reads the next message of the array `messages`; *at is the last element (no value: none yet). An
 * unknown level becomes LEVEL_EMERG. Returns false after the last message. */
bool diag_from_json(struct json_value messages, struct json_value *at, struct diag_message *out);
/* Adds all messages of an array to a session. `diag` may be NULL. */
void diag_add_json(struct diag *diag, uint32_t session, struct json_value messages);
