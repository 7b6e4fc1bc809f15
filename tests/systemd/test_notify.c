/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to a service manager, received by the manager alone. */
#include "systemd/notify.h"

#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager's socket, without a file, and a log into memory. */
struct fixture {
    int fd;
    char name[64];
    char text[8192]; /* the latest message */
    int sent;        /* the descriptor passed with the message, or -1 */
    struct log log;
    struct log_target target;
};

static void set_up(struct fixture *fixture)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t length = sizeof(sa_family_t);

    fixture->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(fixture->fd, -1);
    ck_assert_int_eq(bind(fixture->fd, (struct sockaddr *)&address, length), 0); /* any name */
    length = sizeof(address);
    ck_assert_int_eq(getsockname(fixture->fd, (struct sockaddr *)&address, &length), 0);
    snprintf(fixture->name, sizeof(fixture->name), "@%.*s",
        (int)(length - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
    fixture->target =
        (struct log_target) { .fd = memfd_create("log", MFD_CLOEXEC), .level = LEVEL_INFO };
    log_init(&fixture->log, &fixture->target, 1);
    fixture->log.plain = "t";
}

/* Sets the environment as systemd does. */
static void start_notify(struct fixture *fixture, const char *interval, pid_t pid)
{
    char text[32];

    set_up(fixture);
    snprintf(text, sizeof(text), "%d", (int)pid);
    setenv("NOTIFY_SOCKET", fixture->name, 1);
    if (interval != NULL) {
        setenv("WATCHDOG_USEC", interval, 1);
        setenv("WATCHDOG_PID", text, 1);
    }
    notify_init(getpid(), &fixture->log);
}

static const char *receive_message(struct fixture *fixture)
{
    struct iovec piece = { fixture->text, sizeof(fixture->text) - 1 };
    char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = { .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control) };
    ssize_t n = recvmsg(fixture->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);

    ck_assert_int_ge(n, 0);
    fixture->text[n] = '\0';
    fixture->sent = -1;
    if (c != NULL)
        memcpy(&fixture->sent, CMSG_DATA(c), sizeof(fixture->sent));
    return fixture->text;
}

