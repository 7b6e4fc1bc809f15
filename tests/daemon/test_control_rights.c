/* SPDX-License-Identifier: BSD-2-Clause */
/* The control sockets with a group: who may ask, over reloads and an upgrade. Run by root alone. */
#include "daemon/control.h"
#include "daemon/proc.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define NOBODY 65534
#define OPERATOR 47001 /* a user that exists nowhere, and the user's group */
#define OPERATORS 47002
#define OTHERS 47003

/* Asks with another user, group and further group. Returns 0, or the errno of connect(), and the
 * first bytes of the reply. */
static int ask_as(const struct daemon *daemon, const char *name, uid_t user, gid_t group,
    gid_t further, const char *command, char reply[256])
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int ends[2], code;
    pid_t pid;
    ssize_t n;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, name));
    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (setgroups(1, &further) == -1 || setgid(group) == -1 || setuid(user) == -1)
            _exit(123);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == -1)
            _exit(errno);
        snprintf(reply, 256, "{\"command\":\"%s\"}\n", command);
        send(fd, reply, strlen(reply), MSG_NOSIGNAL); /* who is refused is so at once */
        n = recv(fd, reply, 255, 0);
        _exit(n > 0 && write(ends[1], reply, (size_t)n) == n ? 0 : 124);
    }
    close(ends[1]);
    code = proc_wait(pid);
    n = read(ends[0], reply, 255);
    ck_assert_int_ge(n, 0);
    reply[n] = '\0';
    close(ends[0]);
    return code;
}

static bool may_ask(const struct daemon *daemon, gid_t group, gid_t further)
{
    char reply[256];
    int code = ask_as(daemon, "forkbeard.sock", OPERATOR, group, further, "status", reply);

    ck_assert(code == 0 || code == EACCES);
    return code == 0 && strncmp(reply, "{\"ok\":true", 10) == 0;
}

static void check_file(const struct daemon *daemon, const char *name, unsigned mode, gid_t group)
{
    struct stat st;

    ck_assert_int_eq(lstat(daemon_path(daemon, name), &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 07777, mode);
    ck_assert_uint_eq(st.st_gid, group);
}

START_TEST(a_group_may_ask)
{
    struct daemon *daemon = daemon_start_new(1, "control unix:forkbeard.sock group=47002; " ECHO);
    char reply[256];

    check_file(daemon, "forkbeard.sock", 0660, OPERATORS);
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));
    ck_assert(may_ask(daemon, OPERATORS, OPERATOR));
    ck_assert(!may_ask(daemon, OPERATOR, OTHERS));
    ck_assert_int_eq(
        ask_as(daemon, "forkbeard.sock", OPERATOR, OPERATOR, OPERATORS, "reload", reply), 0);
    ck_assert_msg(strncmp(reply, "{\"ok\":true", 10) == 0, "%s", reply);

    ck_assert_int_eq(chmod(daemon_path(daemon, "forkbeard.sock"), 0666), 0);
    ck_assert_int_eq(
        ask_as(daemon, "forkbeard.sock", OPERATOR, OPERATOR, OTHERS, "status", reply), 0);
    ck_assert_str_eq(reply, "{\"ok\":false,\"error\":\"permission denied: only root, the daemon's "
                            "own user and the socket's group may ask\"}\n");
    daemon_finish(daemon);
}
END_TEST

