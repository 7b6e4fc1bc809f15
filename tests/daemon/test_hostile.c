/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers in an attacker's hands, without knowledge of the daemon, and all attacks without another
 * test. Paths are from tests/:
 *
 *     what a worker tries                       held by
 *     ------------------------------------------------------------------------------------------
 *     to write into modules, code run by the    daemon/test_hostile no_memory_of_others_is_in_reach
 *     master when unloading
 *     to choose sizes, counts and offsets for   daemon/test_shared_memory, fuzz/fuzz_shared,
 *     the master                                shm/test_metrics
 *     to forge the number of slots, serials,    daemon/test_shared_memory
 *     pids, sides, and heartbeats of others
 *     to cut shared memory short, to seal it    shm/test_zone_seals
 *     to be waited for: a socket that lingers   daemon/test_channel
 *     to flood the channel and the log          daemon/test_channel, fuzz/fuzz_channel_master
 *     to attack workers by messages             fuzz/fuzz_channel_worker
 *     to keep the accept mutex, or forge its    daemon/test_accept_heals,
 *     owner                                     worker/test_accept_mutex
 *     to lie about load, to ring without        daemon/test_accept_share,
 *     pause                                     worker/test_accept_share
 *     to shut listening sockets down            daemon/test_accept_heals, net/test_listener_mend,
 *                                               worker/test_accept_broken
 *     to connect listeners, to set options      daemon/test_hostile_listeners,
 *                                               net/test_listener_mend, net/test_listener_options
 *     to make siblings wait in accept4()        daemon/test_hostile
 *                                               listeners_that_block_stop_nobody
 *     to take all sessions from servers         upstream/test_zone_lies, fuzz/fuzz_upstream,
 *                                               daemon/test_hostile servers_outlive_the_liar
 *     to damage maps, to keep map locks         shm/test_map_damage, fuzz/fuzz_map
 *     to be obeyed by the control socket        daemon/test_control_peers
 *     to get descriptors of the master          daemon/test_confinement
 *     to cut the log short, to fool a           sandbox/test_sandbox, daemon/test_sandbox,
 *     reopening, to clear flags                 base/test_log_file, daemon/test_log_readers
 *     to connect, to make code, to reach        sandbox/test_sandbox, daemon/test_sandbox
 *     siblings
 *     to have files opened by a keeper          keeper/test_named_file,
 *                                               keeper/test_keeper_process
 *     to fork in a callback                     daemon/test_deaths fork_makes_no_second_worker
 *     anything at all                           daemon/test_hostile random_writes
 *
 *     what is broken                            held by
 *     ------------------------------------------------------------------------------------------
 *     a worker stopped, without descriptors,    daemon/test_faults, daemon/test_deadlines,
 *     forked, in a long job                     contract/test_alerts
 *     a reader of the log stalls                daemon/test_faults, daemon/test_log_readers
 *     the master is stopped                     daemon/test_faults, daemon/test_control_peers */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/hostile_seeds.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 16

/* FORKBEARD_TEST_SEED is the first number, and the only one unless FORKBEARD_TEST_SEEDS says how
 * many. */
START_TEST(random_writes)
{
    const char *first = getenv("FORKBEARD_TEST_SEED"), *n = getenv("FORKBEARD_TEST_SEEDS");
    struct hostile_plan plan = { 1, test_trials(30), 4, 400, (unsigned)patience_ms() };

    if (first != NULL) {
        plan.first = (unsigned)atoi(first);
        plan.n = n != NULL ? (unsigned)atoi(n) : 1;
    }
    hostile_seeds(&plan);
}
END_TEST

static const struct {
    const char *sandbox, *reach;
} modes[] = {
    { "off", "0 descriptors, 0 made writable, " },
    { "on", "0 descriptors, 0 made writable, 0 made longer\n" },
    { "strict", "0 descriptors, 0 made writable, 0 made longer\n" },
};

/* Memory not writable for a worker is out of reach by other ways too: by a descriptor kept open, by
 * a changed mapping, by a longer mapping of the worker's own page. */
START_TEST(no_memory_of_others_is_in_reach)
{
    struct daemon *daemon = daemon_start_new(1,
        "load_module " MODULES_PATH "/attacker.so; worker_processes 2; sandbox %s;\n"
        "events {} stream { server { listen 127.0.0.1:$0; attacker; } }\n",
        modes[_i].sandbox);
    int client = client_open(daemon->ports[0]);

    client_send(client, "reach\n");
    client_expect(client, modes[_i].reach);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A shared socket set to block is no trap for its acceptors, at a reload neither. */
START_TEST(listeners_that_block_stop_nobody)
{
    struct daemon *daemon =
        daemon_start_new(2, "load_module " MODULES_PATH "/attacker.so; worker_processes 2;\n"
                            "events { accept_mutex off; multi_accept on; }\n"
                            "stream { server { listen 127.0.0.1:$0; echo; }\n"
                            "server { listen 127.0.0.1:$1 reuseport; attacker; } }\n");
    int clients[CLIENTS], attacker = client_open(daemon->ports[1]);

    client_send(attacker, "block\n");
    client_expect(attacker, "ok\n");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "served");
    }
    for (int i = 0; i < CLIENTS; i++) {
        client_echo(clients[i], "served still");
        close(clients[i]);
    }
    close(attacker);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* Sessions by way of a group of two servers. */
static void be_proxied(const struct daemon *daemon)
{
    for (int i = 0; i < CLIENTS; i++) {
        int client = client_open(daemon->ports[1]);

        client_echo(client, "served");
        close(client);
    }
}

/* After its death, a worker's marks of endless failure on all servers keep no session away. */
START_TEST(servers_outlive_the_liar)
{
    struct daemon *daemon = daemon_start_new(4,
        "load_module " MODULES_PATH "/attacker.so; worker_processes 2; sandbox %s; events {}\n"
        "stream { upstream group { zone group 64k;\n"
        "server 127.0.0.1:$2 fail_timeout=5s; server 127.0.0.1:$3 fail_timeout=5s; }\n"
        "server { listen 127.0.0.1:$0; attacker; } server { listen 127.0.0.1:$1; proxy_pass group; "
        "}\n"
        "server { listen 127.0.0.1:$2; listen 127.0.0.1:$3; echo; } }\n",
        modes[_i].sandbox);
    int attacker = client_open(daemon->ports[0]);

    daemon_expects(daemon, "exited on signal 9");
    be_proxied(daemon);
    client_send(attacker, "servers\n");
    client_expect(attacker, "ok\n");
    client_send(attacker, "die\n");
    client_expect_gone(attacker);
    close(attacker);
    be_proxied(daemon);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    be_proxied(daemon);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, random_writes);
    tcase_add_test(tcase, listeners_that_block_stop_nobody);
    tcase_add_loop_test(tcase, servers_outlive_the_liar, 1, sizeof(modes) / sizeof(modes[0]));
    tcase_add_loop_test(
        tcase, no_memory_of_others_is_in_reach, 0, sizeof(modes) / sizeof(modes[0]));
}

TEST_MAIN("hostile", add_tests)
