/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells daemons to quit, and looks at their leftovers for the next start. */
#include "daemon/quit.h"

#include "daemon/client.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const quit_modes[QUIT_MODES] = {
    "worker_processes 2; events { accept_mutex off; } " QUIT_SERVER(""),
    "worker_processes 2; events { accept_mutex on; } " QUIT_SERVER(""),
    "worker_processes 2; events {} " QUIT_SERVER(" reuseport"),
};

int quit_run(struct daemon *daemon, const char *command)
{
    return daemon_run(daemon, "-c", "forkbeard.conf", "-s", command, NULL);
}

const char *quit_name(const char *path, pid_t pid)
{
    static char name[64];

    snprintf(name, sizeof(name), "%s.quit.%d", path, (int)pid);
    return name;
}

bool quit_is_aside(struct daemon *daemon, pid_t pid)
{
    return upgrade_read_pid(daemon, quit_name("forkbeard.pid", pid)) == pid &&
           daemon_has(daemon, quit_name("forkbeard.sock", pid)) && daemon_pid(daemon) != pid &&
           upgrade_read_pid(daemon, "forkbeard.pid.oldbin") != pid;
}

bool quit_has_names(struct daemon *daemon, pid_t pid)
{
    return daemon_has(daemon, quit_name("forkbeard.pid", pid)) ||
           daemon_has(daemon, quit_name("forkbeard.sock", pid));
}

int quit_begin_session(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "begun");
    return client;
}

pid_t quit_daemon(struct daemon *daemon)
{
    pid_t pid = daemon->pid;

    ck_assert_int_eq(quit_run(daemon, "quit"), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert(quit_is_aside(daemon, pid));
    daemon->pid = 0;
    return pid;
}

void quit_end_session(struct daemon *daemon, int client, pid_t pid)
{
    client_echo(client, "to the end");
    close(client);
    ck_assert_int_eq(proc_wait(pid), 0);
    ck_assert(!quit_has_names(daemon, pid));
}

unsigned quit_count_status(struct daemon *daemon, const char *what)
{
    unsigned n = 0;

    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    for (const char *text = daemon->out; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

int quit_begin_session_of(const struct daemon *daemon, pid_t master)
{
    while (true) {
        int client = quit_begin_session(daemon);

        if (proc_holder(master, proc_connection(client)) != 0)
            return client;
        close(client);
    }
}

int quit_open_terminal(struct daemon *daemon)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    ck_assert_int_ne(terminal, -1);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    ck_assert_int_eq(ptsname_r(terminal, name, sizeof(name)), 0);
    daemon->standard_error = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ne(daemon->standard_error, -1);
    return terminal;
}

void quit_expect_on_terminal(struct daemon *daemon, int terminal, const char *text)
{
    struct pollfd wait = { .fd = terminal, .events = POLLIN };
    char line[512];
    ssize_t n;

    ck_assert_int_eq(poll(&wait, 1, (int)patience_ms()), 1);
    n = read(terminal, line, sizeof(line));
    ck_assert_int_gt(n, 0);
    ck_assert_ptr_nonnull(memmem(line, (size_t)n, text, strlen(text)));
    close(daemon->standard_error);
    daemon->standard_error = 0;
}
