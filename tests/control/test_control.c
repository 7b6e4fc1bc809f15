/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket's clients, with the test as their host. The test sets the time. */
#include "base/event_log.h"
#include "control/host.h"
#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_status_names_generations_and_workers)
{
    struct host host;
    const char *reply;
    int fd;

    set_up(&host);
    host.generation->process_n = 1;
    host.generation->workers[0].pid = 42;
    host.generation->workers[0].phase = POOL_WORKER_READY;
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"status\"}\n");
    reply = received(fd);
    ck_assert_ptr_nonnull(strstr(reply, "{\"ok\":true,\"version\":"));
    ck_assert_ptr_nonnull(strstr(reply, "\"number\":7,\"state\":\"live\""));
    ck_assert_ptr_nonnull(strstr(reply, "{\"pid\":42,\"slot\":0,\"state\":\"ready\""));
    ck_assert_ptr_nonnull(strstr(reply, "{\"state\":\"waiting\",\"restarts\":0}"));
    ck_assert_ptr_nonnull(strstr(reply,
        ",\"metrics\":[{\"protocol\":\"counts\",\"name\":\"hits\",\"kind\":\"counter\",\"total\":"
        "9223372036854775807},{\"protocol\":\"counts\",\"name\":\"users\",\"kind\":\"gauge\","
        "\"total\":-2}]}"));
    close(fd);
    tear_down(&host);
}
END_TEST

START_TEST(a_reload_is_replied_to_at_its_end)
{
    struct control_outcome outcome = { .ok = false, .error = "why", .generation = 3 };
    struct host host;
    int fd;

    set_up(&host);
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"reload\"}\n");
    ck_assert_int_eq(host.taken, COMMAND_RELOAD);
    control_wait_on(&host.control, CONTROL_WAIT_RELOAD, CONTROL_WAIT_RELOAD_END);
    host.clock.mono_ms += 3600 * 1000; /* a waiting client is not cut off */
    timers_run(&host.timers);
    ck_assert_str_eq(received(fd), "");
    control_reply(&host.control, CONTROL_WAIT_RELOAD_END, &outcome);
    ck_assert_str_eq(
        received(fd), "{\"ok\":false,\"error\":\"why\",\"generation\":3,\"messages\":[]}\n");
    ck_assert_uint_eq(host.control.client_n, 1); /* the client may ask again */
    close(fd);
    control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, 0);
    tear_down(&host);
}
END_TEST

START_TEST(a_refused_command_is_not_given)
{
    struct host host;
    int fd;

    set_up(&host);
    host.refusal = "the daemon is ending";
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"upgrade\"}\n");
    ck_assert_int_eq(host.taken, COMMAND_NONE);
    ck_assert_str_eq(received(fd), "{\"ok\":false,\"error\":\"the daemon is ending\"}\n");
    close(fd);
    tear_down(&host);
}
END_TEST

START_TEST(slow_clients_are_cut_off)
{
    struct host host;
    int silent, slow;

    set_up(&host);
    silent = connect_client(&host);
    slow = connect_client(&host);
    control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, 2);
    host.clock.mono_ms += 29999;
    timers_run(&host.timers);
    ck_assert_uint_eq(host.control.client_n, 2);
    send_text(&host, slow, "nonsense\n");
    host.clock.mono_ms += 1;
    timers_run(&host.timers);
    ck_assert_uint_eq(host.control.client_n, 1); /* the second has asked, and has time again */
    host.clock.mono_ms += 30000;
    timers_run(&host.timers);
    ck_assert_uint_eq(host.control.client_n, 0);
    close(silent);
    close(slow);
    tear_down(&host);
}
END_TEST

#define CLIENTS_MAX 32
#define WAITING_MAX 16
#define REPLACED "{\"ok\":false,\"error\":\"closed, for a new client: too many are connected\"}\n"

static void open_clients(struct host *host, int *fds, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        fds[i] = connect_client(host);
        send_text(host, fds[i], text);
    }
}

static void close_clients(const int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
}

static void check_served(struct host *host)
{
    int fd = connect_client(host);

    send_text(host, fd, "{\"command\":\"status\"}\n");
    ck_assert_int_eq(strncmp(received(fd), "{\"ok\":true,", 11), 0);
    close(fd);
}