static void tear_down(struct fixture *fixture)
{
    struct stat st;
    char byte;

    ck_assert_int_eq(recv(fixture->fd, &byte, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(fstat(fixture->target.fd, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    close(fixture->target.fd);
    close(fixture->fd);
}

static void check_environment(void)
{
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    ck_assert_ptr_null(getenv("WATCHDOG_PID"));
}

START_TEST(each_message_is_as_the_protocol_has_it)
{
    struct fixture f;

    start_notify(&f, NULL, 0);
    ck_assert(notify_is_on());
    notify_tell(&f.log, NOTIFY_READY);
    ck_assert_str_eq(receive_message(&f), "READY=1");
    notify_tell(&f.log, NOTIFY_STOPPING);
    ck_assert_str_eq(receive_message(&f), "STOPPING=1");
    notify_tell(&f.log, NOTIFY_ALIVE);
    ck_assert_str_eq(receive_message(&f), "WATCHDOG=1");
    notify_mainpid(&f.log, 4711);
    ck_assert_str_eq(receive_message(&f), "MAINPID=4711");
    notify_status(&f.log, "a status");
    ck_assert_str_eq(receive_message(&f), "STATUS=a status");
    notify_reloading(&f.log, &(struct timespec) { .tv_sec = 3, .tv_nsec = 4567890 });
    ck_assert_str_eq(receive_message(&f), "RELOADING=1\nMONOTONIC_USEC=3004567");
    ck_assert_int_eq(notify_store(&f.log, "name", -1), 0);
    ck_assert_str_eq(receive_message(&f), "FDSTOREREMOVE=1\nFDNAME=name");
    ck_assert_int_eq(f.sent, -1);
    tear_down(&f);
}
END_TEST

START_TEST(a_descriptor_is_sent)
{
    struct stat ours, theirs;
    struct fixture f;

    start_notify(&f, NULL, 0);
    ck_assert_int_eq(notify_store(&f.log, "name", f.fd), 0);
    ck_assert_str_eq(receive_message(&f), "FDSTORE=1\nFDPOLL=0\nFDNAME=name");
    ck_assert_int_ne(f.sent, -1);
    ck_assert_int_eq(fstat(f.fd, &ours), 0);
    ck_assert_int_eq(fstat(f.sent, &theirs), 0);
    ck_assert_uint_eq(ours.st_ino, theirs.st_ino);
    close(f.sent);
    tear_down(&f);
}
END_TEST

/* The manager is given a line of valid characters, for any bytes of a configuration; the manager
 * would reject anything else. */
START_TEST(a_status_is_one_line_of_characters)
{
    char text[2 * NOTIFY_STATUS_MAX + 1];
    struct fixture f;
    size_t n;

    start_notify(&f, NULL, 0);
    notify_status(&f.log, "a\nb\tc\x7f \xff\xc3 \xc3\xa4 \xe2\x82\xac\xe2\x82");
    ck_assert_str_eq(receive_message(&f), "STATUS=a?b?c? ?? \xc3\xa4 \xe2\x82\xac??");
    for (n = 0; n < 2 * NOTIFY_STATUS_MAX; n += 2)
        memcpy(text + n, "\xc3\xa4", 3);
    notify_status(&f.log, text);
    n = strlen(receive_message(&f));
    ck_assert_uint_le(n, strlen("STATUS=") + NOTIFY_STATUS_MAX);
    ck_assert_uint_gt(n, NOTIFY_STATUS_MAX);
    ck_assert_str_eq(f.text + n - 2, "\xc3\xa4");
    tear_down(&f);
}
END_TEST

START_TEST(nobody_inherits_the_manager)
{
    struct fixture f;

    start_notify(&f, "3000000", getpid());
    check_environment();
    notify_tell(&f.log, NOTIFY_READY);
    ck_assert_str_eq(receive_message(&f), "READY=1");
    check_environment();
    tear_down(&f);
}
END_TEST

/* a successor is told, whatever its pid */
START_TEST(it_is_handed_on)
{
    char *variables[NOTIFY_VARIABLES];
    struct fixture f;

    start_notify(&f, "3000000", getpid());
    notify_hand_on(variables);
    ck_assert_int_eq(strncmp(variables[0], "NOTIFY_SOCKET=", 14), 0);
    ck_assert_str_eq(variables[0] + 14, f.name);
    ck_assert_str_eq(variables[1], "WATCHDOG_USEC=3000000");
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", variables[0] + 14, 1), 0);
    ck_assert_int_eq(setenv("WATCHDOG_USEC", variables[1] + 14, 1), 0);
    notify_init(getpid(), &f.log);
    ck_assert_uint_eq(notify_interval(), 3000);
    check_environment();
    tear_down(&f);
}
END_TEST

START_TEST(the_watchdog_is_for_one_process)
{
    struct fixture f;

    start_notify(&f, "3000000", _i == 0 ? getpid() : getppid());
    ck_assert_uint_eq(notify_interval(), _i == 0 ? 3000 : 0);
    check_environment();
    tear_down(&f);
}
END_TEST

START_TEST(without_a_manager_nothing_is_said)
{
    char *variables[NOTIFY_VARIABLES];
    struct fixture f;

    set_up(&f);
    if (_i == 1)
        setenv("NOTIFY_SOCKET", "", 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    notify_init(getpid(), &f.log);
    ck_assert(!notify_is_on());
    ck_assert_uint_eq(notify_interval(), 0);
    notify_tell(&f.log, NOTIFY_READY);
    notify_status(&f.log, "text");
    ck_assert_int_eq(notify_store(&f.log, "name", f.fd), -1);
    notify_hand_on(variables);
    ck_assert_ptr_null(variables[0]);
    check_environment();
    tear_down(&f);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_message_is_as_the_protocol_has_it);
    tcase_add_test(tcase, a_descriptor_is_sent);
    tcase_add_test(tcase, a_status_is_one_line_of_characters);
    tcase_add_test(tcase, nobody_inherits_the_manager);
    tcase_add_test(tcase, it_is_handed_on);
    tcase_add_loop_test(tcase, the_watchdog_is_for_one_process, 0, 2);
    tcase_add_loop_test(tcase, without_a_manager_nothing_is_said, 0, 2);
}

TEST_MAIN("notify", add_tests)
