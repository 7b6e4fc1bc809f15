/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's file and descriptor, and nothing of its clients. It is made aside and
 * renamed, so that whoever finds the path is served, and only its owner's user may connect from
 * its first moment on. A process that leaves the path to another one has its socket at a second
 * name, PATH.oldbin or PATH.quit.PID. A file at the path that is not ours is neither replaced nor
 * removed, unless nobody listens on it. */
#pragma once

#include "base/log.h"
#include "process/pidfile.h"

#include <stdbool.h>
#include <sys/types.h>

struct control_socket {
    char *path; /* allocated; NULL: there is no socket, and all else is unset */
    int fd;     /* -1 without a socket */
    bool left;  /* `path` ends with the suffix: the name without it is another process's, or free */
    char second[PIDFILE_SUFFIX_MAX]; /* suffix of a second name, or "" */
    dev_t device;
    ino_t inode;
};

void control_socket_init(struct control_socket *control);
/* Asserts that path and descriptor are both there or both missing. */
void control_socket_check(const struct control_socket *control);
/* Whether this path, however it is spelled, leads to the socket. */
bool control_socket_is_at(const struct control_socket *control, const char *path);

/* Makes the socket at a path, into a struct without one. A socket that answers there stays, and
 * that is an error, unless `replace` is set. Clients that connect wait in the queue. -1 after an
 * emerg line. */
int control_socket_create(
    struct control_socket *control, const char *path, bool replace, struct log *log);
/* Closes the socket, if there is one, and removes its file. */
void control_socket_remove(struct control_socket *control, struct log *log);

/* The three steps of a process that leaves the path: the socket gets a second name (which takes the
 * place of an earlier one), loses the first one, and at last has that alone again. Each is a line
 * in the log where it fails. */
void control_socket_add_name(struct control_socket *control, const char *suffix, struct log *log);
void control_socket_leave_path(struct control_socket *control);
void control_socket_restore_path(struct control_socket *control, struct log *log);

/* Accepts a client, non-blocking and close-on-exec; -1 with errno, EAGAIN when none waits. */
int control_socket_accept(const struct control_socket *control);
