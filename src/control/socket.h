/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's file and descriptor, and nothing of its clients. The socket is made under a
 * temporary name and renamed, so that a path always has a listener, and nobody but the owner and
 * the allowed group may connect from the first moment on. A foreign file at the path is neither
 * replaced nor removed, unless it is a socket without a listener. */
#pragma once

#include "base/log.h"
#include "pidfile/pidfile.h"
#include "settings/cycle.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct control_socket {
    char *path; /* the first name, allocated; NULL: there is no socket, and all else is unset */
    int fd;     /* -1 without a socket */
    bool left;  /* the path is free, or a foreign socket's: the second name alone is ours */
    char second[PIDFILE_SUFFIX_MAX]; /* suffix of a second name, or "" */
    struct control_rights rights;
    dev_t device;
    ino_t inode;
};

void control_socket_init(struct control_socket *control);
/* Writes the name of the socket; NULL: there is none. */
const char *control_socket_path(const struct control_socket *control, char name[PATH_MAX]);
/* Whether the path, in any spelling, leads to the socket. */
bool control_socket_is_at(const struct control_socket *control, const char *path);
/* Makes the socket at a path, into a struct without a socket. A listening socket at the path is an
 * error, unless `replace` is set. Clients wait in the queue. -1 after an emerg line. */
int control_socket_create(struct control_socket *control, const struct control_settings *settings,
    bool replace, struct log *log);
/* Gives the socket, if any, other rights. -1 after an emerg line, with the earlier rights. */
int control_socket_allow(
    struct control_socket *control, const struct control_rights *rights, struct log *log);
/* Closes the socket, if any, and removes the file. */
void control_socket_remove(struct control_socket *control, struct log *log);
/* The three steps of leaving a path: the socket gets a second name (in place of an earlier second
 * name), loses the first, and at last has the first alone again. Failures are lines in the log. */
void control_socket_add_name(struct control_socket *control, const char *suffix, struct log *log);
void control_socket_leave_path(struct control_socket *control);
void control_socket_restore_path(struct control_socket *control, struct log *log);
