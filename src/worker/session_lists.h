/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of a worker as lines of JSON, for a client of the master.
 *
 * Responsible for the writing end of a pipe, from the master's message to the last row. Never waits
 * for the reader, or holds the loop for longer than some rows. */
#pragma once

#include "event/timer.h"

#include <bsd/sys/queue.h>

struct worker;
struct session_list;

/* The most lists at a time; a further list is a line: the worker is busy. */
#define SESSION_LISTS_MAX 4

struct session_lists {
    LIST_HEAD(, session_list) all;
    unsigned n;
};

/* Writes all sessions into the pipe, which becomes the list's. */
void session_lists_begin(struct worker *worker, int pipe);
/* Gives all lists up. */
void session_lists_done(struct worker *worker);
