/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading, when a connection is readable: input is received into the worker's scratch buffer, lent
 * to the owner, and the requests of the owner meanwhile are flushed. Only the rest that the owner
 * leaves is copied, and more is received behind it from then on. */
#pragma once

#include "net/conn.h"

/* Runs `opened`, and reads the input that has come already. Not within a callback. */
void conn_open(struct fb_conn *conn);
/* For net/ alone: receives, gives the input to the owner, and flushes. */
void conn_run_read(struct loop *loop, struct source *source);
