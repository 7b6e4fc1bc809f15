/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a listener: listener_open() binds, and listener_commit() makes listen. */
#pragma once

#include "net/listener.h"

/* Creates a closed listener in the arena; NULL without memory. A unix socket has no reuseport. */
struct listener *listener_create(
    struct arena *arena, const struct address *address, const struct listener_options *options);
/* Opens `slots` sockets (1 without reuseport): bound, close-on-exec, non-blocking, not listening.
 *
 * - The open sockets of the previous holder `from` (NULL: none), of the same address, are adopted:
 *   both listeners name the descriptors. More than `slots` stay, without reuseport too.
 * - A lost path is bound again, and not adopted.
 * - Workers share sockets of a service manager, fewer than reuseport asks for, with a warning.
 * - The path of a unix socket is removed where a connect() is refused, and is an error where it is
 *   answered. The caller refuses two listeners on a path: the first looks unused to the second.
 *
 * Returns 0, or -1 after an emerg line, with the new sockets closed again. */
int listener_open(
    struct listener *listener, const struct listener *from, unsigned slots, struct log *log);
/* Sets all options, and makes all sockets listen, a kept socket again, even after a shutdown(). A
 * refused option is an alert. Returns -1 only where listen() fails, after an emerg line and with
 * the remaining sockets listening: another process has bound the address since the open. */
int listener_commit(struct listener *listener, struct listener_system *system, struct log *log);
/* Adds a listening socket: behind the kept_n first, or at the end. -1 without memory. */
int listener_add(struct listener *listener, int fd, bool kept);
/* Closes the sockets, opened or adopted, but for the first kept_n. */
void listener_close(struct listener *listener);
/* Closes a socket, unless among the first kept_n. */
void listener_close_socket(struct listener *listener, int fd);
/* Closes the sockets, except for sockets shared with `next`, the next listener of the address. */
void listener_hand_over(struct listener *listener, const struct listener *next);
/* Undoes an open: closes sockets not shared with `from`, and unlinks the path of a new unix
 * socket. */
void listener_undo_open(struct listener *listener, const struct listener *from);
