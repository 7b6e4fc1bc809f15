/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status for clients, in JSON, whose keys are a promise to users. */
#pragma once

#include "base/clock.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct control;

#define CONTROL_LEFT_MAX 256

/* The host's part of the status. */
struct control_status {
    const char *state;
    bool ends;                 /* the daemon does */
    const char *configuration; /* the file's path */
    struct clock started;
    struct {
        bool any, ok;
        int64_t at_ms;     /* since the epoch */
        const char *error; /* why it failed */
    } reload;              /* the latest one */
    struct {
        const char *role; /* "old" or "new"; NULL: we are the only master process */
        pid_t other;
        const char *control; /* the second master's socket; NULL: unknown */
        bool serves;         /* the new process serves */
        bool main;           /* we are the service manager's main process */
    } upgrade;
    struct {
        pid_t pid, master;
    } left[CONTROL_LEFT_MAX]; /* the first workers of killed master processes */
    unsigned left_n;
    struct {
        const char *command; /* NULL behind the last */
        const char *why;
    } pending[3]; /* waiting commands */
};

/* Writes the members of a reply to "status". */
void control_status_write(struct control *control, struct json *json);
