/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status for clients: plain values, filled in by the host, and their form in JSON. The
 * keys are a promise to users. Counters of workers are read once. */
#pragma once

#include "base/json.h"
#include "net/listener.h"
#include "shm/shared.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct control;

#define CONTROL_LEFT_MAX 256

struct control_status {
    const char *state;
    const char *configuration; /* the file's path */
    int64_t started_ms;        /* since the epoch */
    int64_t uptime_ms;
    struct {
        bool any, ok;
        int64_t at_ms;     /* since the epoch */
        const char *error; /* why it failed */
    } reload;              /* the latest one */
    struct {
        const char *role; /* "old" or "new"; NULL: we are the only master process */
        pid_t other;
        const char *control; /* the second master's socket; NULL: unknown */
        bool serves;         /* the new process serves */
        bool main;           /* we are the service manager's main process */
    } upgrade;
    uint64_t totals[COUNTERS];
    const char *const *death_names; /* causes of workers' deaths; NULL: not shown */
    const uint64_t *deaths;         /* how many, since the master has started */
    unsigned death_n;               /* of both */
    const struct listeners *listeners;
    struct {
        pid_t pid, master;
    } left[CONTROL_LEFT_MAX]; /* the first workers of killed master processes */
    unsigned left_n;
    struct {
        const char *command; /* NULL behind the last */
        const char *why;
    } pending[3]; /* waiting commands */
};

struct control_generation {
    unsigned number;
    const char *state;
    int64_t since_ms; /* since the epoch */
    int64_t worker_connections;
};

struct control_worker {
    pid_t pid; /* 0: ended, perhaps to be started again: without slot and counters */
    uint32_t slot;
    const char *state;
    unsigned restarts;
    uint64_t connections, requests;
    uint64_t used; /* worker_connections in use, or kept for servers */
    uint64_t uptime_ms;
    uint64_t stalls;
    struct histogram_summary turns;
    struct {
        const char *protocol; /* NULL behind the last */
        struct histogram_summary times;
    } callbacks[HEARTBEAT_PROTOCOLS + 1];
};

/* A metric of a protocol, summed over all workers. */
struct control_metric {
    const char *name;
    const char *kind; /* "counter" or "gauge" */
    int64_t total;
};

/* A group of `upstream {}`. */
struct control_upstream {
    const char *name, *balancer;
    const char *zone; /* NULL: states are worker-local, and unknown */
};

/* A server of a group, at an address; unknown values without a zone are 0. */
struct control_server {
    const char *name;    /* text of the configuration */
    const char *address; /* NULL: none yet */
    const char *state;   /* for sessions; NULL: not known */
    const char *set;     /* the operator's word: "auto", "up", "drain", "down"; NULL: no zone */
    bool backup;
    uint32_t weight, max_conns;
    uint64_t connections, sessions, failures;
    uint64_t resets, timeouts, refusals, slow; /* sessions' troubles */
};

/* A server's name, as recorded by the resolver process. */
struct control_name {
    const char *server; /* text of the configuration */
    uint32_t addresses;
    int64_t age_ms;    /* age of the answer; -1: none */
    int64_t failed_ms; /* time since a failed question; -1: the latest has not failed */
    const char *error; /* or NULL */
};

/* Writes the members of a reply to "status". */
void control_status_write(struct control *control, struct json *json);
