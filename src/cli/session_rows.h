/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of `forkbeard sessions`: columns, filters, order, and the table. Rows come from workers, and
 * are input: texts are bounded and escaped, other members ignored. */
#pragma once

#include "base/json.h"
#include "cli/cmdline.h"

#include <stdint.h>
#include <stdio.h>

#define SESSION_COLUMNS 13
/* The most rows: of ten workers with 100,000 sessions. */
#define SESSION_ROWS_MAX 1000000

struct session_row {
    int sort; /* column of the present order */
    union {
        int64_t number;
        char *text; /* allocated */
    } values[SESSION_COLUMNS];
};

struct session_rows {
    struct session_row *list;
    size_t n, size;
    size_t left_out; /* rows beyond the limit, or without memory */
    int sort, by;    /* columns; by: -1: rows are no groups */
    char *const *filters;
    unsigned filter_n;
};

/* Takes filters and columns of the command line, which lives longer; -1 after an emerg line. */
int session_rows_init(struct session_rows *rows, const struct cmdline *cmdline, struct log *log);
void session_rows_free(struct session_rows *rows);
/* Adds a worker's row, if the filters let the row pass. */
void session_rows_add(struct session_rows *rows, struct json_value row);
/* Sorts, and prints a table, or lines of JSON. */
void session_rows_print(struct session_rows *rows, bool as_json, FILE *out);
