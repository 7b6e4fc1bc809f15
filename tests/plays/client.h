/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of a play: clients of the control socket wait for replies, and clients of a listener must
 * be accepted. */
#pragma once

#include "plays/play.h"

struct play_client {
    TAILQ_ENTRY(play_client) link;
    int fd;
    bool of_control;
    bool replied; /* a whole line has come; from the control socket: the reply, not its progress */
    bool ended;   /* the other end has closed */
    size_t n;
    char line[65536];
};

/* Connects to the control socket `name` and gives a command, such as "reload"; NULL: no process
 * listens. The client is the play's. */
struct play_client *play_control(struct play *play, const char *name, const char *command);
/* Connects as play_control() does, and sends this line. */
struct play_client *play_request(struct play *play, const char *name, const char *line);
/* Connects to the listener of play_configure(), and sends a byte; NULL: nobody listens. */
struct play_client *play_connect(struct play *play);
/* Closes a client. */
void play_client_close(struct play *play, struct play_client *client);
void play_client_close_all(struct play *play);
/* Receives what has come; false: nothing has. */
bool play_client_step(struct play *play);
/* Whether the reply says that the command was carried out. */
bool play_client_is_ok(const struct play_client *client);