/* Clients with nothing sent, or a part of a request. */
START_TEST(idle_clients_give_way)
{
    struct host host;
    int idle[CLIENTS_MAX];

    set_up(&host);
    open_clients(&host, idle, CLIENTS_MAX, _i == 0 ? "" : "{\"comm");
    ck_assert_uint_eq(host.control.client_n, CLIENTS_MAX);
    send_text(&host, idle[0], _i == 0 ? "{\"command\":\"status\"}\n" : "and\":\"status\"}\n");
    ck_assert_int_eq(strncmp(received(idle[0]), "{\"ok\":true,", 11), 0);
    check_served(&host);
    ck_assert_str_eq(received(idle[1]), REPLACED); /* the longest idle one */
    ck_assert_int_eq(recv(idle[1], &(char) { 0 }, 1, MSG_DONTWAIT), 0);
    ck_assert_str_eq(received(idle[0]), "");
    ck_assert_str_eq(received(idle[2]), "");
    for (int i = 0; i < 3 * CLIENTS_MAX; i++)
        check_served(&host);
    close_clients(idle, CLIENTS_MAX);
    tear_down(&host);
}
END_TEST

/* A request that has arrived with a new client is carried out first. */
START_TEST(a_client_with_a_request_is_not_idle)
{
    static const char request[] = "{\"command\":\"status\"}\n";
    struct host host;
    int idle[CLIENTS_MAX], fd;

    set_up(&host);
    open_clients(&host, idle, CLIENTS_MAX, "");
    ck_assert_int_eq(send(idle[0], request, strlen(request), 0), (int)strlen(request));
    fd = connect_client(&host);
    control_serve(&host.control);
    ck_assert_int_eq(strncmp(received(idle[0]), "{\"ok\":true,", 11), 0);
    ck_assert_str_eq(received(idle[1]), REPLACED);
    close(fd);
    close_clients(idle, CLIENTS_MAX);
    tear_down(&host);
}
END_TEST

/* Clients that read no replies block nobody. */
START_TEST(clients_that_do_not_read_give_way)
{
    struct host host;
    int slow[CLIENTS_MAX];

    set_up(&host);
    open_clients(&host, slow, CLIENTS_MAX, "");
    for (int i = 0; i < CLIENTS_MAX; i++)
        while (send(slow[i], "?\n?\n?\n?\n", 8, MSG_DONTWAIT) == 8)
            control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, CLIENTS_MAX);
    for (int i = 0; i < 2 * CLIENTS_MAX; i++)
        check_served(&host);
    close_clients(slow, CLIENTS_MAX);
    tear_down(&host);
}
END_TEST

/* The next client is refused, while the rest are served; each gets the outcome. */
START_TEST(waiting_clients_stay)
{
    struct control_outcome outcome = { .ok = true, .generation = 3 };
    int waiting[WAITING_MAX], idle[CLIENTS_MAX], late;
    struct host host;

    set_up(&host);
    open_clients(&host, waiting, WAITING_MAX, "{\"command\":\"reload\"}\n");
    open_clients(&host, &late, 1, "{\"command\":\"reopen\"}\n");
    ck_assert_ptr_nonnull(strstr(received(late), "too many clients wait for an outcome, try"));
    ck_assert_int_eq(host.taken, COMMAND_RELOAD);
    open_clients(&host, idle, CLIENTS_MAX, "");
    for (int i = 0; i < CLIENTS_MAX; i++)
        check_served(&host);
    control_reply(&host.control, CONTROL_WAIT_RELOAD, &outcome);
    for (int i = 0; i < WAITING_MAX; i++)
        ck_assert_int_eq(strncmp(received(waiting[i]), "{\"ok\":true,\"generation\":3", 25), 0);
    close(late);
    close_clients(waiting, WAITING_MAX);
    close_clients(idle, CLIENTS_MAX);
    tear_down(&host);
}
END_TEST

/* A client's command to end the daemon is obeyed, even without room for further waiting clients. */
START_TEST(any_number_may_end_the_daemon)
{
    struct host host;
    int quit[3 * CLIENTS_MAX];

    set_up(&host);
    for (int i = 0; i < 3 * CLIENTS_MAX; i++) {
        host.taken = COMMAND_NONE;
        open_clients(&host, &quit[i], 1, "{\"command\":\"stop\"}\n");
        ck_assert_int_eq(host.taken, COMMAND_TERMINATE);
        ck_assert_str_eq(received(quit[i]), "{\"ok\":true}\n");
    }
    ck_assert_uint_le(host.control.client_n, CLIENTS_MAX);
    close_clients(quit, 3 * CLIENTS_MAX);
    tear_down(&host);
}
END_TEST

