/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts, completes and rolls back upgrades of the binary under test, and checks pid files and
 * sockets on the way. */
#include "daemon/upgrade.h"

#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>

void upgrade_echo_once(struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "by port");
    close(client);
    client = client_open_unix(daemon_path(daemon, "socket"));
    client_echo(client, "by path");
    close(client);
}

pid_t upgrade_read_pid(const struct daemon *daemon, const char *name)
{
    FILE *file = fopen(daemon_path(daemon, name), "re");
    int pid = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &pid) != 1)
        pid = 0;
    fclose(file);
    return pid;
}

pid_t upgrade_start(struct daemon *daemon)
{
    pid_t pid = 0;

    daemon_signal(daemon, SIGUSR2);
    WAIT_FOR((pid = daemon_pid(daemon)) != daemon->pid && pid > 0);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    ck_assert_int_eq(proc_parent(pid), daemon->pid);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.oldbin"), daemon->pid);
    return pid;
}

void upgrade_wait_complete(struct daemon *daemon, pid_t new)
{
    pid_t old = daemon->pid;

    ck_assert_int_eq(proc_wait(old), 0);
    daemon->pid = new;
    ck_assert_int_eq(proc_parent(new), getpid());
    daemon_wait_log(daemon, "has ended: process");
    ck_assert_int_eq(daemon_pid(daemon), new);
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock.oldbin"));
}

void upgrade_complete(struct daemon *daemon, pid_t new)
{
    daemon_signal(daemon, SIGQUIT);
    upgrade_wait_complete(daemon, new);
}

void upgrade_wait_rollback(struct daemon *daemon)
{
    daemon_wait_log(daemon, "serves alone again");
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    ck_assert(control_is_ok(control_ask(daemon, "status")));
}

void upgrade_roll_back(struct daemon *daemon, pid_t new)
{
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    upgrade_wait_rollback(daemon);
}
