/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of a library of TLS for a client of tests/tls.test. Its functions end the program with a
 * message when the library fails. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct session;

/* Returned where the library waits for the socket. */
#define SESSION_WAITS (-1)
/* Returned where the connection has ended without close_notify. */
#define SESSION_CUT (-2)

/* Shakes hands on a blocking socket, with the certificate authority in ca.pem. */
struct session *session_open(int fd, const char *name);
/* The socket does not block from here on. read() returns 0 for close_notify alone. */
ssize_t session_read(struct session *session, void *p, size_t n);
ssize_t session_write(struct session *session, const void *p, size_t n);
/* Changes the keys of both directions, where version and library can: 0, or SESSION_WAITS. */
int session_update_keys(struct session *session);
/* Sends close_notify: 0, or SESSION_WAITS. */
int session_close(struct session *session);
