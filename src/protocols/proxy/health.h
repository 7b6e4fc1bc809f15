/* SPDX-License-Identifier: BSD-2-Clause */
/* health_check: connects to servers from time to time. The daemon names the due server. */
#pragma once

#include <forkbeard/forkbeard.h>

#include <errno.h>
#include <stdbool.h>

/* Limit of concurrent checks in a worker. */
#define PROXY_CHECKS_MOST 32

/* The timer by which a worker looks for due checks. */
#define PROXY_TIMER_CHECKS 0

/* Whether a connection failed for want of the worker's own resources. */
static inline bool proxy_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Whether a TLS handshake failed for a reason of this host. */
static inline bool proxy_lacks_handshake(fb_reason reason, int error)
{
    return reason == FB_TLS_FAILED && error == EAGAIN;
}

/* Whether a connection failed for want of a local port, or address. */
static inline bool proxy_lacks_port(int error)
{
    return error == EADDRNOTAVAIL || error == EADDRINUSE;
}

struct proxy_bind;

/* The arguments of health_check. */
struct proxy_check {
    bool is_set;
    uint32_t arg_n;
    const char *const *args;
};

/* The configured check of a server. */
struct proxy_health {
    struct proxy_check check;
    int64_t timeout;                     /* ms */
    uint64_t most;                       /* limit of the compared bytes of an answer */
    const struct proxy_bind *bind;       /* to connect from */
    const fb_tls_profile *tls;           /* proxy_ssl; NULL: off */
    const fb_health_check *health_check; /* NULL: none */
};

/* A running check: the state of the connection. */
struct proxy_probe {
    struct proxy_checks *checks;
    const fb_probe *probe; /* NULL: none */
    uint64_t began_ms;     /* monotonic */
    uint64_t most;
    const char *doing; /* for the log */
    int error;         /* errno, or 0 */
    bool passed;
    uint8_t overdue_n; /* turns that have found its time over */
};

/* The checks of a worker. */
struct proxy_checks {
    const fb_upstreams *upstreams;
    bool draining;
    uint32_t bind_turn; /* number of the next check, for the address of proxy_bind */
    struct proxy_probe running[PROXY_CHECKS_MOST];
};

/* health_check [parameter ...] */
int proxy_health_set(fb_conf *conf, void *value, const char *const *args, uint32_t n);
/* Declares the server's check, if any; -1 after a report. */
int proxy_health_done(fb_conf *conf, const fb_upstream *upstream, struct proxy_health *own);

/* Begins and ends the checks of a worker. */
void proxy_health_start(
    fb_worker *worker, struct proxy_checks *checks, const fb_upstreams *upstreams);
void proxy_health_drain(fb_worker *worker, struct proxy_checks *checks);
/* Makes the due checks, and sets the timer for the next. */
void proxy_health_run(fb_worker *worker, struct proxy_checks *checks);
