/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/idle.h"

#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/crowd.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define WORKERS 4
#define GENERATIONS 3

static void configure(struct daemon *daemon, const struct idle *plan)
{
    daemon_configure(daemon,
        "worker_processes %d; max_generations %d; worker_shutdown_timeout %ums;\n"
        "worker_rlimit_nofile 16384; load_module " FB_EXAMPLES_PATH "/resp/.libs/resp.so;\n"
        "events { worker_connections 16000; accept_mutex off; multi_accept on; }\n"
        "stream { server { listen 127.0.0.1:$0 reuseport backlog=4096; echo; }\n"
        "server { listen 127.0.0.1:$1 reuseport backlog=4096; resp; resp_keys 1000; } }\n",
        WORKERS, GENERATIONS, plan->shutdown_ms);
}

/* Reloads, and looks all the while; the most processes there were. */
static unsigned reload(struct daemon *daemon, unsigned most)
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

void idle_run(const struct idle *plan)
{
    struct daemon *daemon = daemon_create(CROWD_PORTS);
    struct crowd crowd;
    int64_t begun_ms, reloaded_ms, gone_ms, until;
    unsigned most = 0;

    configure(daemon, plan);
    daemon_start(daemon);
    crowd_start(&crowd, daemon->ports, plan->sessions);
    begun_ms = now_ms();
    for (unsigned i = 0; i < plan->reloads; i++)
        most = reload(daemon, most);
    reloaded_ms = now_ms();
    until = reloaded_ms + plan->shutdown_ms + 10000;
    while (proc_child_n(daemon->pid) != WORKERS && now_ms() < until)
        pause_briefly();
    gone_ms = now_ms() - reloaded_ms;
    WAIT_FOR(atomic_load(&crowd.counts->open) == plan->sessions); /* all have come back */
    printf("idle: %u sessions, %u reloads in %.1f s, at most %u processes of %u, the old ones gone "
           "after "
           "%.1f s of %.1f s, %u sessions begun again, %u refused\n",
        plan->sessions, plan->reloads, (double)(reloaded_ms - begun_ms) / 1000, most,
        (GENERATIONS + 1) * WORKERS, (double)gone_ms / 1000, plan->shutdown_ms / 1000.0,
        atomic_load(&crowd.counts->returned), atomic_load(&crowd.counts->refused));
    fflush(stdout);

    ck_assert_uint_le(most, (GENERATIONS + 1) * WORKERS);
    ck_assert_uint_eq(proc_child_n(daemon->pid), WORKERS);
    if (plan->timed)
        ck_assert_int_le(gone_ms, plan->shutdown_ms + 1000);
    ck_assert_uint_eq(atomic_load(&crowd.counts->refused), 0);
    crowd_stop(&crowd);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans(); /* helpers of sanitizers */
    daemon_finish(daemon);
}
