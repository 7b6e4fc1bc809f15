/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers behind the daemon under test: a process each, killed, stopped and restarted by a test.
 * Each echoes; a "?" alone is answered with its number. The test holds a descriptor of the
 * listening socket, too. */
#pragma once

#include "daemon/daemon.h"

struct backend {
    unsigned number; /* 1 to 9: it listens on 127.0.0.number */
    in_port_t port;
    pid_t pid;    /* 0: it does not run */
    int listener; /* -1 then */
};

/* Starts the backends 1 to n, on one port. */
void backends_start(struct backend *backends, unsigned n, in_port_t port);
/* Kills those that run. */
void backends_kill(struct backend *backends, unsigned n);

/* Starts it again. */
void backend_start(struct backend *backend);
/* Kills the backend, and returns when connects fail. */
void backend_kill(struct backend *backend);
void backend_thaw(const struct backend *backend);
/* Whether a connection waits in the backend's accept queue. */
bool backend_is_awaited(const struct backend *backend);
/* Sets the length of the backend's accept queue: with 0, and one connection waiting, all connects
 * fail. */
void backend_set_queue(const struct backend *backend, int most);

/* Begins a session through the daemon, at its first port, and asks for the server. */
int backend_begin(const struct daemon *daemon);
/* Waits for the answer: the backend's digit, or '-' when there is an end instead. */
char backend_answer(int client);
/* Does both, and ends the session. */
char backend_ask(const struct daemon *daemon);
/* Whether a backend serves; everybody has to be served meanwhile. */
bool backend_is_used(const struct daemon *daemon, char digit);
