/* SPDX-License-Identifier: BSD-2-Clause */
/* `use io_uring` for an operator: where the kernel refuses the ring another mechanism serves, the
 * strict sandbox refuses the ring, and clients lose nothing by a reload, a killed worker, or a
 * close. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "event/mechanism.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING "events { use io_uring; worker_connections 64; io_uring_buffers 16; }\n"
#define ECHO "stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define MANY (8 * 1024 * 1024)

/* The process and all children get EPERM, as in many containers. */
static void refuse_rings(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1)
        _exit(1);
}

START_TEST(where_it_is_refused_another_serves)
{
    static const char *const masters[] = { "worker_processes 3;", "master_process off;" };
    struct daemon *daemon = daemon_create(1);
    const char *notice = "[notice]";

    daemon_configure(daemon, "%s\n" RING ECHO, masters[_i]);
    daemon->before_exec = refuse_rings;
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(
        daemon_count_log(daemon, "the kernel refuses \"io_uring\", \"epoll\" is used"), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "using the \"epoll\" event method"), 1);
    ck_assert_uint_gt(daemon_count_log(daemon, notice), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(strict_refuses_it)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "sandbox strict;\n" RING ECHO);
    daemon_expects(daemon, "\"sandbox strict\"");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err,
        "\"io_uring\" goes past the filter of system calls that \"sandbox strict\" demands"));
    ck_assert_ptr_null(strstr(strstr(daemon->err, "[emerg]") + 1, "[emerg]")); /* a single error */
    daemon_finish(daemon);
}
END_TEST

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 2654435761u >> 13);
}

/* Sends and receives so many bytes at once; every byte of the echo is compared. */
static void echo_many(int fd, size_t n)
{
    size_t sent = 0, received = 0;

    while (received < n) {
        struct pollfd state = { .fd = fd, .events = (short)(POLLIN | (sent < n ? POLLOUT : 0)) };
        uint8_t bytes[30011];
        ssize_t got;

        ck_assert_int_eq(poll(&state, 1, (int)patience_ms()), 1);
        if (state.revents & POLLOUT) {
            size_t part = n - sent < sizeof(bytes) ? n - sent : sizeof(bytes);

            for (size_t i = 0; i < part; i++)
                bytes[i] = byte_at(sent + i);
            got = send(fd, bytes, part, MSG_DONTWAIT | MSG_NOSIGNAL);
            ck_assert(got > 0 || errno == EAGAIN);
            sent += got > 0 ? (size_t)got : 0;
        }
        if (!(state.revents & POLLIN))
            continue;
        got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        ck_assert_int_gt(got, 0);
        for (size_t i = 0; i < (size_t)got; i++)
            test_require(bytes[i] == byte_at(received + i));
        received += (size_t)got;
    }
}

START_TEST(every_byte_comes_back_over_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 2;\n" RING ECHO);
    int fd = client_open(daemon->ports[0]);

    echo_many(fd, MANY);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "generation 2 serves");
    echo_many(fd, MANY / 8);
    shutdown(fd, SHUT_WR);
    client_expect_end(fd);
    close(fd);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* Receives up to the end; returns the number of bytes, all equal to `byte`. */
static size_t receive_all(int fd, char byte)
{
    char bytes[1000];
    ssize_t n;
    size_t sum = 0;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            test_require(bytes[i] == byte);
        sum += (size_t)n;
    }
    ck_assert_int_eq(n, 0);
    return sum;
}

/* The reply exceeds the kernel's buffer, and the session ends behind it. */
START_TEST(a_close_waits_for_its_output)
{
    static char text[48 * 1024];
    struct daemon *daemon = daemon_create(1);
    int small = 4096;

    memset(text, 'x', sizeof(text) - 1);
    daemon_configure(
        daemon, RING "stream { server { listen 127.0.0.1:$0 sndbuf=4k; return %s; } }\n", text);
    daemon_start(daemon);
    for (int i = 0; i < 4; i++) {
        int fd = client_open(daemon->ports[0]);

        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
        ck_assert_uint_eq(receive_all(fd, 'x'), sizeof(text) - 1);
        close(fd);
    }
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_killed_worker_takes_its_clients_alone)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 2;\n" RING ECHO);
    int fds[16], others = 0;
    pid_t victim, servers[16];

    for (int i = 0; i < 16; i++) {
        fds[i] = client_open(daemon->ports[0]);
        client_echo(fds[i], "here");
        servers[i] = proc_server_of(daemon->pid, fds[i]);
        others += servers[i] != servers[0];
    }
    victim = servers[0];
    /* the second worker may have had no processor yet */
    for (int64_t until = deadline_ms(); others == 0; others = servers[15] != victim) {
        ck_assert_int_lt(now_ms(), until);
        close(fds[15]);
        fds[15] = client_open(daemon->ports[0]);
        client_echo(fds[15], "here");
        servers[15] = proc_server_of(daemon->pid, fds[15]);
    }
    daemon_expects(daemon, "exited on signal 9");
    ck_assert_int_eq(kill(victim, SIGKILL), 0);
    daemon_wait_log(daemon, "exited on signal 9");
    for (int i = 0; i < 16; i++) {
        if (servers[i] == victim)
            client_expect_gone(fds[i]);
        else
            client_echo(fds[i], "still here");
        close(fds[i]);
    }
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The kernel holds the worker's end of the channel during the worker's wait for it. */
START_TEST(a_closed_channel_is_noticed_by_the_master)
{
    struct daemon *daemon =
        daemon_start_new(1, "load_module " MODULES_PATH "/rogue.so;\n" RING
                            "stream { server { listen 127.0.0.1:$0; rogue; } }\n");
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "it had closed the channel to the master");
    daemon_expects(daemon, "io_uring says that descriptor");
    daemon_expects(daemon, "the master process has gone");
    client_send(client, "C");
    daemon_wait_log(daemon, "it had closed the channel to the master");
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, where_it_is_refused_another_serves, 0, 2);
    tcase_add_test(tcase, strict_refuses_it);
    if (!mechanism_available(mechanism_find("io_uring")))
        return;
    tcase_add_test(tcase, every_byte_comes_back_over_a_reload);
    tcase_add_test(tcase, a_close_waits_for_its_output);
    tcase_add_test(tcase, a_killed_worker_takes_its_clients_alone);
    tcase_add_test(tcase, a_closed_channel_is_noticed_by_the_master);
}

TEST_MAIN("io_uring", add_tests)
