/* SPDX-License-Identifier: BSD-2-Clause */
/* A service manager of the daemon under test: it takes the messages of sd_notify(3), and keeps
 * descriptors as systemd does. */
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
    bool unconfirmed;    /* a required message has come after the latest barrier */
    bool keeps_barriers; /* barriers are not answered; the latest is kept */
    int barrier;         /* it, or -1 */
};

/* Makes a manager for the daemon's later starts. `watchdog_us`: the interval of the watchdog, or 0;
 * `other`: the watchdog is for another process. */
struct service_manager *service_manager_create(
    struct daemon *daemon, uint64_t watchdog_us, bool other);
/* Destroys the manager; the daemon has to be stopped before. */
void service_manager_destroy(struct service_manager *manager);
/* Crashes: the socket is read no more. */
void service_manager_go(struct service_manager *manager);

/* Fills the socket's queue: nobody can send until the messages are taken, unseen by the test. */
void service_manager_fill(struct service_manager *manager);
/* Answers the kept barrier, and from now on all. */
void service_manager_answer(struct service_manager *manager);

/* The next message, which is the main process's, and whole. Barriers are passed over. */
const char *service_manager_next(struct service_manager *manager);
/* The next message must be `text`, apart from signs of life and descriptors. */
void service_manager_expect(struct service_manager *manager, const char *text);
/* Skips messages until the first with the beginning, and returns the message. */
const char *service_manager_wait(struct service_manager *manager, const char *beginning);
/* Whether nothing was sent beyond the messages taken. */
bool service_manager_is_quiet(struct service_manager *manager);
/* Reads up to a barrier behind all required messages; earlier messages can be taken later. */
void service_manager_wait_barrier(struct service_manager *manager);
/* Ends the daemon by a signal, and reads until its exit: messages read can be taken later. */
void service_manager_stop(struct service_manager *manager, int number);
