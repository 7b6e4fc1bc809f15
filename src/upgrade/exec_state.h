/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that crosses execve(): descriptors, and the variable FORKBEARD of the environment,
 * which names their uses, written for a newer binary and read by a start. The two processes may be
 * of different versions: the text is input. Descriptors become close-on-exec when they are read. */
#pragma once

#include "base/log.h"
#include "net/adopted.h"
#include "shm/zone.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define EXEC_STATE_VARIABLE "FORKBEARD"

struct pool;

/* The written state: the variable and the descriptors. */
struct exec_state_writer {
    char *text; /* "FORKBEARD=..." */
    size_t size;
    int *fds;
    unsigned fd_n;
};

/* Writes the link to us, the pid file's lock (or -1), the other side of the region of worker slots,
 * the sockets and zones of the serving generation, in the order of the listeners' slots, and the
 * memory of the keys of tickets; -1 without memory. */
int exec_state_write(struct exec_state_writer *state, const struct pool *pool, int lock, int link);
/* Frees the memory; descriptors stay open. */
void exec_state_destroy(struct exec_state_writer *state);

/* State of a start. */
struct exec_state {
    struct adopted *sockets; /* the service manager's sockets too */
    struct zones zones;      /* open zones, closed after the takeover */
    pid_t parent;            /* pid of the starting master process, or 0 */
    int link;                /* descriptor of the link, or -1 */
    int lock;                /* the pid file's lock, shared with the parent; or -1 */
    int tickets;             /* memory of the keys of tickets, or -1 */
    unsigned side;           /* side of our worker slots, 0 or 1 */
    uint32_t serial;         /* serials of the slots begin behind the number */
};

/* Takes the sockets of the service manager and the state of a starting master process, if any, and
 * removes the variables; -1 after an emerg line. To be called before any descriptor is opened. */
int exec_state_take(struct exec_state *state, struct log *log);
/* Frees the memory, and closes everything not taken over. */
void exec_state_done(struct exec_state *state);
