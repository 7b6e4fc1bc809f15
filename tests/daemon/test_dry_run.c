/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of a start found by -t: paths, addresses in use, users, processors. dry_run.test checks
 * for changes by -t. */
#include "daemon/client.h"
#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ECHO "events {}\nstream { server { listen 127.0.0.1:$0; echo; } }\n"
#define UNIX(name) "events {}\nstream { server { listen unix:$D/" name "; echo; } }\n"

#define NOBODY 65534

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgid(NOBODY) == -1 || setuid(NOBODY) == -1))
        _exit(123);
}

static int test(struct daemon *daemon)
{
    return daemon_run(daemon, "-tq", "-c", "forkbeard.conf", NULL);
}

static void expect_text(const struct daemon *daemon, const char *text)
{
    ck_assert_msg(strstr(daemon->err, text) != NULL, "\"%s\" is not in: %s", text, daemon->err);
}

static unsigned count_text(const char *all, const char *text)
{
    unsigned n = 0;

    while ((all = strstr(all, text)) != NULL) {
        all++;
        n++;
    }
    return n;
}

/* Mistakes visible to each user; there are a file "file", a directory "directory" and a socket
 * "socket". The text is behind "pid forkbeard.pid;" and "error_log error.log notice;", in line 3
 * on. */
static const struct {
    const char *conf, *says[3];
} mistakes[] = {
    { "error_log none/x.log;" ECHO,
        { "\"error_log\" cannot be \"", "none/x.log\": there is no directory \"",
            "none\" in /tmp/" } },
    { "\nerror_log file/x.log;\n" ECHO, { "file\" is not a directory in ", "conf:4:11\n" } },
    { "error_log directory;" ECHO, { "directory\" is a directory in " } },
    { "error_log socket;" ECHO, { "socket\" is a socket in " } },
    { "error_log dangling;" ECHO, { "there is no directory \"", "none\" in " } },
    { "working_directory none;" ECHO,
        { "\"working_directory\" cannot be \"", "there is no directory \"", "conf:3:19" } },
    { "working_directory file;" ECHO, { "file\" is not a directory in " } },
    { "control unix:none/x.sock;" ECHO, { "\"control\" cannot be \"", "there is no directory" } },
    { "control unix:file;" ECHO, { "file\": the path exists and is not a socket in " } },
    { UNIX("none/x"), { "\"listen\" cannot be \"", "there is no directory", "conf:4:26" } },
    { UNIX("file"), { "file\": the path exists and is not a socket in " } },
    { "control unix:$D/x;" UNIX("x"),
        { "\"listen\" has the path \"", "x\", already the path of \"control\" in ",
            "forkbeard.conf:3 in " } },
    { UNIX("forkbeard.sock"), { "\"listen\" has the path \"", "the default of \"control\" in " } },
    { UNIX("directory/../forkbeard.sock"), { "the default of \"control\" in " } },
    { "control unix:forkbeard.pid;" ECHO, { "already the path of \"pid\" in " } },
    { "control unix:error.log;" ECHO, { "already the path of \"error_log\" in " } },
    { "error_log forkbeard.pid;" ECHO, { "already the path of \"pid\" in " } },
    { UNIX("forkbeard.pid"), { "already the path of \"pid\" in " } },
};

static int listen_unix(const struct daemon *daemon, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    daemon_owns((struct daemon *)daemon, name);
    return fd;
}

/* A file, a directory, a socket that has gone, and a dangling link. */
static void add_obstacles(struct daemon *daemon)
{
    daemon_write(daemon, "file", "%s", "");
    ck_assert_int_eq(mkdir(daemon_path(daemon, "directory"), 0755), 0);
    daemon_owns(daemon, "directory");
    close(listen_unix(daemon, "socket"));
    ck_assert_int_eq(symlink("none/x", daemon_path(daemon, "dangling")), 0);
    daemon_owns(daemon, "dangling");
}

