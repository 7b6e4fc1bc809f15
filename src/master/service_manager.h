/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifications to the service manager. The manager listens to the main process alone: every
 * function does nothing without a manager, or while we are not the main process. */
#pragma once

#include "master/reload.h"
#include "systemd/notify.h"

#include <stdbool.h>
#include <sys/types.h>

struct pool;

struct service_manager {
    const struct pool *pool;
    const struct reload *reload;
    const enum master_phase *phase;
    bool any;                       /* a manager was named at the start: else no call is of use */
    const bool *is_main;            /* we are the main process, heard by the manager */
    char status[NOTIFY_STATUS_MAX]; /* the latest that was shown */
    struct timer alive;             /* interval of the manager's watchdog */
    struct timer exit;              /* how long our exit waits for a confirmation */
    bool late;                      /* no confirmation has come in that time */
};

/* The first generation serves, or we become the main process again. */
void service_manager_ready(struct service_manager *manager);
/* Drops the stored copies of listening sockets, where clients would wait, and which would be in the
 * way of the next start, of a resume, or of another process with stored sockets. */
void service_manager_drop_stored(struct service_manager *manager);
/* A reload has begun, or has ended with a result. */
void service_manager_reload(struct service_manager *manager);
/* The daemon begins to end. */
void service_manager_stopping(struct service_manager *manager);
/* Whether the manager has confirmed enough for an exit, or is late; asked last, until true. */
bool service_manager_may_exit(struct service_manager *manager);
/* No timer runs any more. */
void service_manager_done(struct service_manager *manager);
/* Shows the state of the daemon, if changed. Called in each wake-up. */
void service_manager_show(struct service_manager *manager);
/* Sets the pointers owned by the master; the rest is zero. */
void service_manager_init(struct service_manager *manager, const struct service_manager *from);