START_TEST(whoever_ends_the_daemon_stays_connected)
{
    struct host host;
    int fd;

    set_up(&host);
    fd = connect_client(&host);
    send_text(&host, fd, _i == 0 ? "{\"command\":\"quit\"}\n" : "{\"command\":\"stop\"}\n");
    ck_assert_int_eq(host.taken, _i == 0 ? COMMAND_QUIT : COMMAND_TERMINATE);
    control_reply(&host.control, CONTROL_WAIT_QUIT, &(struct control_outcome) { .ok = true });
    ck_assert_str_eq(received(fd), "{\"ok\":true}\n");
    tear_down(&host);
    ck_assert_int_eq(recv(fd, &(char) { 0 }, 1, MSG_DONTWAIT), -1); /* no end of file */
    close(fd);
}
END_TEST

START_TEST(a_socket_in_use_is_not_replaced)
{
    struct control_settings settings = { .rights.mode = 0600 };
    struct control_socket second;
    struct host host;

    set_up(&host);
    settings.path = host.path;
    control_socket_init(&second);
    ck_assert_int_eq(control_socket_create(&second, &settings, false, &host.log), -1);
    ck_assert(control_socket_is_at(&host.sockets[0], host.path));
    ck_assert_int_eq(control_socket_create(&second, &settings, true, &host.log), 0);
    ck_assert(!control_socket_is_at(&host.sockets[0], host.path));
    control_socket_remove(&second, &host.log);
    tear_down(&host);
}
END_TEST

/* Connects in a child, then ends or stays; returns the pid. */
static pid_t connect_in_child(const struct host *host, bool stay)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        connect_client(host);
        while (stay)
            pause();
        _exit(0);
    }
    return pid;
}

static unsigned count_accepted(struct host *host)
{
    struct pollfd queue = { .fd = host->sockets[0].fd, .events = POLLIN };

    ck_assert_int_eq(poll(&queue, 1, TEST_PATIENCE_MS), 1);
    control_accept(&host->control);
    return host->control.client_n;
}

START_TEST(descendants_of_a_master_are_refused)
{
    struct host host;
    pid_t child;

    set_up(&host);
    host.master = _i == 0 ? getpid() : 0; /* in the second case the child is an operator's */
    child = connect_in_child(&host, true);
    ck_assert_uint_eq(count_accepted(&host), _i);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    tear_down(&host);
}
END_TEST

