/* SPDX-License-Identifier: BSD-2-Clause */
/* A service manager that the daemon under test talks to: it takes what sd_notify(3) sends, and
 * keeps descriptors as systemd does. */
#pragma once

#include "daemon/daemon.h"

#define SERVICE_MANAGER_STORE_MAX 64
#define SERVICE_MANAGER_INBOX_MAX 128

struct service_manager_message {
    char text[8192];
    pid_t pid; /* the sender's */
    int fd;    /* came with it, or -1 */
};

struct service_manager_stored {
    char name[256];
    int fd;
};

struct service_manager {
    struct daemon *daemon;
    int fd;
    struct service_manager_message message; /* the latest */
    struct service_manager_stored store[SERVICE_MANAGER_STORE_MAX];
    unsigned stored_n;
    struct service_manager_message inbox[SERVICE_MANAGER_INBOX_MAX]; /* received, and not taken */
    unsigned inbox_n;
    bool unconfirmed;    /* something that must arrive has come after the latest barrier */
    bool keeps_barriers; /* they are not answered; the latest is kept */
    int barrier;         /* it, or -1 */
};

/* From now on the daemon is started by it. `watchdog_us`: how often it wants to hear of the daemon,
 * or 0; `other`: it wants to of another process. */
struct service_manager *service_manager_create(
    struct daemon *daemon, uint64_t watchdog_us, bool other);
/* Destroys the manager; the daemon has to be stopped before. */
void service_manager_destroy(struct service_manager *manager);
/* Crashes: nobody reads from the socket any more. */
void service_manager_go(struct service_manager *manager);

/* Fills the socket's queue: nobody can send until the messages are taken, which nobody sees. */
void service_manager_fill(struct service_manager *manager);
/* Answers the barrier that was kept, and from now on all. */
void service_manager_answer(struct service_manager *manager);

/* The next message, which is the main process's, and whole. Barriers are passed over. */
const char *service_manager_next(struct service_manager *manager);
/* The next that is neither a sign of life nor about descriptors must be this. */
void service_manager_expect(struct service_manager *manager, const char *text);
/* Passes over messages until one that begins so, and returns it. */
const char *service_manager_wait(struct service_manager *manager, const char *beginning);
/* Whether nothing has been sent beyond what was taken. */
bool service_manager_is_quiet(struct service_manager *manager);
/* Reads until a barrier has come for all that must arrive and has; messages before it can be taken
 * later. */
void service_manager_wait_barrier(struct service_manager *manager);
/* Ends the daemon by a signal, and reads until it has exited: what was read can be taken later. */
void service_manager_stop(struct service_manager *manager, int number);
