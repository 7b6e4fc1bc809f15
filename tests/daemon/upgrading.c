/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/upgrading.h"

#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>

pid_t pid_in(const struct daemon *daemon, const char *name)
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

pid_t upgrade(struct daemon *daemon)
{
    pid_t pid = 0;

    daemon_signal(daemon, SIGUSR2);
    WAIT_FOR((pid = daemon_pid(daemon)) != daemon->pid && pid > 0);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    ck_assert_int_eq(proc_parent(pid), daemon->pid);
    ck_assert_int_eq(pid_in(daemon, "forkbeard.pid.oldbin"), daemon->pid);
    return pid;
}

void wait_for_old(struct daemon *daemon, pid_t new)
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

void go_forward(struct daemon *daemon, pid_t new)
{
    daemon_signal(daemon, SIGQUIT);
    wait_for_old(daemon, new);
}

void wait_for_return(struct daemon *daemon)
{
    daemon_wait_log(daemon, "is the only one again");
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    ck_assert(control_is_ok(control_ask(daemon, "status")));
}

void go_back(struct daemon *daemon, pid_t new)
{
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    wait_for_return(daemon);
}
