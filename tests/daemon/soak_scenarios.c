/* SPDX-License-Identifier: BSD-2-Clause */
/* Kills, reloads and upgrades under load. A scenario begins with begin_soak() and ends with
 * end_soak(), which fails if anything is left or anybody was refused. */
#include "daemon/soak_scenarios.h"

#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/load_clients.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKERS 4
#define SESSIONS 8
#define RELOAD_SESSIONS 3
#define CHILDREN_MAX 64

const struct soak_mode soak_modes[SOAK_MODES] = {
    { "accept_mutex on", "use poll; accept_mutex on;", "" },
    { "accept_mutex off", "accept_mutex off;", "" },
    { "reuseport", "accept_mutex off;", "reuseport" },
};

struct soak {
    const struct soak_mode *way;
    struct daemon *daemon;
    struct load_clients load;
    int64_t begun_ms;
    unsigned master_descriptors, worker_descriptors;
    unsigned opened; /* sessions besides those of the load */
    bool recounts;   /* another master process counts, which began later */
};

static void configure_daemon(const struct soak *soak, const char *more)
{
    daemon_configure(soak->daemon,
        "worker_processes %d; events { worker_connections 128; accept_mutex_delay 100ms; %s }\n"
        "stream { server { listen 127.0.0.1:$0 %s; echo; }\n"
        "server { listen 127.0.0.1:$1; stub_status; } %s }\n",
        WORKERS, soak->way->events, soak->way->parameter, more);
}

static unsigned count_worker_descriptors(const struct daemon *daemon)
{
    pid_t workers[WORKERS];
    unsigned n = proc_children(daemon->pid, workers, WORKERS), all = 0;

    for (unsigned i = 0; i < n; i++)
        all += proc_descriptors(workers[i]);
    return all;
}

static struct soak *begin_soak(const struct soak_mode *way)
{
    struct soak *soak = calloc(1, sizeof(*soak));

    ck_assert_ptr_nonnull(soak);
    soak->way = way;
    soak->daemon = daemon_create(3);
    configure_daemon(soak, "");
    daemon_start(soak->daemon);
    soak->master_descriptors = proc_descriptors(soak->daemon->pid);
    soak->worker_descriptors = count_worker_descriptors(soak->daemon);
    soak->begun_ms = now_ms();
    load_clients_start(&soak->load, soak->daemon->ports[0]);
    return soak;
}

/* Ends the load, and fails if anything is left of it, or a new client is not served. */
static void end_soak(
    struct soak *soak, const char *what, unsigned n, const struct proc_ports *victims)
{
    struct daemon *daemon = soak->daemon;
    struct load_clients *load = &soak->load;
    struct client_status status;
    unsigned beyond;

    load_clients_stop(load);
    beyond = load_clients_lost_beyond(load, victims);
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    WAIT_FOR(client_status(daemon->ports[1]).active == 1);
    WAIT_FOR(proc_descriptors(daemon->pid) == soak->master_descriptors);
    WAIT_FOR(count_worker_descriptors(daemon) == soak->worker_descriptors);
    status = client_status(daemon->ports[1]);
    printf("%s, %s: %u in %.1f s, %u sessions, %u refused, %u lost with their worker, "
           "%u lost otherwise, %u wrong, mutex taken back %u times\n",
        what, soak->way->name, n, (double)(now_ms() - soak->begun_ms) / 1000,
        load->connected + soak->opened, load->refused, load->lost_n - beyond, beyond, load->wrong,
        daemon_count_log(daemon, "the accept mutex was taken back"));
    fflush(stdout);

    ck_assert_uint_eq(load->refused, 0);
    ck_assert_uint_eq(load->wrong, 0);
    ck_assert_uint_eq(beyond, 0);
    ck_assert_uint_eq(status.reading, 0);
    ck_assert_uint_eq(status.writing, 0);
    ck_assert_uint_ge(status.accepts, status.handled);
    if (!soak->recounts) {
        ck_assert_uint_ge(status.accepts, load->echoed + soak->opened);
        ck_assert_uint_ge(status.requests, 2 * load->echoed + soak->opened);
    }
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans(); /* helpers of sanitizers, left by workers killed during a leak check */
    daemon_finish(daemon);
    free(soak);
}

static int open_session(struct soak *soak)
{
    int client = client_open(soak->daemon->ports[0]);

    client_echo(client, "begun");
    soak->opened++;
    return client;
}

