/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the running daemon, deleted or replaced from outside, as by a cleaner of temporary
 * directories: the pid file, its lock, the control socket, the list of workers, and the paths of
 * unix sockets. The next reload makes them again. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define REUSEPORT "events {} stream { server { listen 127.0.0.1:$0 reuseport; echo; } }\n"
#define WAITING 20

static void delete_file(const struct daemon *daemon, const char *name)
{
    ck_assert_int_eq(unlink(daemon_path(daemon, name)), 0);
}

static int reload(struct daemon *daemon)
{
    return daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL);
}

/* The inode of a name; 0: there is none. */
static ino_t inode(const struct daemon *daemon, const char *name)
{
    struct stat st;

    return lstat(daemon_path(daemon, name), &st) == 0 ? st.st_ino : 0;
}

static void echo_by_path(const struct daemon *daemon, const char *name)
{
    int client = client_open_unix(daemon_path(daemon, name));

    client_echo(client, "by path");
    close(client);
}

/* A foreign socket at the path, listening or not. */
static int put_socket(const struct daemon *daemon, const char *name, bool listens)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    if (listens)
        ck_assert_int_eq(listen(fd, 5), 0);
    return fd;
}

/* The pid file and its lock */

/* _i: with another spelling of the path in the new configuration. */
START_TEST(the_lock_is_taken_again)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    ino_t before = inode(daemon, "forkbeard.pid");

    if (_i == 1)
        daemon_write(
            daemon, "forkbeard.conf", "error_log error.log notice; pid ./forkbeard.pid; " ECHO);
    delete_file(daemon, "forkbeard.pid.lock");
    daemon_expects(daemon, "was deleted: it is made and locked again");
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "was deleted: it is made and locked again"));
    ck_assert_uint_eq(inode(daemon, "forkbeard.pid"), before); /* never removed */
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), daemon->pid);

    daemon_expects(daemon, "another master process");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 75);
    ck_assert_ptr_nonnull(strstr(daemon->err, "another master process"));
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_int_eq(daemon_count_log(daemon, "was deleted: it is made"), 1);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A failed reload loses no pid file. */
START_TEST(the_pid_file_outlives_a_failed_reload)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    ino_t before = inode(daemon, "forkbeard.pid");

    delete_file(daemon, "forkbeard.pid.lock");
    daemon_expects(daemon, "was deleted: it is made and locked again");
    daemon_expects(daemon, "bind()");
    daemon_expects(daemon, "stays in force");
    daemon_configure(daemon, "events {} stream { server { listen unix:$D/no/path; echo; } }\n");
    ck_assert_int_eq(reload(daemon), 1);
    ck_assert_uint_eq(inode(daemon, "forkbeard.pid"), before);
    ck_assert(daemon_has(daemon, "forkbeard.pid.lock"));
    daemon_configure(daemon, ECHO);
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_uint_eq(inode(daemon, "forkbeard.pid"), before);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_pid_file_is_written_again)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);

    delete_file(daemon, "forkbeard.pid");
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    delete_file(daemon, "forkbeard.pid");
    delete_file(daemon, "forkbeard.pid.lock");
    delete_file(daemon, "forkbeard.sock");
    daemon_expects(daemon, "was deleted: it is made and locked again");
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "start worker process");
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    WAIT_FOR(daemon_has(daemon, "forkbeard.sock"));
    ck_assert(control_is_ok(control_ask(daemon, "status")));
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), daemon->pid);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Neither a lock, nor a shared port, nor a control socket keeps out the second start. */
START_TEST(a_second_start_is_refused_without_the_lock)
{
    struct daemon *daemon = daemon_start_new(1, "control off; " REUSEPORT);
    int client;

    delete_file(daemon, "forkbeard.pid.lock");
    daemon_expects(daemon, "whose lock was deleted");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 75);
    ck_assert_ptr_nonnull(strstr(daemon->err, "whose lock was deleted: "));
    ck_assert(!daemon_has(daemon, "forkbeard.pid.lock"));
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    client = client_open(daemon->ports[0]);
    client_echo(client, "still");
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The lock is deleted before an upgrade, or while two masters run. */
START_TEST(upgrades_without_the_lock)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new;

    delete_file(daemon, "forkbeard.pid.lock");
    new = upgrade_start(daemon);
    upgrade_roll_back(daemon, new);
    daemon_expects(daemon, "was deleted: it is made and locked again");
    ck_assert_int_eq(reload(daemon), 0);
    new = upgrade_start(daemon);
    delete_file(daemon, "forkbeard.pid.lock");
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_int_eq(upgrade_read_pid(daemon, "forkbeard.pid.lock"), new);
    upgrade_complete(daemon, new);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The paths of unix sockets */

