/* SPDX-License-Identifier: BSD-2-Clause */
/* Holds a daemon to the words of a row: clients in great number are counted, a single session and a
 * single client are looked at. */
#include "daemon/verbs.h"

#include "daemon/client.h"
#include "daemon/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONG_N 4

bool verbs_are(const char *cell, const char *word)
{
    static const char *const words[] = { "served all the while", "served once", "never refused",
        "refused", "wait", "kept", "closed", "none" };
    bool known = false;

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        known |= strcmp(cell, words[i]) == 0;
    ck_assert_msg(known, "no test knows what \"%s\" means", cell);
    return strcmp(cell, word) == 0;
}

void verbs_run(struct scene *scene, const char *command, int code)
{
    struct daemon *daemon = scene->daemon;
    int is;

    if (strcmp(command, "forkbeard") == 0)
        is = daemon_start_background(daemon);
    else if (strncmp(command, "forkbeard upgrade ", 18) == 0)
        is = daemon_run(daemon, "upgrade", command + 18, "-c", "forkbeard.conf", NULL);
    else if (strncmp(command, "forkbeard log ", 14) == 0)
        is = daemon_run(daemon, "log", command + 14, "-c", "forkbeard.conf", NULL);
    else
        is = daemon_run(daemon, "-s", command + strlen("-s "), "-c", "forkbeard.conf", NULL);
    ck_assert_msg(is == code, "\"%s\" has exited with %d: %s", command, is, daemon->err);
}

bool verbs_types(const struct scene *scene, const char *text)
{
    return strncmp(scene->typed, text, strlen(text)) == 0;
}

void verbs_type(struct scene *scene, pid_t pid)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = { { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "INT", SIGINT }, { "TERM", SIGTERM },
        { "WINCH", SIGWINCH }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };

    if (verbs_types(scene, "-s ") || verbs_types(scene, "forkbeard")) {
        verbs_run(scene, scene->typed, 0);
        return;
    }
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (verbs_types(scene, signals[i].name)) {
            ck_assert_int_eq(kill(pid, signals[i].number), 0);
            return;
        }
    ck_abort_msg("nobody can type \"%s\"", scene->typed);
}

int verbs_open_session(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    return client;
}

void verbs_freeze_worker(struct scene *scene)
{
    daemon_expects(scene->daemon, "exited on signal 9");
    proc_freeze(proc_server_of(scene->daemon->pid, scene->session));
}

void verbs_load(struct scene *scene)
{
    rate_clients_start(&scene->load,
        &(struct rate_clients_options) {
            .port = scene->daemon->ports[0], .rate = 200, .long_n = LONG_N, .talk_ms = 20 });
    scene->loaded = true;
}

void verbs_begin(struct scene *scene)
{
    scene->refused = atomic_load(&scene->load.refused);
    scene->reset = atomic_load(&scene->load.reset);
    ck_assert_uint_eq(atomic_load(&scene->load.long_ended), 0);
    scene->begun_ms = now_ms();
}

/* New clients are served from now on. */
static void check_not_lost(struct scene *scene, const char *when)
{
    unsigned refused = atomic_load(&scene->load.refused) - scene->refused;
    unsigned reset = atomic_load(&scene->load.reset) - scene->reset;

    if (verbs_are(scene->verb->clients, "never refused"))
        reset = 0;
    ck_assert_msg(refused == 0 && reset == 0, "%s: %u clients were refused, %u reset: %s", when,
        refused, reset, strerror(atomic_load(&scene->load.error)));
}

void verbs_check_served(struct scene *scene)
{
    for (int i = 0; i < 10; i++)
        close(verbs_open_session(scene->daemon)); /* at once */
    rate_clients_wait(&scene->load, 5);           /* until those before are counted */
    scene->refused = atomic_load(&scene->load.refused);
    scene->reset = atomic_load(&scene->load.reset);
    rate_clients_wait(&scene->load, 50);
    check_not_lost(scene, "afterwards");
}

static void check_clients(struct scene *scene)
{
    const char *clients = scene->verb->clients;
    in_port_t port = scene->daemon->ports[0];
    int client;

    if (verbs_are(clients, "refused")) {
        WAIT_FOR(client_error(port) == ECONNREFUSED);
        return;
    }
    if (!verbs_are(clients, "served once"))
        check_not_lost(scene, scene->typed);
    if (!verbs_are(clients, "wait")) {
        verbs_check_served(scene);
        return;
    }
    client = client_open(port);
    client_send(client, "patience");
    ck_assert(client_is_quiet(client));
    close(client);
}

static void check_sessions(struct scene *scene)
{
    if (verbs_are(scene->verb->sessions, "closed")) {
        client_expect_gone(scene->session);
        return;
    }
    if (verbs_are(scene->verb->sessions, "kept")) {
        client_echo(scene->session, "goes on");
        tls_client_echo(&scene->secure, "goes on");
    }
    ck_assert_uint_eq(atomic_load(&scene->load.long_ended), 0);
    ck_assert_uint_eq(atomic_load(&scene->load.wrong), 0);
}

void verbs_check(struct scene *scene)
{
    check_clients(scene);
    check_sessions(scene);
}

void verbs_unload(struct scene *scene)
{
    if (scene->loaded)
        rate_clients_stop(&scene->load);
    scene->loaded = false;
}

void verbs_end_sessions(struct scene *scene)
{
    if (scene->session != -1)
        close(scene->session);
    scene->session = -1;
    tls_client_end(&scene->secure);
}

void verbs_finish(struct scene *scene)
{
    verbs_unload(scene);
    verbs_end_sessions(scene);
    daemon_finish(scene->daemon);
}
