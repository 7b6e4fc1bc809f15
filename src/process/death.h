/* SPDX-License-Identifier: BSD-2-Clause */
/* The death of a worker's process: the cause, and its words. The last words are input, written by
 * the worker: they decide about the log line and the counted cause alone. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"
#include "shm/shared.h"

enum death_cause {
    DEATH_ASKED,  /* told to end, as far as known */
    DEATH_SIGNAL, /* a crash, or a sent signal */
    DEATH_EXIT,   /* exit() or pthread_exit() by foreign code */
    DEATH_WAIT,   /* could not wait for events */
    DEATH_START,  /* could not start, and has logged why */
};

/* Last words of a worker, in its own slot. */
struct death_words {
    uint64_t now, jobs; /* as struct heartbeat */
    uint32_t end;
    uint64_t sessions;
};

#define DEATH_PLACE_MAX 256
#define DEATH_TEXT_MAX 512

struct death {
    enum death_cause cause;
    enum log_level level; /* how loud a line says so */
    int error;
    char text[DEATH_TEXT_MAX]; /* "exited on signal 11 in callback \"data\"", behind the process */
};

/* Reads a worker's last words, before its slot is released; `sessions` is the most believed. */
void death_read(
    struct shared *shared, struct slot_id slot, int64_t sessions, struct death_words *words);
/* Finds the cause by the status of wait(). `killed`: the reason of our fatal signal, or NULL; NULL
 * for `cycle`: the process has no protocols. */
void death_explain(struct death *death, int status, const char *killed, const struct cycle *cycle,
    const struct death_words *words);
/* Formats where a worker is, or was: "in callback \"data\" of protocol \"echo\"". "": the worker
 * waits, or, with NULL for `cycle`, the process has no protocols. */
void death_place(
    const struct cycle *cycle, const struct death_words *words, char text[DEATH_PLACE_MAX]);