START_TEST(workers_are_refused)
{
    struct host host;
    pid_t child;

    set_up(&host);
    child = connect_in_child(&host, true);
    host.generation->workers[0].pid = child;
    ck_assert_uint_eq(count_accepted(&host), 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    tear_down(&host);
}
END_TEST

/* A client of the workers' user that has ended, reaped or not, may have been a worker. */
START_TEST(who_is_gone_is_refused)
{
    struct host host;
    siginfo_t info;
    pid_t child;

    set_up(&host);
    child = connect_in_child(&host, false);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    if (_i == 1)
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_uint_eq(count_accepted(&host), 0);
    if (_i == 0)
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
    tear_down(&host);
}
END_TEST

START_TEST(a_path_that_ends_as_an_old_ones_comes_back)
{
    struct control_settings settings = { .rights.mode = 0600 };
    struct control_socket control;
    struct host host;
    char path[80], second[88], name[PATH_MAX];

    set_up(&host);
    snprintf(path, sizeof(path), "%s/my.oldbin", host.directory);
    snprintf(second, sizeof(second), "%s.oldbin", path);
    settings.path = path;
    control_socket_init(&control);
    ck_assert_int_eq(control_socket_create(&control, &settings, false, &host.log), 0);
    control_socket_add_name(&control, ".oldbin", &host.log);
    control_socket_restore_path(&control, &host.log); /* the new process has not served */
    ck_assert_str_eq(control_socket_path(&control, name), path);
    control_socket_add_name(&control, ".oldbin", &host.log);
    control_socket_leave_path(&control);
    ck_assert_str_eq(control_socket_path(&control, name), second);
    control_socket_restore_path(&control, &host.log);
    ck_assert_str_eq(control_socket_path(&control, name), path);
    ck_assert(control_socket_is_at(&control, path));
    ck_assert_int_eq(access(second, F_OK), -1);
    control_socket_remove(&control, &host.log);
    tear_down(&host);
}
END_TEST

/* Makes a socket for reading beside the first, which clients connect to from now on. */
static void add_read_socket(struct host *host)
{
    struct control_settings settings = { .path = host->path, .rights.mode = 0600 };

    strcat(host->path, ".r");
    ck_assert_int_eq(control_socket_create(&host->sockets[1], &settings, false, &host->log), 0);
}

static void remove_read_socket(struct host *host)
{
    control_socket_remove(&host->sockets[1], &host->log);
    host->path[strlen(host->path) - 2] = '\0';
}

/* Clients that only read do not take the last places of those that wait. */
START_TEST(readers_leave_places_to_commands)
{
    struct control_outcome outcome = { .ok = true };
    struct host host;
    int waiting[WAITING_MAX / 2], fd;

    set_up(&host);
    host.log.event_log = event_log_create(&host.clock);
    open_clients(&host, waiting, WAITING_MAX / 2, "{\"command\":\"reload\"}\n");
    add_read_socket(&host);
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"events\",\"follow\":true}\n");
    ck_assert_str_eq(received(fd),
        "{\"ok\":false,\"error\":\"too many clients follow the events, try again\"}\n");
    close(fd);
    event_log_destroy(&host.log.event_log);
    remove_read_socket(&host);
    fd = connect_client(&host);
    send_text(&host, fd, "{\"command\":\"reload\"}\n");
    ck_assert_str_eq(received(fd), "");
    control_reply(&host.control, CONTROL_WAIT_RELOAD, &outcome);
    ck_assert_int_eq(strncmp(received(fd), "{\"ok\":true", 10), 0);
    close(fd);
    close_clients(waiting, WAITING_MAX / 2);
    tear_down(&host);
}
END_TEST

START_TEST(a_socket_for_reading_takes_no_command)
{
    static const char *const refused[] = { "stop", "reload", "bogus", "log",
        "upstream\",\"state\":\"up" };
    static const char *const served[] = { "status", "upstream", "certificates" };
    struct host host;
    char line[128];
    int fd;

    set_up(&host);
    add_read_socket(&host);
    fd = connect_client(&host);
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(line, sizeof(line), "{\"command\":\"%s\"}\n", refused[i]);
        send_text(&host, fd, line);
        ck_assert_str_eq(received(fd),
            "{\"ok\":false,\"error\":\"this socket is for reading alone: "
            "status, upstream without a state, sessions, certificates and "
            "events\"}\n");
        ck_assert_int_eq(host.taken, COMMAND_NONE);
    }
    for (unsigned i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
        snprintf(line, sizeof(line), "{\"command\":\"%s\"}\n", served[i]);
        send_text(&host, fd, line);
        ck_assert_int_eq(strncmp(received(fd), "{\"ok\":true", 10), 0);
    }
    close(fd);
    remove_read_socket(&host);
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, descendants_of_a_master_are_refused, 0, 2);
    tcase_add_test(tcase, workers_are_refused);
    tcase_add_loop_test(tcase, who_is_gone_is_refused, 0, 2);
    tcase_add_test(tcase, a_path_that_ends_as_an_old_ones_comes_back);
    tcase_add_test(tcase, a_status_names_generations_and_workers);
    tcase_add_test(tcase, a_reload_is_replied_to_at_its_end);
    tcase_add_test(tcase, a_refused_command_is_not_given);
    tcase_add_test(tcase, slow_clients_are_cut_off);
    tcase_add_loop_test(tcase, idle_clients_give_way, 0, 2);
    tcase_add_test(tcase, a_client_with_a_request_is_not_idle);
    tcase_add_test(tcase, clients_that_do_not_read_give_way);
    tcase_add_test(tcase, waiting_clients_stay);
    tcase_add_test(tcase, any_number_may_end_the_daemon);
    tcase_add_loop_test(tcase, whoever_ends_the_daemon_stays_connected, 0, 2);
    tcase_add_test(tcase, a_socket_in_use_is_not_replaced);
    tcase_add_test(tcase, a_socket_for_reading_takes_no_command);
    tcase_add_test(tcase, readers_leave_places_to_commands);
}

TEST_MAIN("control", add_tests)
