/* SPDX-License-Identifier: BSD-2-Clause */
/* The faults of a reload in sequence, and the messages of each. */
#pragma once

#include "daemon/faults.h"

#include <stddef.h>

#define FAULT_MODULE(name) "load_module " MODULES_PATH "/" name ".so;"
#define FAULT_EVENTS "events { accept_mutex off; }\n"
/* Servers on all kinds of listeners. */
#define FAULT_BEFORE                                                                               \
    "worker_processes 2;" FAULT_MODULE("trouble") FAULT_EVENTS                                     \
        "stream { server { listen 127.0.0.1:$0; troubled; }\n"                                     \
        "server { listen 127.0.0.1:$1 reuseport; listen unix:$D/kept; echo; } }\n"
/* Everything changes: one worker more, and so one socket more of reuseport; the pid file, the
 * control socket and a log file; a zone is kept, a second zone is new. */
#define FAULT_AFTER                                                                                \
    "error_log error.log notice; error_log more.log; pid other.pid; control unix:other.sock;\n"    \
    "worker_processes 3; worker_start_timeout 3s;" FAULT_MODULE("trouble")                         \
        FAULT_MODULE("trouble_too") FAULT_EVENTS                                                   \
        "stream { server { listen 127.0.0.1:$0; troubled; }\n"                                     \
        "server { listen 127.0.0.1:$1 reuseport; listen unix:$D/kept; echo; }\n"                   \
        "server { listen 127.0.0.1:$2 backlog=7; listen unix:$D/new; trouble_tood; } }\n"

/* The child that makes the sandbox's filter, the master's second fork(), after the master's third
 * mmap(). The rows count with the child, and a build without a filter has none. */
#define FAULT_FILTER 2
#define FAULT_FILTER_MMAP 6
#define FAULT_FILTER_FORK 2

/* A configuration, or a call failing as FAULT_AFTER is loaded. */
struct fault_case {
    const char *conf;
    const char *call;
    unsigned process, nth; /* see struct fault_plan */
    enum fault_kind kind;
    int error;
    const char *says; /* "$0" and so on are replaced as in a configuration */
};

extern const struct fault_case fault_cases[];
extern const size_t fault_case_n;
