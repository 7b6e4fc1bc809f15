/* SPDX-License-Identifier: BSD-2-Clause */
/* A cycle: all that one reading of the configuration has set. It is made by the master, and workers
 * inherit it; nothing in it changes after it was loaded but the listeners' sockets and the zones'
 * memory. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "conf/conf.h"
#include "event/mechanism.h"
#include "module/module.h"
#include "net/adopted.h"
#include "settings/needs.h"
#include "settings/progress.h"
#include "shm/zone.h"
#include "stream/server.h"

#include <sched.h>
#include <stdio.h>
#include <sys/types.h>

/* How much of the system is closed to workers. */
enum fb_sandbox { FB_SANDBOX_OFF, FB_SANDBOX_ON, FB_SANDBOX_STRICT };

/* What the main context sets. Times are milliseconds. */
struct fb_core_settings {
    int64_t daemon;
    int64_t master_process;
    int64_t sandbox; /* enum fb_sandbox */
    int64_t worker_processes;
    int64_t worker_priority;
    int64_t sigterm_graceful;        /* SIGTERM means what SIGQUIT does */
    int64_t worker_shutdown_timeout; /* 0: none */
    int64_t worker_start_timeout;    /* 0: none */
    int64_t worker_watchdog;         /* 0: none */
    int64_t max_generations;         /* alive at once; 0: any number */
    int64_t timer_resolution;        /* 0: the time is read every turn */
    int64_t threads, thread_queue;   /* for jobs: at most so many, and so many waiting */
    int64_t rlimit_nofile;           /* -1: left alone */
    int64_t rlimit_core;             /* bytes; -1: left alone */
    const char *pid;
    const char *control;           /* the path of the control socket; NULL: off */
    bool control_off;              /* it was written so, else there is one beside the pid file */
    const char *working_directory; /* NULL: left alone */
    const char *user;              /* NULL: not given, or not root */
    uid_t uid;                     /* of `user` */
    gid_t gid;
    struct fb_log_target *logs;
    unsigned log_n;
    int64_t log_burst, log_interval; /* of lines of a kind; a burst of 0: no limit */
    cpu_set_t *cpus; /* masks for the workers in turn, the last for all others; NULL: none */
    unsigned cpu_n;
    bool cpu_auto;    /* `cpus` is then the one mask to choose from */
    const char **env; /* "NAME" or "NAME=value" */
    unsigned env_n;
    int64_t env_substitution;
};

/* What `events {}` sets. */
struct fb_events_settings {
    int64_t worker_connections;
    bool connections_auto; /* it was worked out */
    int64_t multi_accept;
    int64_t accept_mutex;
    int64_t accept_mutex_delay; /* ms */
    const struct fb_mechanism *mechanism;
    int64_t mechanism_option;                     /* its own directive's value */
    int64_t mechanism_options[FB_MECHANISMS_MAX]; /* all of them, as in fb_mechanisms */
    struct fb_address_block *debug;
    unsigned debug_n;
};

/* What there is to be shared. */
struct fb_sizing {
    int64_t workers;
    int64_t memory;      /* bytes; 0: not known */
    int64_t descriptors; /* of each worker; 0: any number */
};

struct fb_cycle {
    struct fb_arena *arena;
    struct fb_conf_source source; /* the files that it was read from */
    struct fb_core_settings core;
    struct fb_events_settings events;
    struct fb_sizing sizing;
    struct fb_stream_settings stream;
    struct fb_needs needs;
    struct fb_zones zones;               /* declared here, opened by the master */
    struct fb_modules modules;           /* loaded, until the cycle is destroyed */
    const fb_protocol *const *protocols; /* built in and loaded; ends with NULL */
};

/* What a socket's address has room for, and a suffix while it is made. */
#define FB_CONTROL_PATH_MAX 100

struct fb_cycle_options {
    const char *conf;               /* an absolute path */
    const char *globals;            /* -g, or NULL */
    const char *pid;                /* what `pid` and `error_log` are where the file is silent; */
    const char *error_log;          /* absolute paths, or "stderr" */
    const char *module_directory;   /* where `load_module` finds relative paths */
    const char *const *environment; /* for `env_substitution`; ends with NULL, or is NULL: empty */
    const fb_protocol *const *protocols; /* that are built in; ends with NULL */
    bool testing;                        /* -t: what may not be read is a warning */
    bool only_pid; /* -s: all but the ways to the master is passed over, and mistakes that do not
                      hide its pid */
    /* what the service manager has passed, for `listen fd:NAME`; NULL: only the daemon knows */
    const struct fb_inherited *inherited;
    struct fb_progress *progress; /* of a rehearsal, which is silent if all is well; or NULL */
};

/* Reads the configuration and shows every mistake: a line each to the log, and an excerpt of the
 * file to `excerpts` where that is not -1. NULL when there were mistakes. Nothing outside the memory
 * is touched, unless by a module. */
struct fb_cycle *fb_cycle_load(
    const struct fb_cycle_options *options, struct fb_log *log, int excerpts);
/* Says what `worker_connections auto` has come to, if that was asked for. */
void fb_sizing_log(const struct fb_cycle *cycle, struct fb_log *log);
/* What listens on an address of its own goes on although a wildcard would take it in by now, which is
 * given its clients: closed, it would lose who is just connecting. -1 without memory. */
int fb_ports_keep(struct fb_cycle *cycle, const struct fb_listeners *before);
/* Unloads its modules. Closes nothing: sockets, log files and zones are the master's to close. */
void fb_cycle_destroy(struct fb_cycle **cycle);