/* _i: the obstacle at the path: nothing, a socket left by a crash. */
START_TEST(a_path_is_bound_again)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    int clients[WAITING], session = client_open_unix(daemon_path(daemon, "socket"));
    unsigned descriptors = proc_descriptors(daemon->pid);
    pid_t workers[2];
    struct stat st;

    client_echo(session, "begun");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    for (int i = 0; i < 2; i++)
        proc_freeze(workers[i]);
    for (int i = 0; i < WAITING; i++) { /* no worker accepts them before the reload */
        clients[i] = client_open_unix(daemon_path(daemon, "socket"));
        client_send(clients[i], "waits");
    }
    delete_file(daemon, "socket");
    if (_i == 1)
        close(put_socket(daemon, "socket", false));
    daemon_expects(daemon, "was deleted or replaced: it is bound again");
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "was deleted or replaced: it is bound again"));
    ck_assert_int_eq(lstat(daemon_path(daemon, "socket"), &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0666);
    for (int i = 0; i < WAITING; i++)
        echo_by_path(daemon, "socket");
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(kill(workers[i], SIGCONT), 0);
    for (int i = 0; i < WAITING; i++) {
        client_expect(clients[i], "waits");
        close(clients[i]);
    }
    client_echo(session, "goes on");
    close(session);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert_uint_eq(inode(daemon, "socket"), st.st_ino);
    daemon_stop(daemon, SIGTERM);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

/* _i: the file in the way: a plain file, or a foreign socket. The reload fails, and logs the
 * reason. */
START_TEST(a_path_that_is_anothers)
{
    static const char *const lines[] = { "the path exists and is not a socket",
        "the socket is in use" };
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    int other = -1, client;

    delete_file(daemon, "socket");
    if (_i == 0)
        daemon_write(daemon, "socket", "a file");
    else
        other = put_socket(daemon, "socket", true);
    daemon_expects(daemon, "was deleted or replaced: it is bound again");
    daemon_expects(daemon, lines[_i]);
    ck_assert_int_eq(reload(daemon), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, lines[_i]));
    client = client_open(daemon->ports[0]);
    client_echo(client, "serves on");
    close(client);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_stop(daemon, SIGTERM);
    ck_assert(daemon_has(daemon, "socket")); /* another daemon's file is not ours to remove */
    if (other != -1)
        close(other);
    delete_file(daemon, "socket");
    daemon_finish(daemon);
}
END_TEST

/* The bind is undone where the reload fails later. */
START_TEST(a_failed_reload_leaves_no_path)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));

    delete_file(daemon, "socket");
    daemon_expects(daemon, "was deleted or replaced: it is bound again");
    daemon_expects(daemon, "bind()");
    daemon_expects(daemon, "stays in force");
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; "
                             "listen unix:$D/socket; listen unix:$D/no/path; echo; } }");
    ck_assert_int_eq(reload(daemon), 1);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_configure(daemon, UPGRADE_ECHO(""));
    ck_assert_int_eq(reload(daemon), 0);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The new master of two binds the path again; the end of the second leaves the path. _i: the old
 * master ends, or the new one. */
START_TEST(a_path_of_two_masters)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    delete_file(daemon, "socket");
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP); /* the old master leaves the path to the new master */
    daemon_wait_log(daemon, "start worker process");
    daemon_wait_log(daemon, "exited with code 0");
    daemon_expects(daemon, "was deleted or replaced: it is bound again");
    ck_assert_int_eq(reload(daemon), 0);
    upgrade_echo_once(daemon);
    if (_i == 0) {
        upgrade_complete(daemon, new);
    } else {
        upgrade_roll_back(daemon, new);
        WAIT_FOR(daemon_has(daemon, "socket"));
        WAIT_FOR(control_count(control_ask(daemon, "status"), "generations") == 1);
    }
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

/* The new master has bound the path again and is killed: the old master binds it. _i: as soon as
 * the new master's workers, still unaware, have stopped listening. */
