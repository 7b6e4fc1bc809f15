/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the daemon under test. Every wait has a deadline, which fails the test. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A connected client, on 127.0.0.1, ::1 or a unix path. */
int client_open(in_port_t port);
int client_open6(in_port_t port);
int client_open_unix(const char *path);
/* Connects: returns 0 or an errno. */
int client_error(in_port_t port);
/* Tries once: a client, or -1 with errno; usable from any thread. */
int client_try(in_port_t port);

void client_send(int fd, const char *text);
/* Receives exactly this. */
void client_expect(int fd, const char *text);
/* Receives a line, and returns it without the newline. Valid until the next call. */
const char *client_read_line(int fd);
/* Sends it and receives it. */
void client_echo(int fd, const char *text);
/* Receives the end of the server's half, without bytes before. */
void client_expect_end(int fd);
/* The same, or a reset. */
void client_expect_gone(int fd);
/* Whether nothing has arrived, not even an end. */
bool client_is_quiet(int fd);
/* Reads up to the end and closes. Valid until the next call. */
const char *client_read_all(int fd);
/* Closes with a reset. */
void client_reset(int fd);

/* stub_status on a port; the asking connection is counted. */
struct client_status {
    uint64_t active, accepts, handled, requests, reading, writing, waiting;
};

struct client_status client_status(in_port_t port);

/* Runs a session of the echo protocol to its end, logged by a worker at level info. */
void client_run_session(in_port_t port);
