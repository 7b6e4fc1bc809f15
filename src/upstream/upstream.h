/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of servers, `upstream {}`, as of the configuration. A directive with a single server gets
 * a private group.
 *
 * Only data: settings/ fills in the groups, and nothing changes a group in use by sessions, but
 * for the worker's peers. */
#pragma once

#include "base/check.h"
#include "names/setting.h"
#include "net/address_parse.h"
#include "shm/stats.h"

#include <bsd/sys/queue.h>

#define UPSTREAM_KIND KIND('U', 'p', 's', 't')

/* A place in the statistics of tries. */
struct upstream_stats {
    uint32_t entry;          /* in the zone, once that is open */
    struct stats_tries *own; /* the worker's numbers; NULL: not counted */
};

/* A `server` of a group. */
struct upstream_server {
    STAILQ_ENTRY(upstream_server) link;
    const char *name;               /* the configuration's text, which identifies the server */
    const struct conf_word *word;   /* place of the text; NULL: a session's */
    const struct fb_target *target; /* the address; NULL: workers resolve `host` */
    const char *host;               /* a name; or NULL */
    const char *service;            /* names the SRV records to ask for; or NULL */
    in_port_t port;                 /* port of `host`, in host order */
    bool resolve;                   /* `host` is asked for again when an answer has expired */
    bool backup, down, drain;
    bool is_checked;      /* health checks decide whether it is used */
    uint32_t weight;      /* at least 1 */
    uint32_t max_conns;   /* 0: any number */
    uint32_t max_fails;   /* 0: failures are not counted */
    int64_t fail_timeout; /* ms */
    int64_t slow_start;   /* ms; 0: none */
    struct upstream_stats stats;
};

enum upstream_time { UPSTREAM_TIME_CONNECT, UPSTREAM_TIME_FIRST_BYTE, UPSTREAM_TIME_LAST_BYTE };

/* The balancer of a group with the directive's values. */
struct upstream_balance {
    const struct balancer *balancer; /* balancer.h */
    const struct template *key;      /* hash: text worked out by the caller; else NULL */
    bool consistent;                 /* hash */
    bool two;                        /* random: of two servers the better one */
    bool two_by_time;                /* random two: by `time`, not by connections */
    enum upstream_time time;         /* least_time, and random two */
    bool inflight;                   /* least_time: requests that have not ended count, too */
};

enum upstream_drop_way { UPSTREAM_DROP_UNSET, UPSTREAM_DROP_OFF, UPSTREAM_DROP_ON };

/* proxy_session_drop: whether sessions end when the server is out of use. */
struct upstream_drop {
    enum upstream_drop_way way;
    int64_t over; /* ms within which the sessions end */
};

struct upstream {
    unsigned kind; /* UPSTREAM_KIND */
    STAILQ_ENTRY(upstream) link;
    const char *name;
    const struct conf_word *word; /* the place of its declaration */
    bool is_single;               /* made for the address of a directive, used as the name */
    bool is_used;                 /* a directive leads to the group, or may do so in a session */
    bool is_of_session;           /* made for a session, in the session's memory */
    STAILQ_HEAD(upstream_servers, upstream_server) servers;
    unsigned server_n;
    struct upstream_balance balance;
    struct upstream_zone *zone;           /* NULL: the state is each worker's own */
    struct upstream_check *checks;        /* list of health checks (health.h) */
    uint32_t queue;                       /* limit of waiting sessions, per worker; 0: none */
    int64_t queue_timeout;                /* ms */
    struct upstream_drop drop;            /* unset: that of the session's server holds */
    const struct names_setting *resolver; /* NULL: the system's */
    int64_t resolver_timeout;             /* ms */
    struct upstream_stats waits;          /* of the queue */
    /* the worker's, from upstreams_open() on */
    struct peers *peers;
    struct refresh *refreshes; /* the names of servers; NULL: there are none */
    uint32_t refreshed;        /* addresses_changes() as of the last read */
    uint32_t unanswered;       /* names without an answer yet, good or bad */
    /* ... of the asking process, perhaps a worker: the names of servers */
    struct resolve *resolves;
    const char *unresolved; /* reason for a session's name without an address, or NULL */
    struct queue *waiting;  /* sessions; NULL: none had to wait */
};

STAILQ_HEAD(upstream_list, upstream);

/* The place that a directive leads to. */
struct fb_upstream {
    struct upstream *upstream;            /* NULL: `text` names the group, session by session */
    const struct template *text;          /* or NULL */
    const struct named_upstreams *named;  /* the groups that `text` may name (session/server.h) */
    const struct names_setting *resolver; /* for a name in `text`; as above */
    int64_t resolver_timeout;
};
