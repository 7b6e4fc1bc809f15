/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of every row of the table of verbs: the verb itself, and the reversal. */
#pragma once

#include "daemon/tls_client.h"
#include "daemon/verbs.h"

#define VERBS_SERVER "listen 127.0.0.1:$0; listen unix:$D/socket; "
#define VERBS_ECHO                                                                                 \
    "worker_processes 2; events {} stream { server { " VERBS_SERVER                                \
    "echo; } " TLS_CLIENT_SERVER("$1") "}"
#define VERBS_BALANCES                                                                             \
    "worker_processes 2; events {} stream { "                                                      \
    "upstream name { zone name 64k; server unix:$D/one; server unix:$D/two; } "                    \
    "server { " VERBS_SERVER "proxy_pass name; } "                                                 \
    "server { listen unix:$D/one; listen unix:$D/two; echo; } }"
#define VERBS_HANGS                                                                                \
    "load_module " MODULES_PATH                                                                    \
    "/hangs.so; worker_processes 2; worker_start_timeout " VERBS_TIMEOUT                           \
    "; events {} stream { server { " VERBS_SERVER "hangs; hangs_while $D/late; } }"
#define VERBS_CRASHES                                                                              \
    "load_module " MODULES_PATH                                                                    \
    "/trouble.so; worker_processes 2; events {} stream { server { " VERBS_SERVER                   \
    "troubled; trouble later 300; } }"
#define VERBS_BOUNDED "worker_shutdown_timeout " VERBS_TIMEOUT "; " VERBS_ECHO

/* The steps of a row's test. */
struct verbs_steps {
    void (*set_up)(struct scene *scene);    /* before the verb; NULL: nothing */
    void (*act)(struct scene *scene);       /* the verb, until it has taken effect */
    void (*back)(struct scene *scene);      /* the undoing; NULL: there is nothing to take back */
    void (*tear_down)(struct scene *scene); /* removes the rest of the row; NULL: nothing is left */
    void (*worst)(struct scene *scene);     /* the verb at its slowest */
    const char *worst_conf;                 /* the configuration for that */
    bool stopped;                           /* no daemon runs before the verb */
};

#define VERB(id, ...) extern const struct verbs_steps verbs_##id;
#define VERB_UNIT(...)
#include "daemon/verbs.def"
#undef VERB
#undef VERB_UNIT
