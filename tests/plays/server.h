/* SPDX-License-Identifier: BSD-2-Clause */
/* A server outside of the daemon, the target of whole workers' sessions: echoes, and ends a
 * connection after the peer. */
#pragma once

#include "plays/play.h"

/* Listens on the path `name` of the play's directory. */
struct play_server *play_server_create(const struct play *play, const char *name);
void play_server_destroy(struct play_server **server);
/* Accepts and echoes; false: nothing has come. */
bool play_server_step(struct play_server *server);
/* How many connections it has. */
unsigned play_server_count(const struct play_server *server);