START_TEST(a_mistake_is_found_by_every_user)
{
    struct daemon *daemon = daemon_create(1);

    add_obstacles(daemon);
    daemon_configure(daemon, "%s", mistakes[_i].conf);
    for (int user = 0; user < 2; user++) {
        daemon->before_exec = user == 0 ? NULL : become_nobody;
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "[emerg]");
        for (int i = 0; i < 3 && mistakes[_i].says[i] != NULL; i++)
            expect_text(daemon, mistakes[_i].says[i]);
        ck_assert(!daemon_has(daemon, "error.log"));
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(all_are_shown_in_one_run)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "error_log none/x.log; working_directory none; control unix:none/x; bogus;\n%s"
        "worker_processes 0;",
        UNIX("none/y"));
    ck_assert_int_eq(test(daemon), 1);
    ck_assert_uint_eq(count_text(daemon->err, "there is no directory"), 4);
    expect_text(daemon, "unknown directive \"bogus\"");
    expect_text(daemon, "\"worker_processes\" directive");
    ck_assert_uint_eq(count_text(daemon->err, "^"), 6);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_single_process_has_no_control_socket)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "master_process off; control unix:none/x;" UNIX("forkbeard.sock"));
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon_finish(daemon);
}
END_TEST

/* With -p the defaults lie below the prefix. */
START_TEST(defaults_are_called_so)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(daemon, "main", ECHO);
    ck_assert_int_eq(daemon_run(daemon, "-tq", "-p", ".", "-c", "main", NULL), 1);
    expect_text(daemon, "/logs/error.log\", the default: there is no directory");
    expect_text(daemon, "/logs/forkbeard.pid\", the default: there is no directory");
    expect_text(daemon, "/logs/forkbeard.sock\", the default: there is no directory");
    ck_assert_uint_eq(count_text(daemon->err, "[emerg]"), 3);
    daemon_finish(daemon);
}
END_TEST

/* A lock that is no file is in the way of the pid file. */
START_TEST(a_pid_file_needs_its_lock)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ECHO);
    ck_assert_int_eq(mkdir(daemon_path(daemon, "forkbeard.pid.lock"), 0755), 0);
    ck_assert_int_eq(test(daemon), 1);
    expect_text(daemon, "forkbeard.pid.lock\" is not a regular file in ");
    ck_assert_int_eq(rmdir(daemon_path(daemon, "forkbeard.pid.lock")), 0);
    ck_assert_int_eq(mkdir(daemon_path(daemon, "forkbeard.pid"), 0755), 0);
    ck_assert_int_eq(test(daemon), 1);
    expect_text(daemon, "the path exists and is not a regular file in ");
    ck_assert_int_eq(rmdir(daemon_path(daemon, "forkbeard.pid")), 0);
    daemon_finish(daemon);
}
END_TEST

/* Only root can know root's rights. */
START_TEST(missing_rights_are_a_warning)
{
    struct daemon *daemon = daemon_create(1);

    if (geteuid() != 0) {
        daemon_finish(daemon);
        return;
    }
    daemon_configure(daemon, UNIX("x"));
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon->before_exec = become_nobody;
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_uint_eq(count_text(daemon->err, "[warn]"), 4);
    ck_assert_uint_eq(
        count_text(daemon->err, "\" cannot be written to (13: Permission denied)"), 4);
    ck_assert_uint_eq(count_text(daemon->err, ", unless root starts the daemon: "), 4);
    daemon_finish(daemon);
}
END_TEST

/* A log refused only at a start by root. */
START_TEST(root_follows_no_link_of_another)
{
    struct daemon *daemon = daemon_create(1);
    const char *path = daemon_path(daemon, "link");

    if (geteuid() == 0) {
        ck_assert_int_eq(symlink("error.log", path), 0);
        ck_assert_int_eq(lchown(path, NOBODY, NOBODY), 0);
        daemon_owns(daemon, "link");
        daemon_configure(daemon, "error_log link;" ECHO);
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "link\" is a symbolic link of another user");
        ck_assert_int_eq(lchown(daemon_path(daemon, "link"), 0, 0), 0);
        ck_assert_int_eq(test(daemon), 0);
    }
    daemon_finish(daemon);
}
END_TEST

