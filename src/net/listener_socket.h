/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket of a listener: bound, examined, mended. */
#pragma once

#include "net/listener.h"

/* Opens a socket, bound and not listening; -1 after an emerg line. The path of a unix socket is
 * removed where a connect() is refused, and is an error where it is answered. */
int listener_open_socket(struct listener *listener, struct log *log);
/* Makes a bound socket listen, with all options set; -1 with errno. */
int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Logs a failed bind() or listen(); an address in use or without an interface as temporary. */
void listener_log_failure(struct log *log, int error, const char *format, ...) PRINTF_FORMAT(3, 4);
/* Whether another process listens on the address: listener_open() would fail. */
bool listener_is_taken(const struct listener *listener, struct log *log);
/* Whether a socket does not listen, after a foreign shutdown() or connect(). */
bool listener_is_broken(const struct listener *listener, int fd);
/* Ends a foreign connect() of a listening socket by a reset, and without a wait. */
void listener_disconnect(int fd);
/* Disconnects a broken TCP socket, and binds it again for a lost port; -1 with errno, EADDRNOTAVAIL
 * where it has been bound to another address. */
int listener_revive(struct listener *listener, int fd, struct log *log);

/* Makes a broken socket listen again beside `others`: MENDED. Else, with `may_replace`, a new
 * socket gets the descriptor: REPLACED, and other holders have to be given it. Logs few of many. -1
 * on failure. */
enum { LISTENER_MENDED, LISTENER_REPLACED };
int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log);
/* Notes the inode of a unix socket's path. */
void listener_note_path(struct listener *listener);
/* Whether the path of our unix socket was deleted, or replaced by another process. */
bool listener_is_path_lost(const struct listener *listener);
/* Whether a process listens on the path of a unix socket. */
bool listener_is_path_in_use(const struct listener *listener);
/* Unlinks the path of our socket, unless replaced; -1 with errno. */
int listener_unlink_path(const struct listener *listener);
/* Unlinks the path of a unix socket, unless the service manager stores the socket. */
void listener_unlink(struct listener *listener, struct log *log);