static bool is_among(int client, const struct proc_ports *ports)
{
    struct sockaddr_in own;
    socklen_t length = sizeof(own);

    ck_assert_int_eq(getsockname(client, (struct sockaddr *)&own, &length), 0);
    return proc_ports_have(ports, ntohs(own.sin_port));
}

/* Kills one; `all` is given its clients. */
static void kill_one(struct soak *soak, int *sessions, struct proc_ports *all)
{
    struct daemon *daemon = soak->daemon;
    struct proc_ports lost = { { 0 } };
    pid_t workers[WORKERS], victim;
    unsigned n;

    WAIT_FOR((n = proc_children(daemon->pid, workers, WORKERS)) > 1);
    victim = workers[arc4random_uniform(n)];
    proc_freeze(victim);
    proc_add_clients(victim, daemon->ports[0], &lost);
    ck_assert_int_eq(kill(victim, SIGKILL), 0);
    WAIT_FOR(proc_state(victim) == 0);

    for (int i = 0; i < SESSIONS; i++) {
        if (is_among(sessions[i], &lost)) {
            client_expect_gone(sessions[i]);
            close(sessions[i]);
            sessions[i] = open_session(soak);
        } else {
            client_echo(sessions[i], "not concerned");
        }
    }
    for (size_t i = 0; i < sizeof(lost.bits); i++)
        all->bits[i] |= lost.bits[i];
}

void soak_kills(const struct soak_mode *way, unsigned n)
{
    struct soak *soak = begin_soak(way);
    struct proc_ports all = { { 0 } };
    int sessions[SESSIONS];

    daemon_expects(soak->daemon, "exited on signal 9");
    daemon_expects(soak->daemon, " about worker "); /* lines that were held back */
    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = open_session(soak);
    for (unsigned i = 0; i < n; i++) {
        kill_one(soak, sessions, &all);
        if (i % 3 == 0) /* the next kills come while the last worker is being replaced */
            load_clients_wait(&soak->load, 10);
    }
    for (int i = 0; i < SESSIONS; i++)
        close(sessions[i]);
    end_soak(soak, "kills", n, &all);
}

/* Whether a worker takes a new session. */
static bool is_served_by(struct soak *soak, const pid_t workers[WORKERS])
{
    int client = open_session(soak);
    bool is = proc_has(workers, WORKERS, proc_server_of(soak->daemon->pid, client));

    close(client);
    return is;
}

static void reload_once(struct soak *soak)
{
    struct daemon *daemon = soak->daemon;
    pid_t old[WORKERS], servers[RELOAD_SESSIONS];
    unsigned long connections[RELOAD_SESSIONS];
    int sessions[RELOAD_SESSIONS];

    ck_assert_uint_eq(proc_children(daemon->pid, old, WORKERS), WORKERS);
    for (int i = 0; i < RELOAD_SESSIONS; i++) {
        sessions[i] = open_session(soak);
        connections[i] = proc_connection(sessions[i]);
        servers[i] = proc_holder(daemon->pid, connections[i]);
        ck_assert(proc_has(old, WORKERS, servers[i]));
    }
    daemon_signal(daemon, SIGHUP);
    for (int i = 0; i < WORKERS; i++)
        daemon_wait_log(daemon, "gracefully shutting down");
    WAIT_FOR(!is_served_by(soak, old)); /* workers accept the waiting clients as they step back */

    for (int i = 0; i < RELOAD_SESSIONS; i++) {
        client_echo(sessions[i], "finishes");
        ck_assert_int_eq(proc_holder(daemon->pid, connections[i]), servers[i]);
        close(sessions[i]);
    }
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
}

void soak_reloads(const struct soak_mode *way, unsigned n)
{
    static const struct proc_ports none;
    struct soak *soak = begin_soak(way);

    for (unsigned i = 0; i < n; i++)
        reload_once(soak);
    end_soak(soak, "reloads", n, &none);
}

/* A worker of any generation, and not the checking process of a configuration; 0: none just now. */
static pid_t any_worker(pid_t master)
{
    pid_t children[CHILDREN_MAX], child;
    unsigned n = proc_children(master, children, CHILDREN_MAX);

    child = n > 0 ? children[arc4random_uniform(n)] : 0;
    return child > 0 && strstr(proc_text(child, "cmdline"), "worker") != NULL ? child : 0;
}