START_TEST(a_path_of_a_killed_master)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon), workers[3];

    delete_file(daemon, "socket");
    daemon_expects(daemon, "was deleted or replaced: it is bound again");
    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "the master process has gone");
    ck_assert_int_eq(reload(daemon), 0);
    WAIT_FOR(proc_children(new, workers, 3) == 2);
    for (int i = 0; i < 2 * _i; i++)
        proc_freeze(workers[i]);
    ck_assert_int_eq(kill(new, SIGKILL), 0);
    upgrade_wait_rollback(daemon);
    for (int i = 0; i < 10 * _i; i++) { /* time enough to fail */
        ck_assert(control_is_ok(control_ask(daemon, "status")));
        pause_briefly();
    }
    for (int i = 0; i < 2 * _i; i++)
        ck_assert_int_eq(kill(workers[i], SIGCONT), 0);
    WAIT_FOR(daemon_count_log(daemon, "it is bound again") == 2);
    WAIT_FOR(control_count(control_ask(daemon, "status"), "generations") == 1);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* Two masters end: the last master removes the paths. _i: the old one first, with a session until
 * the new one has ended; the new one first; both at once. */
START_TEST(the_last_master_removes_the_paths)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t old = daemon->pid, new, first;
    int session;

    session = client_open_unix(daemon_path(daemon, "socket"));
    client_echo(session, "the old one's");
    new = upgrade_start(daemon);
    first = _i == 1 ? new : old;
    if (_i == 2) {
        ck_assert_int_eq(kill(new, SIGSTOP), 0);
        ck_assert_int_eq(kill(new, SIGQUIT), 0);
    }
    ck_assert_int_eq(kill(first, SIGQUIT), 0);
    WAIT_FOR(_i == 1 ? proc_state(new) == 0 : proc_child_n(old) == 2);
    ck_assert_int_eq(kill(new, _i == 2 ? SIGCONT : SIGTERM), _i == 1 ? -1 : 0);
    WAIT_FOR(proc_state(new) == 0);
    if (_i == 1)
        daemon_signal(daemon, SIGQUIT);
    client_echo(session, "goes on");
    close(session);
    ck_assert_int_eq(proc_wait(old), 0);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon->pid = 0;
    daemon_finish(daemon);
}
END_TEST

/* The list of workers has all living workers: also of draining generations. */
START_TEST(the_list_of_workers_is_made_again)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 1; " ECHO);
    int sessions[2];
    char name[64];

    snprintf(name, sizeof(name), "forkbeard.pid.workers.%d", (int)daemon->pid);
    sessions[0] = client_open(daemon->ports[0]);
    client_echo(sessions[0], "begun");
    delete_file(daemon, name);
    daemon_expects(daemon, "of workers was deleted");
    ck_assert_int_eq(reload(daemon), 0);
    ck_assert(daemon_has(daemon, name));
    ck_assert_uint_eq(daemon_count_log(daemon, "of workers was deleted: it is made again"), 1);
    daemon_wait_log(daemon, "gracefully shutting down"); /* the old worker accepts no more */
    sessions[1] = client_open(daemon->ports[0]);
    client_echo(sessions[1], "begun");
    ck_assert_uint_eq(proc_child_n(daemon->pid), 2);
    daemon_expects(daemon, "the master process has gone");
    daemon_expects(daemon, "which was killed, still have sessions");
    daemon_signal(daemon, SIGKILL);
    ck_assert_int_eq(daemon_wait(daemon), 128 + SIGKILL);
    for (int i = 0; i < 2; i++)
        daemon_wait_log(daemon, "the master process has gone");
    daemon_start(daemon);
    ck_assert_uint_eq(daemon_count_log(daemon, "2 worker processes of master process"), 1);
    daemon_stop(daemon, SIGTERM);
    for (int i = 0; i < 2; i++) {
        client_expect_gone(sessions[i]);
        close(sessions[i]);
    }
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, the_lock_is_taken_again, 0, 2);
    tcase_add_test(tcase, the_pid_file_outlives_a_failed_reload);
    tcase_add_test(tcase, the_pid_file_is_written_again);
    tcase_add_test(tcase, the_list_of_workers_is_made_again);
    tcase_add_test(tcase, a_second_start_is_refused_without_the_lock);
    tcase_add_test(tcase, upgrades_without_the_lock);
    tcase_add_loop_test(tcase, a_path_is_bound_again, 0, 2);
    tcase_add_loop_test(tcase, a_path_that_is_anothers, 0, 2);
    tcase_add_test(tcase, a_failed_reload_leaves_no_path);
    tcase_add_loop_test(tcase, a_path_of_two_masters, 0, 2);
    tcase_add_loop_test(tcase, a_path_of_a_killed_master, 0, 2);
    tcase_add_loop_test(tcase, the_last_master_removes_the_paths, 0, 3);
}

TEST_MAIN("cleaner", add_tests)
