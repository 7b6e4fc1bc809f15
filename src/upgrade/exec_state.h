/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that crosses execve(): what a master process gives the one that it starts from a
 * newer binary, and what a start finds. It is descriptors, and the variable FORKBEARD of the
 * environment that says what each of them is. The two processes may be of different versions:
 * the text is checked as input is. Descriptors that are read become close-on-exec before
 * anything else can be started. */
#pragma once

#include "base/log.h"
#include "net/adopted.h"
#include "shm/zone.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define EXEC_STATE_VARIABLE "FORKBEARD"

/* State that is being written: the variable, and the descriptors that it names. */
struct exec_state_writer {
    FILE *file; /* NULL: not begun, ended, or without memory */
    char *text; /* "FORKBEARD=...", once it is ended */
    size_t size;
    int *fds;
    unsigned fd_n;
};

/* Begins with the link to us, the pid file's lock (or -1), and the side of the region of worker
 * slots and the serial behind which the new process numbers its workers. */
void exec_state_begin(
    struct exec_state_writer *handover, int link, int lock, unsigned side, uint32_t serial);
/* Adds a socket that we have opened; in the order of its listener's slots. */
void exec_state_add_socket(struct exec_state_writer *handover, int fd);
/* Adds a socket that the service manager has passed to us. */
void exec_state_add_passed(struct exec_state_writer *handover, const struct adopted_socket *passed);
/* Adds the memory of a zone. */
void exec_state_add_zone(struct exec_state_writer *handover, int fd);
/* Ends the text; -1 without memory. */
int exec_state_end(struct exec_state_writer *handover);
/* Frees it; descriptors stay open. */
void exec_state_destroy(struct exec_state_writer *handover);

/* State that a start was given. */
struct exec_state {
    struct adopted *sockets; /* the service manager's too */
    struct zones zones;      /* open, to be taken over, and closed by whoever has done so */
    pid_t parent;            /* the master process that has started us, or 0 */
    int link;                /* to it, or -1 */
    int lock;                /* the lock of its pid file, which we hold together with it; or -1 */
    unsigned side;           /* side of our worker slots, 0 or 1 */
    uint32_t serial;         /* the serials of the slots begin behind this one */
};

/* Takes all that this start was given, which may be nothing, from the service manager and from
 * the master process that has started us; -1 after an emerg line. The variables are removed, so
 * that no child takes them for its own. To be called before any descriptor is opened. */
int exec_state_take(struct exec_state *inheritance, struct log *log);
/* Frees the memory, and closes what has not been taken over. */
void exec_state_done(struct exec_state *inheritance);