/* Not even with the group. */
START_TEST(the_workers_user_may_not_ask)
{
    struct daemon *daemon =
        daemon_start_new(1, "user nobody; control unix:forkbeard.sock group=47002; " ECHO);
    char reply[256];

    ck_assert_int_eq(ask_as(daemon, "forkbeard.sock", NOBODY, NOBODY, OPERATORS, "stop", reply), 0);
    ck_assert_str_eq(reply, "{\"ok\":false,\"error\":\"permission denied: the client has the user "
                            "of the workers\"}\n");
    daemon_wait_log(daemon, " of user 65534 may not use the control socket, refused");
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_reload_changes_the_group)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);

    ck_assert(!may_ask(daemon, OPERATOR, OPERATORS));
    daemon_configure(daemon, "control unix:forkbeard.sock group=47002; " ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    check_file(daemon, "forkbeard.sock", 0660, OPERATORS);
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));

    daemon_configure(daemon, "control unix:forkbeard.sock group=47003; " ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    ck_assert(!may_ask(daemon, OPERATOR, OPERATORS));
    ck_assert(may_ask(daemon, OPERATOR, OTHERS));

    daemon_configure(daemon, ECHO "bogus;");
    ck_assert(!control_is_ok(control_ask(daemon, "reload")));
    ck_assert(may_ask(daemon, OPERATOR, OTHERS));

    daemon_configure(daemon, ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    check_file(daemon, "forkbeard.sock", 0600, getegid());
    ck_assert(!may_ask(daemon, OPERATOR, OTHERS));
    daemon_expects(daemon, "bogus");
    daemon_finish(daemon);
}
END_TEST

START_TEST(both_masters_have_the_group)
{
    struct daemon *daemon = daemon_start_new(1, "control unix:forkbeard.sock group=47002; " ECHO);
    char reply[256];

    ck_assert(control_is_ok(control_ask(daemon, "upgrade")));
    check_file(daemon, "forkbeard.sock", 0660, OPERATORS);
    check_file(daemon, "forkbeard.sock.oldbin", 0660, OPERATORS);
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));
    ck_assert_int_eq(
        ask_as(daemon, "forkbeard.sock", OPERATOR, OPERATORS, OPERATOR, "quit", reply), 0);
    ck_assert_msg(strncmp(reply, "{\"ok\":true", 10) == 0, "%s", reply);
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock.oldbin")); /* the old master has its path again */
    check_file(daemon, "forkbeard.sock", 0660, OPERATORS);
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));
    daemon_finish(daemon);
}
END_TEST

#define READ_ONLY "{\"ok\":false,\"error\":\"this socket is for reading alone: "

static void check_reading(const struct daemon *daemon, const char *name)
{
    char reply[256];

    check_file(daemon, name, 0660, OTHERS);
    ck_assert_int_eq(ask_as(daemon, name, OPERATOR, OTHERS, OPERATOR, "status", reply), 0);
    ck_assert_msg(strncmp(reply, "{\"ok\":true", 10) == 0, "%s", reply);
    ck_assert_int_eq(ask_as(daemon, name, OPERATOR, OTHERS, OPERATOR, "stop", reply), 0);
    ck_assert_int_eq(strncmp(reply, READ_ONLY, strlen(READ_ONLY)), 0);
    ck_assert_int_eq(ask_as(daemon, name, 0, 0, 0, "stop", reply), 0);
    ck_assert_int_eq(strncmp(reply, READ_ONLY, strlen(READ_ONLY)), 0);
    ck_assert_int_eq(ask_as(daemon, name, OPERATOR, OPERATORS, OPERATOR, "status", reply), EACCES);
}

/* For one group beside the socket of another, over a reload and an upgrade, until the end. */
START_TEST(a_socket_for_reading)
{
    struct daemon *daemon =
        daemon_start_new(1, "user nobody; control unix:forkbeard.sock group=47002; control_read "
                            "unix:read.sock group=47003; " ECHO);
    char reply[256];

    check_reading(daemon, "read.sock");
    ck_assert(may_ask(daemon, OPERATOR, OPERATORS));
    ck_assert(!may_ask(daemon, OPERATOR, OTHERS));
    ck_assert_int_eq(ask_as(daemon, "read.sock", NOBODY, OTHERS, OTHERS, "status", reply), 0);
    ck_assert_ptr_nonnull(strstr(reply, "the client has the user of the workers"));
    ck_assert_int_eq(daemon_run(daemon, "status", "--control", "read.sock", NULL), 0);

    ck_assert(control_is_ok(control_ask(daemon, "upgrade")));
    check_reading(daemon, "read.sock");
    check_reading(daemon, "read.sock.oldbin");
    ck_assert(control_is_ok(control_ask(daemon, "quit")));
    WAIT_FOR(!daemon_has(daemon, "read.sock.oldbin"));
    WAIT_FOR(!daemon_has(daemon, "forkbeard.sock.oldbin"));
    check_reading(daemon, "read.sock");

    daemon_configure(daemon, "user nobody; control_read unix:moved.sock group=47003; " ECHO);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    WAIT_FOR(!daemon_has(daemon, "read.sock"));
    check_reading(daemon, "moved.sock");
    daemon_stop(daemon, SIGQUIT);
    ck_assert(!daemon_has(daemon, "moved.sock") && !daemon_has(daemon, "forkbeard.sock"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (geteuid() != 0)
        return;
    tcase_add_test(tcase, a_group_may_ask);
    tcase_add_test(tcase, the_workers_user_may_not_ask);
    tcase_add_test(tcase, a_reload_changes_the_group);
    tcase_add_test(tcase, both_masters_have_the_group);
    tcase_add_test(tcase, a_socket_for_reading);
}

TEST_MAIN("control_rights", add_tests)