/* Names that whoever may write to a directory has laid for a file of root's. */
START_TEST(root_writes_to_no_file_with_another_name)
{
    struct daemon *daemon = daemon_create(1);

    if (geteuid() == 0) {
        char path[128];

        snprintf(path, sizeof(path), "%s", daemon_path(daemon, "precious"));
        daemon_write(daemon, "precious", "text");
        daemon_configure(daemon, "error_log link;" ECHO);
        ck_assert_int_eq(link(path, daemon_path(daemon, "link")), 0);
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "link\" has another name (a hard link), and root does not write to it");
        ck_assert_int_eq(unlink(daemon_path(daemon, "link")), 0);
        ck_assert_int_eq(link(path, daemon_path(daemon, "forkbeard.pid.lock")), 0);
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "forkbeard.pid.lock\" has another name (a hard link)");
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(chown(daemon_path(daemon, "forkbeard.pid.lock"), NOBODY, NOBODY), 0);
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "forkbeard.pid.lock\" belongs to another user");
        ck_assert_int_eq(unlink(daemon_path(daemon, "forkbeard.pid.lock")), 0);
        ck_assert_int_eq(test(daemon), 0);
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(users_that_are_missing)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "user no_such_user_ no_such_group_;" ECHO);
    if (geteuid() == 0) {
        ck_assert_int_eq(test(daemon), 1);
        expect_text(daemon, "there is no such user in ");
    }
    daemon->before_exec = become_nobody;
    ck_assert_int_eq(test(daemon), 0);
    expect_text(daemon,
        "[warn] there is no user \"no_such_user_\", or no group \"no_such_group_\": root could not "
        "start the daemon in ");
    daemon_configure(daemon, "user no_such_user_;" ECHO);
    ck_assert_int_eq(test(daemon), 0);
    expect_text(daemon, "[warn] there is no user \"no_such_user_\": root could not start");
    daemon_finish(daemon);
}
END_TEST

/* Hardly a machine has so many. */
START_TEST(processors_that_are_missing)
{
    char masks[2][800], why[] = "processor 700 is not there, or may not be used in ";
    struct daemon *daemon = daemon_create(1);

    for (int i = 0; i < 2; i++) {
        memset(masks[i], '0', sizeof(masks[i]));
        masks[i][0] = '1';
        masks[i][701] = '\0';
    }
    masks[1][700] = '1'; /* and the first */
    daemon_configure(daemon, "worker_cpu_affinity 1;" ECHO);
    daemon_start(daemon);
    daemon_configure(daemon, "worker_cpu_affinity %s;" ECHO, masks[0]);
    ck_assert_int_eq(test(daemon), 1);
    expect_text(daemon, why);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 1);
    expect_text(daemon, why);
    daemon_expects(daemon, why);
    client_echo(client_open(daemon->ports[0]), "hello");
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 1);
    expect_text(daemon, why);

    /* a sufficient mask, and masks without a worker */
    daemon_configure(daemon, "worker_cpu_affinity %s;" ECHO, masks[1]);
    ck_assert_int_eq(test(daemon), 0);
    expect_text(daemon, "[warn]");
    expect_text(daemon, why);
    daemon_configure(daemon, "worker_cpu_affinity 1 %s;" ECHO, masks[0]);
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon_configure(daemon, "worker_cpu_affinity auto %s;" ECHO, masks[0]);
    ck_assert_int_eq(test(daemon), 1);
    daemon_finish(daemon);
}
END_TEST

