/* SPDX-License-Identifier: BSD-2-Clause */
/* The host that the test of the control socket is: what it says of itself never changes, and it
 * notes the commands that it is given. */
#pragma once

#include "control/control.h"

#include <unistd.h>

struct host {
    char directory[32], path[64];
    struct log log;
    struct clock clock;
    struct timers timers;
    struct control_socket socket;
    struct control control;
    struct listeners listeners;
    const char *refusal;
    pid_t worker, master;
    enum command taken; /* the latest command */
};

static void fill_status(void *host, struct control_status *out)
{
    out->state = "running";
    out->configuration = "test.conf";
    out->listeners = &((struct host *)host)->listeners;
}

static bool fill_generation(void *host, unsigned i, struct control_generation *out)
{
    (void)host;
    *out = (struct control_generation) { .number = 7, .state = "live" };
    return i == 0;
}

static bool fill_worker(void *host, unsigned i, unsigned j, struct control_worker *out)
{
    (void)host;
    *out =
        (struct control_worker) { .pid = j == 0 ? 42 : 0, .state = j == 0 ? "ready" : "waiting" };
    return i == 0 && j < 2;
}

static const char *protocol_name(void *host, unsigned i)
{
    (void)host;
    return i == 0 ? "plain" : i == 1 ? "counts" : NULL;
}

static bool fill_metric(void *host, unsigned i, unsigned j, struct control_metric *out)
{
    (void)host;
    *out = j == 0 ? (struct control_metric) { "hits", "counter", INT64_MAX }
                  : (struct control_metric) { "users", "gauge", -2 };
    return i == 1 && j < 2;
}

static const char *take_command(void *host, enum command command)
{
    struct host *self = host;

    if (self->refusal == NULL)
        self->taken = command;
    return self->refusal;
}

static bool is_worker(void *host, pid_t pid)
{
    return ((struct host *)host)->worker == pid;
}

static bool is_worker_user(void *host, uid_t uid)
{
    (void)host;
    return uid == geteuid();
}

static bool is_master(void *host, pid_t pid)
{
    return ((struct host *)host)->master == pid;
}

static const struct control_ops ops = { fill_status, fill_generation, fill_worker, protocol_name,
    fill_metric, take_command, is_worker, is_worker_user, is_master };
