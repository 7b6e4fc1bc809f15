/* SPDX-License-Identifier: BSD-2-Clause */
/* A cycle: all settings of one reading of the configuration, made by the master and inherited by
 * workers. After loading nothing changes but the listeners' sockets, the zones' memory and the
 * sandbox's filter. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "base/memory.h"
#include "conf/conf.h"
#include "event/mechanism.h"
#include "module/module.h"
#include "net/adopted.h"
#include "session/server.h"
#include "settings/check.h"
#include "settings/needs.h"
#include "shm/zone.h"
#include "tls/engine.h"

#include <stdio.h>
#include <sys/types.h>

/* Modes of the workers' sandbox. */
enum sandbox_mode { SANDBOX_OFF, SANDBOX_ON, SANDBOX_STRICT };

struct cpu_mask;

/* A pool of threads for jobs, separate in each worker. */
struct fb_pool {
    const char *name;
    int64_t threads, queue; /* most threads, and most waiting jobs */
    bool written;           /* by a directive of its own */
    unsigned index;         /* 0: the default pool */
    struct fb_pool *next;   /* in the order of the file; NULL: the last pool */
};

/* Who may connect to a control socket, besides root and the owner. */
struct control_rights {
    mode_t mode; /* of the file */
    bool has_group;
    gid_t group; /* its members, where the mode allows that */
};

/* The sockets of a master. */
enum control_use {
    CONTROL_COMMANDS,
    CONTROL_READ, /* for the status and the like alone */
    CONTROL_SOCKETS,
};

struct control_settings {
    const char *path; /* NULL: there is no such socket */
    struct control_rights rights;
};

/* Settings of the main context. Times are milliseconds. */
struct core_settings {
    int64_t daemon;
    int64_t master_process;
    int64_t sandbox; /* enum sandbox_mode */
    bool sandbox_given;
    int64_t worker_processes;
    int64_t worker_priority;
    int64_t sigterm_graceful;        /* SIGTERM means what SIGQUIT does */
    int64_t worker_shutdown_timeout; /* 0: none */
    int64_t worker_start_timeout;    /* 0: none */
    int64_t worker_watchdog;         /* 0: none */
    int64_t debug_modules;           /* protocols of modules are checked */
    int64_t debug_points;            /* enum log_point */
    int64_t max_generations;         /* alive at once; 0: any number */
    int64_t max_draining_workers;    /* 0: any number; -1: auto, see sizing */
    int64_t timer_resolution;        /* 0: the time is read every turn */
    struct fb_pool pool;             /* the default one, the first of all */
    int64_t rlimit_nofile;           /* -1: left alone */
    int64_t rlimit_core;             /* bytes; -1: left alone */
    const char *pid;
    struct control_settings control, control_read;
    bool control_off;              /* `off` was written; else the socket lies beside the pid file */
    const char *working_directory; /* NULL: left alone */
    const char *user;              /* NULL: not given, or not root */
    uid_t uid;                     /* the user's */
    gid_t gid;
    const gid_t *groups; /* groups that the user is in */
    unsigned group_n;
    struct log_target *logs; /* logs of the main context */
    unsigned log_n;
    struct log_target **other_logs; /* stream {}'s and its servers'; settings/log_targets.c */
    unsigned other_log_n;
    enum log_level routed_level;     /* the most verbose level of the servers' own error logs */
    int64_t log_burst, log_interval; /* lines of a kind in an interval; a burst of 0: no limit */
    struct cpu_mask *cpus; /* masks for the workers in turn, the last for all others; NULL: none */
    unsigned cpu_n;
    bool cpu_auto;    /* `cpus` is then the single mask to choose from */
    const char **env; /* "NAME" or "NAME=value" */
    unsigned env_n;
    int64_t env_substitution;
};

/* Settings of `events {}`. */
struct events_settings {
    int64_t worker_connections;
    bool connections_auto; /* worker_connections was worked out */
    int64_t multi_accept;
    int64_t reclaim_idle;
    int64_t accept_mutex;
    int64_t accept_mutex_delay; /* ms */
    int64_t stall_threshold;    /* ms; 0: off */
    int64_t busy_poll;          /* microseconds; 0: off */
    int64_t accept_share;
    int64_t worker_aio_requests; /* kernel AIO: reads under way at once */
    const struct mechanism *mechanism;
    const struct mechanism *refused;                    /* by the kernel, and replaced; or NULL */
    int refusal;                                        /* its errno */
    struct mechanism_values mechanism_values;           /* values of the mechanism's directives */
    struct mechanism_values all_values[MECHANISMS_MAX]; /* in the order of mechanism_table */
    struct address_block *debug;
    unsigned debug_n;
};