/* Another process, which is this one, listens. */
START_TEST(addresses_in_use)
{
    struct daemon *daemon = daemon_create(2);
    char expected[256];
    int fd;

    daemon_configure(daemon, "%s",
        "events {}\nstream { server { listen 127.0.0.1:$0; listen 127.0.0.1:$1;\n"
        "listen [::]:$0 ipv6only=off; listen unix:$D/taken; echo; } }\n");
    ck_assert_int_eq(listen(daemon->reservations[0], 1), 0);
    fd = listen_unix(daemon, "taken");
    ck_assert_int_eq(test(daemon), 0);
    snprintf(expected, sizeof(expected),
        "[warn] bind() to 127.0.0.1:%u would fail: [::]:%u is in use by process %d (",
        daemon->ports[0], daemon->ports[0], (int)getpid());
    expect_text(daemon, expected);
    expect_text(daemon, "), unless the socket has IPV6_V6ONLY in ");
    expect_text(daemon, ":4:26\n");
    snprintf(expected, sizeof(expected), "bind() to [::]:%u would fail: [::]:", daemon->ports[0]);
    expect_text(daemon, expected);
    snprintf(expected, sizeof(expected), "taken is in use by process %d (", (int)getpid());
    expect_text(daemon, expected);
    ck_assert_uint_eq(count_text(daemon->err, "in use"), 3);
    if (geteuid() == 0) {
        daemon->before_exec = become_nobody;
        ck_assert_int_eq(test(daemon), 0);
        expect_text(daemon, "is in use by a process hidden from this user");
    }
    close(fd);
    daemon_finish(daemon);
}
END_TEST

/* Before a reload the daemon's own addresses are in use, as they should be; for a second daemon the
 * addresses are in the way, and so is the control socket. */
START_TEST(addresses_of_our_daemon)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "worker_processes 2;"
                             "events {} stream { server { listen 127.0.0.1:$0 reuseport;"
                             "listen unix:$D/socket; echo; } }");
    daemon_start(daemon);
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon->before_exec = become_nobody;
    ck_assert_int_eq(test(daemon), 0);
    ck_assert_ptr_null(strstr(daemon->err, "in use"));
    daemon->before_exec = NULL;
    daemon_write(daemon, "other.conf",
        "pid other.pid; error_log stderr; control unix:forkbeard.sock;"
        "events {} stream { server { listen $0; listen unix:$D/socket; echo; } }");
    ck_assert_int_eq(daemon_run(daemon, "-tq", "-c", "other.conf", NULL), 0);
    ck_assert_uint_eq(count_text(daemon->err, "[warn] bind() to "), 2);
    expect_text(daemon, "[warn] the control socket could not be made: unix:");
    ck_assert_uint_eq(count_text(daemon->err, "in use by process "), 3);
    daemon_finish(daemon);
}
END_TEST

/* The service manager starts the process, and may have stored or may pass the used sockets. */
static void become_managed(void)
{
    char pid[16];

    become_nobody();
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("SYSTEMD_EXEC_PID", pid, 1);
}

START_TEST(the_service_manager_may_pass_what_is_in_use)
{
    struct daemon *daemon = daemon_create(1);

    if (geteuid() == 0 && !is_wrapped()) {
        daemon_configure(daemon, ECHO);
        ck_assert_int_eq(listen(daemon->reservations[0], 1), 0);
        daemon->before_exec = become_managed;
        ck_assert_int_eq(test(daemon), 0);
        ck_assert_ptr_null(strstr(daemon->err, "in use"));
    }
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(
        tcase, a_mistake_is_found_by_every_user, 0, (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_test(tcase, all_are_shown_in_one_run);
    tcase_add_test(tcase, a_single_process_has_no_control_socket);
    tcase_add_test(tcase, defaults_are_called_so);
    tcase_add_test(tcase, a_pid_file_needs_its_lock);
    tcase_add_test(tcase, missing_rights_are_a_warning);
    tcase_add_test(tcase, root_follows_no_link_of_another);
    tcase_add_test(tcase, root_writes_to_no_file_with_another_name);
    tcase_add_test(tcase, users_that_are_missing);
    tcase_add_test(tcase, processors_that_are_missing);
    tcase_add_test(tcase, addresses_in_use);
    tcase_add_test(tcase, addresses_of_our_daemon);
    tcase_add_test(tcase, the_service_manager_may_pass_what_is_in_use);
}

TEST_MAIN("dry_run", add_tests)
