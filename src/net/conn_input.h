/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading, when a connection is readable. */
#pragma once

#include "net/conn.h"

/* Runs `opened`, and reads the input that has come already. Not within a callback. */
void conn_open(struct fb_conn *conn);
/* Drops n bytes of the input that the owner has left; not within `data`. */
void conn_drop_input(struct fb_conn *conn, size_t n);
/* For net/ alone: receives, gives the input to the owner, and flushes. */
void conn_run_read(struct loop *loop, struct source *source);
