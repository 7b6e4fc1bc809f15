/* SPDX-License-Identifier: BSD-2-Clause */
/* The module of mistakes: mistaken.c is its protocol and has the mistakes of handles, places and
 * the end, mistaken_bytes.c the mistakes of memory and arguments. */
#pragma once

#include <forkbeard/forkbeard.h>

/* Memory with the worker's lifetime. */
struct mistaken_worker {
    void (*later)(fb_worker *worker); /* the mistake of the timer */
    fb_conn *old;
    const volatile uint8_t *kept;
    const fb_target *target;
    fb_watch *watch;
};

struct mistaken {
    int64_t at; /* a place of the mistake: mistaken_places */
    fb_map *map;
    fb_conf *conf;
    const fb_variable *lent;
};

/* The worker_state of its protocol, and its map. */
struct mistaken_worker *mistaken_own(fb_conn *conn);
fb_map *mistaken_map(const fb_conn *conn);
/* The value of $mistaken_lent: what was kept. */
int mistaken_value(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out);
/* Sets the worker's timer for the mistake. */
void mistaken_make_later(fb_conn *conn, void (*later)(fb_worker *worker));
/* Uses what was kept in the worker_state. */
void mistaken_read_kept(fb_worker *worker);
/* A release and a work, and a post and a done, that do nothing. */
void mistaken_ignore(void *arg);
void mistaken_run_nothing(fb_worker *worker, void *work);

#define MISTAKE(name, report) void mistake_##name(fb_conn *conn, fb_bytes in);
#include "mistakes.def"
#undef MISTAKE
