/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket of a listener: bound, examined, mended. */
#pragma once

#include "net/listener.h"

/* Opens another socket of the listener's address: bound, not listening yet; -1 after an emerg line.
 * The path of a unix socket is removed first where a connect() to it is refused, and is an error
 * where it is answered. */
int listener_open_socket(struct listener *listener, struct log *log);
/* Makes a bound socket listen, with all options set; -1 with errno. */
int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Logs a failed bind() or listen(). An address in use by another process, or without an interface,
 * may be free or available later. */
void listener_log_failure(struct log *log, int error, const char *format, ...) PRINTF_FORMAT(3, 4);

/* Whether another process listens on the address of a listener without open sockets, so that
 * listener_open() would fail. A socket is bound for a moment, or connected. */
bool listener_is_taken(const struct listener *listener, struct log *log);
/* Whether a socket does not listen, after a foreign shutdown() or connect(). */
bool listener_is_broken(const struct listener *listener, int fd);
/* Ends the connection of a listening socket after a foreign connect(), with a reset, and without a
 * wait. */
void listener_disconnect(int fd);
/* Disconnects a broken TCP socket, and binds it again after the loss of the port, ready to listen;
 * -1 with errno. */
int listener_revive(struct listener *listener, int fd, struct log *log);

/* Makes a broken socket listen again beside the sockets of `others`: MENDED. Else, with
 * `may_replace`, a new socket gets the descriptor: REPLACED, and the other holders have to be given
 * the new socket. Few of many repairs are logged. -1 on failure, with an emerg line at times. */
enum { LISTENER_MENDED, LISTENER_REPLACED };
int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log);

/* Notes the inode of a unix socket's path. */
void listener_note_path(struct listener *listener);
/* Whether the path of our unix socket leads elsewhere by now, deleted or replaced by another
 * process. */
bool listener_is_path_lost(const struct listener *listener);
/* Whether a process listens on the path of a unix socket. */
bool listener_is_path_in_use(const struct listener *listener);
/* Unlinks the path of our socket, unless replaced; -1 with errno. */
int listener_unlink_path(const struct listener *listener);
/* Unlinks the path of a unix socket not in the configuration any more, unless the service manager
 * stores the socket and so listens on. */
void listener_unlink(struct listener *listener, struct log *log);
