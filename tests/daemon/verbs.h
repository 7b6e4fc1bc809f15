/* SPDX-License-Identifier: BSD-2-Clause */
/* A row of the manual's table of verbs, and a daemon for the trial: with long sessions and clients
 * that come all the while. The words of a row are the test's as well: they name the assertions, and
 * the way back; tests/master/test_verbs.c measures the time. */
#pragma once

#include "daemon/daemon.h"
#include "daemon/rate_clients.h"
#include "daemon/tls_client.h"

/* The times of a daemon whose verb is held up for as long as can be. */
#define VERBS_TIMEOUT_MS 800
#define VERBS_TIMEOUT "800ms"

struct verb {
    const char *name;     /* ways to type it, separated by ", " */
    const char *clients;  /* new ones: see verbs_are() */
    const char *sessions; /* "kept", "closed" or "none" */
    const char *most;     /* directives and times, added up by " and " */
    const char *back;     /* command to type, or "nothing to take back" */
};

struct scene {
    const struct verb *verb;
    const char *typed; /* the way that is tried */
    struct daemon *daemon;
    pid_t other;              /* the second master process: quitting, or of an upgrade */
    pid_t victim;             /* a worker without the session `session` */
    int session;              /* opened before the verb */
    struct tls_client secure; /* opened before the verb, over TLS */
    bool loaded;              /* clients come */
    struct rate_clients load;
    int64_t begun_ms;        /* when the verb was given */
    unsigned refused, reset; /* counted until then */
};

/* Whether the row has `word` for clients or sessions; the word is checked to be valid. */
bool verbs_are(const char *cell, const char *word);

/* Runs -s WORD or a command; fails unless the exit status is the code. */
void verbs_run(struct scene *scene, const char *command, int code);
/* Whether what is typed begins with this. */
bool verbs_types(const struct scene *scene, const char *text);
/* Types the verb: a command, or a signal to the process. */
void verbs_type(struct scene *scene, pid_t pid);
/* A session that echoes, with any worker. */
int verbs_open_session(const struct daemon *daemon);
/* Ends the session, and the session over TLS. */
void verbs_end_sessions(struct scene *scene);
/* Stops the worker of the session, so that only SIGKILL ends the worker. */
void verbs_freeze_worker(struct scene *scene);
/* Lets clients come, and stay. */
void verbs_load(struct scene *scene);
/* The verb is given now: clients are judged from here on. */
void verbs_begin(struct scene *scene);
/* The verb has returned: all promises of the row hold. */
void verbs_check(struct scene *scene);
/* Clients are served again, and none is refused any more. */
void verbs_check_served(struct scene *scene);
/* Lets the clients end, if there are any. */
void verbs_unload(struct scene *scene);
/* Ends the clients and the daemon. */
void verbs_finish(struct scene *scene);