static void kill_any(struct soak *soak, struct proc_ports *lost)
{
    pid_t victim;

    WAIT_FOR((victim = any_worker(soak->daemon->pid)) > 0);
    if (kill(victim, SIGSTOP) == -1) /* a draining worker may have ended */
        return;
    WAIT_FOR(proc_state(victim) == 'T' || proc_state(victim) == 'Z' || proc_state(victim) == 0);
    proc_add_clients(victim, soak->daemon->ports[0], lost);
    kill(victim, SIGKILL);
}

void soak_kills_in_reloads(const struct soak_mode *way, unsigned n)
{
    struct soak *soak = begin_soak(way);
    struct proc_ports lost = { { 0 } };

    daemon_expects(soak->daemon, "exited on signal 9");
    daemon_expects(soak->daemon, " about worker "); /* lines that were held back */
    for (unsigned i = 0; i < n; i++) {
        daemon_signal(soak->daemon, SIGHUP);
        for (unsigned kills = arc4random_uniform(4); kills > 0; kills--)
            kill_any(soak, &lost);
        load_clients_wait(&soak->load, arc4random_uniform(10));
    }
    end_soak(soak, "kills in reloads", n, &lost);
}

static const struct {
    const char *more, *line;
} mistakes[] = {
    { "echo;", "forkbeard.conf:5:" },
    { "server { listen 127.0.0.1:$2; }", "failed (98: Address already in use)" },
    { "} working_directory nowhere; stream_ {", "forkbeard.conf:5:" },
    { "server { listen 127.0.0.1:1; } server {", "unexpected" },
};

void soak_broken_reloads(const struct soak_mode *way, unsigned n)
{
    static const struct proc_ports none;
    struct soak *soak = begin_soak(way);
    struct daemon *daemon = soak->daemon;
    pid_t before[WORKERS], after[WORKERS];
    int session = open_session(soak);

    ck_assert_int_eq(listen(daemon->reservations[2], 1), 0);
    daemon_expects(daemon, "[emerg]");
    ck_assert_uint_eq(proc_children(daemon->pid, before, WORKERS), WORKERS);
    for (unsigned i = 0; i < n; i++) {
        configure_daemon(soak, mistakes[i % 4].more);
        daemon_signal(daemon, SIGHUP);
        daemon_wait_log(daemon, mistakes[i % 4].line);
        daemon_wait_log(daemon, "reload failed: the previous configuration stays in force");
        load_clients_wait(&soak->load, 5);
    }
    client_echo(session, "the same session");
    close(session);
    ck_assert_uint_eq(proc_children(daemon->pid, after, WORKERS), WORKERS);
    for (int i = 0; i < WORKERS; i++)
        ck_assert(proc_has(before, WORKERS, after[i]));
    ck_assert_uint_eq(daemon_count_log(daemon, "start worker process"), WORKERS);
    end_soak(soak, "broken reloads", n, &none);
}

/* Sessions of the current master process; they end as the process does. */
static void upgrade_once(struct soak *soak, bool forward)
{
    struct daemon *daemon = soak->daemon;
    pid_t new = upgrade_start(daemon), ending = forward ? daemon->pid : new;
    int sessions[SESSIONS];

    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = open_session(soak);
    load_clients_wait(&soak->load, 20);
    ck_assert_int_eq(kill(ending, SIGQUIT), 0);
    load_clients_wait(&soak->load, 20);
    for (int i = 0; i < SESSIONS; i++) {
        client_echo(sessions[i], "finishes");
        close(sessions[i]);
    }
    if (forward)
        upgrade_wait_complete(daemon, new);
    else
        upgrade_wait_rollback(daemon);
    load_clients_wait(&soak->load, 5);
}

void soak_upgrades(const struct soak_mode *way, unsigned n)
{
    static const struct proc_ports none;
    struct soak *soak = begin_soak(way);
    int session = open_session(soak);

    soak->recounts = true;
    for (unsigned i = 0; i < n; i++) {
        upgrade_once(soak, false);
        client_echo(session, "the same worker");
    }
    close(session);
    upgrade_once(soak, true);
    soak->master_descriptors = proc_descriptors(soak->daemon->pid);
    for (unsigned i = 1; i < n; i++)
        upgrade_once(soak, true);
    end_soak(soak, "upgrades there and back", n, &none);
}
