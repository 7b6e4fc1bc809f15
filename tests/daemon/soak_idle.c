/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads with very many idle sessions: the number of workers stays bounded, and old ones end in
 * time. */
#include "daemon/soak_idle.h"

#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/idle_clients.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define WORKERS 4
#define GENERATIONS 3

static void configure_daemon(struct daemon *daemon, const struct soak_idle_plan *plan)
{
    daemon_expects(daemon, "(max_generations)"); /* unless worker_shutdown_timeout is sooner */
    daemon_configure(daemon,
        "worker_processes %d; max_generations %d; worker_shutdown_timeout %ums;\n"
        "worker_rlimit_nofile 16384; load_module " EXAMPLES_PATH "/resp/.libs/resp.so;\n"
        "events { worker_connections %u; accept_mutex off; multi_accept on; }\n"
        "stream { server { listen 127.0.0.1:$0 reuseport backlog=4096; echo; }\n"
        "server { listen 127.0.0.1:$1 reuseport backlog=4096; resp; resp_keys 1000; } }\n",
        WORKERS, GENERATIONS, plan->shutdown_ms, mechanisms_bounded(16000));
}

/* Reloads, and looks all the while; the most processes there were. */
static unsigned reload_watching(struct daemon *daemon, unsigned most)
{
    int control = control_open(daemon);
    struct json_value answer;

    control_send(control, "reload");
    do {
        unsigned n = proc_child_n(daemon->pid);

        if (n > most)
            most = n;
    } while (client_is_quiet(control));
    answer = control_receive(control);
    ck_assert_msg(control_is_ok(answer), "%.*s", (int)answer.n, answer.text);
    close(control);
    return most;
}

void soak_idle(const struct soak_idle_plan *plan)
{
    struct daemon *daemon = daemon_create(IDLE_CLIENTS_PORTS);
    struct idle_clients clients;
    int64_t begun_ms, reloaded_ms, gone_ms, until;
    unsigned most = 0;

    configure_daemon(daemon, plan);
    daemon_expects(daemon, "more than 3 generations (max_generations): generation ");
    daemon_start(daemon);
    idle_clients_start(&clients, daemon->ports, plan->sessions);
    begun_ms = now_ms();
    for (unsigned i = 0; i < plan->reloads; i++)
        most = reload_watching(daemon, most);
    reloaded_ms = now_ms();
    until = reloaded_ms + plan->shutdown_ms + 10000;
    while (proc_child_n(daemon->pid) != WORKERS && now_ms() < until)
        pause_briefly();
    gone_ms = now_ms() - reloaded_ms;
    WAIT_FOR(atomic_load(&clients.counts->open) == plan->sessions); /* every client has come back */
    printf("idle: %u sessions, %u reloads in %.1f s, at most %u processes of %u, the old ones gone "
           "after "
           "%.1f s of %.1f s, %u sessions begun again, %u refused\n",
        plan->sessions, plan->reloads, (double)(reloaded_ms - begun_ms) / 1000, most,
        (GENERATIONS + 1) * WORKERS, (double)gone_ms / 1000, plan->shutdown_ms / 1000.0,
        atomic_load(&clients.counts->returned), atomic_load(&clients.counts->refused));
    fflush(stdout);

    ck_assert_uint_le(most, (GENERATIONS + 1) * WORKERS);
    ck_assert_uint_eq(proc_child_n(daemon->pid), WORKERS);
    if (plan->timed)
        ck_assert_int_le(gone_ms, plan->shutdown_ms + 1000);
    ck_assert_uint_eq(atomic_load(&clients.counts->refused), 0);
    idle_clients_stop(&clients);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans(); /* helpers of sanitizers */
    daemon_finish(daemon);
}
