/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket of a listener: bound, examined, revived. */
#pragma once

#include "net/listener.h"

/* Opens another socket of the listener's address: bound, not listening yet; -1 after an emerg line.
 * The path of a unix socket is removed first where a connect() to it is refused, and is an error
 * where it is answered. */
int listener_open_socket(struct listener *listener, struct log *log);
/* Makes one bound socket listen, with every option set on it; -1 with errno. */
int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Logs that bind() or listen() has failed. An address that another process has, or that no
 * interface has yet, may be free or there later. */
void listener_log_failure(struct log *log, int error, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Whether another process listens on the address of a listener without open sockets, so that
 * listener_open() would fail. A socket is bound to it for a moment, or connected to it. */
bool listener_is_taken(const struct listener *listener, struct log *log);
/* Whether a socket does not listen: another process has shut it down or connected it. */
bool listener_is_broken(const struct listener *listener, int fd);
/* Ends the connection of a socket that somebody has connected, with a reset, and without a wait. */
void listener_disconnect(int fd);
/* Disconnects a broken TCP socket, and binds it again where it has lost its port, so that it can
 * listen; -1 with errno. */
int listener_revive(struct listener *listener, int fd, struct log *log);

/* Notes which file the path of a unix socket is. */
void listener_note_path(struct listener *listener);
/* Whether the path of our unix socket does not lead to it any more, because somebody else has
 * deleted or replaced it. */
bool listener_is_path_lost(const struct listener *listener);
/* Whether a process listens on the path of a unix socket. */
bool listener_is_path_in_use(const struct listener *listener);
/* Unlinks the path if it still leads to our socket; -1 with errno. */
int listener_unlink_path(const struct listener *listener);
/* Unlinks the path of a unix socket that no configuration listens on any more, unless the service
 * manager stores the socket: then it still listens. */
void listener_unlink(struct listener *listener, struct log *log);
