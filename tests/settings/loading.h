/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of the tests of settings/: a directory of configuration files, loaded and looked at. */
#pragma once

#include "settings/cycle.h"

struct loading {
    char directory[32];
    char conf[64];                /* the main file, "main" in the directory */
    struct cycle_options options; /* modules lie in the directory */
    struct cycle *cycle;          /* result of the last load; NULL when refused */
    char report[32768];           /* messages of the last load */
};

/* The options' conf is "main"; the loaded text has no path of its own for `pid` and `error_log`. */
void loading_begin(struct loading *loading);
void loading_end(struct loading *loading);

void add_file(struct loading *loading, const char *name, const char *text);
/* Puts a module of tests/module/ into the directory. */
void add_module(struct loading *loading, const char *name);

/* Loads "main" with the given text. The messages come without "emerg" and without the directory's
 * name, each ended by "\n"; warnings are preceded by "warning: ", notices
 * by "notice: ". */
void load(struct loading *loading, const char *text);
/* The text must load, with exactly the messages: warnings, or "". */
void accept_text(struct loading *loading, const char *text, const char *messages);
/* The text must be refused with exactly these messages. */
void refuse_text(struct loading *loading, const char *text, const char *messages);
/* The text must load without a message; or, where `wrong` is not NULL, be refused with that. */
void judge_text(struct loading *loading, const char *text, const char *wrong);

/* Returns the i-th server of stream {}. */
const struct server *loading_server(const struct loading *loading, unsigned i);
/* Returns the first binding of the i-th listener. */
const struct binding *loading_binding(const struct loading *loading, unsigned i);

/* A process with an effective user other than root, until loading_end(). */
void become_nobody(void);