/* Resources shared by workers, as found by the sizing. All 0 where they were not looked up. */
struct sizing {
    int64_t workers;
    int64_t memory;      /* bytes; 0: not known */
    int64_t descriptors; /* most for each worker; 0: any number */
    int64_t draining;    /* old workers, before idle sessions of theirs end; 0: any number */
};

struct sandbox_filter;

struct cycle {
    struct arena *arena;
    struct conf_source source; /* the files that it was read from */
    struct core_settings core;
    struct events_settings events;
    struct sizing sizing;
    struct stream_settings stream;
    struct tls_profiles tls;             /* of the servers with a certificate */
    const struct tls_engine_ops *engine; /* of handshakes; NULL: there are no profiles */
    struct needs needs;
    /* made by the master (sandbox/), for workers and for the helper; or NULL */
    const struct sandbox_filter *filter, *helper_filter, *keeper_filter;
    struct zones zones;                  /* declared here, opened by the master */
    struct modules modules;              /* loaded, until the cycle is destroyed */
    const fb_protocol *const *protocols; /* built in and loaded; ends with NULL */
    unsigned shared;                     /* further holders; the last holder destroys the cycle */
};

/* Bytes of the control socket's path, less the suffix during creation. */
#define CONTROL_PATH_MAX 100

struct answers;
struct feature;

struct cycle_options {
    const char *conf;               /* an absolute path */
    const char *prefix;             /* absolute, of -p; NULL: the directory of `conf` */
    const char *globals;            /* -g, or NULL */
    const char *pid;                /* defaults of `pid` and `error_log`: */
    const char *error_log;          /* absolute paths, or "stderr" */
    const char *module_directory;   /* directory of relative paths of `load_module` */
    const char *const *environment; /* for `env_substitution`; ends with NULL, or is NULL: empty */
    const fb_protocol *const *protocols;   /* built in; ends with NULL */
    const struct feature *const *features; /* features of stream {}; ends with NULL */
    const struct tls_engine_ops *engine;   /* of TLS handshakes */
    bool testing;                          /* -t: an unreadable file is a warning */
    bool shows_certificates;               /* -t without -q */
    /* -s: only directives that find the master are applied, other mistakes are ignored */
    bool only_pid;
    /* sockets passed by the service manager, for `listen fd:NAME`; NULL: not known here */
    const struct adopted *adopted;
    const struct memory *memory; /* source of the cycle's memory; NULL: the C library */
    /* filled in by a configuration check, which is silent when all is well; or NULL */
    struct check_progress *progress;
    /* answers of name services: noted by a check, used later instead of asking; NULL: ask */
    struct answers *answers;
};

/* Reads the configuration and shows every mistake: a line each to the log, and an excerpt of the
 * file to `excerpts` unless -1. NULL after mistakes. Only modules touch more than the memory. */
struct cycle *cycle_load(const struct cycle_options *options, struct log *log, int excerpts);
/* The number of all log targets, and a target by index: the main context's come first. */
static inline unsigned core_target_n(const struct core_settings *core)
{
    return core->log_n + core->other_log_n;
}

static inline struct log_target *core_target(const struct core_settings *core, unsigned i)
{
    return i < core->log_n ? &core->logs[i] : core->other_logs[i - core->log_n];
}

/* Returns the pool of the name, or NULL. */
const struct fb_pool *core_find_pool(const struct core_settings *core, const char *name);
/* Logs the result of `worker_connections auto`, if configured. */
void sizing_log(const struct cycle *cycle, struct log *log);
/* The sentence that a build has no debug lines; NULL: it has. */
const char *events_without_debug(void);
/* Logs once, in a build without debug lines, that the configuration asks for debug lines. */
void events_log_debug(const struct cycle *cycle, struct log *log);
/* events.c: Replaces a mechanism that yields and that the kernel refuses; returns whether so. The
 * second function logs the replacement. */
bool events_yield(struct events_settings *events);
void events_log(const struct cycle *cycle, struct log *log);
/* Keeps a listener of a narrow address, replaced by a wildcard, whose server gets the clients: a
 * closed listener would reset connecting clients. -1 without memory. */
int cycle_keep_listeners(struct cycle *cycle, const struct listeners *before);
/* Adds a holder, who must destroy the cycle as well; returns the cycle. */
struct cycle *cycle_share(struct cycle *cycle);
/* The last holder unloads the modules; sockets, log files and zones are the master's. */
void cycle_destroy(struct cycle **cycle);
