/* SPDX-License-Identifier: BSD-2-Clause */
/* The problems in a status, and the states of workers: each is made, told of, and gone again. */
#include "control/host.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "support/test.h"
#include "support/wait.h"

#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define NO_PROBLEMS "\"problems\":[],\"problems_left_out\":0"

/* Two workers that accept. Neither process runs, but as far as /proc is asked. */
static void set_up_workers(struct host *host)
{
    set_up(host);
    host->generation->process_n = WORKERS;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct pool_worker *worker = &host->generation->workers[i];

        worker->index = i;
        worker->pid = getpid();
        worker->phase = POOL_WORKER_ACCEPTING;
        worker->slot = (struct slot_id) { .slot = i, .serial = 1 };
    }
}

static struct slot *slot_of(struct host *host, unsigned worker)
{
    return shared_slot(host->pool.shared, host->generation->workers[worker].slot);
}

static const char *ask_status(struct host *host)
{
    static char text[65536];
    int fd = connect_client(host);
    size_t n = 0;
    ssize_t more;

    send_text(host, fd, "{\"command\":\"status\"}\n");
    shutdown(fd, SHUT_WR);
    do {
        control_serve(&host->control);
        more = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);
        n += more > 0 ? (size_t)more : 0;
    } while (more > 0);
    text[n] = '\0';
    close(fd);
    control_serve(&host->control);
    return text;
}

static void expect(struct host *host, const char *text)
{
    const char *status = ask_status(host);

    ck_assert_msg(strstr(status, text) != NULL, "%s is not in %s", text, status);
}

static void set_accepting(struct host *host, unsigned worker, enum slot_accepting accepting)
{
    atomic_store(&slot_of(host, worker)->load.accepting, accepting);
}

START_TEST(a_worker_that_does_not_accept_is_told_of)
{
    struct host host;

    set_up_workers(&host);
    host.cycle.events.worker_connections = 12;
    set_accepting(&host, 0, SLOT_OPEN);
    expect(&host, NO_PROBLEMS);
    set_accepting(&host, 0, SLOT_FULL);
    expect(&host, "\"state\":\"full\"");
    expect(&host, "\"level\":\"critical\",\"problem\":\"worker process ");
    expect(&host, " uses all of its 12 worker_connections, and accepts no clients\"");
    set_accepting(&host, 0, SLOT_PAUSED);
    expect(&host, "\"state\":\"suspended\"");
    expect(&host, " has no descriptor or no memory, and accepts no clients\"");
    atomic_store(&slot_of(&host, 0)->load.accepting, 99); /* nonsense of a worker */
    expect(&host, NO_PROBLEMS);
    tear_down(&host);
}
END_TEST

/* Has the heartbeat say that a callback has run for so many seconds. */
static void set_heartbeat(struct host *host, int64_t seconds, uint64_t what)
{
    double rate = ticks_rate(&host->control.ticks);
    int64_t passed = (int64_t)((double)seconds * 1000000 * (1 << TICKS_RATE_BITS) / rate);

    atomic_store(&slot_of(host, 0)->heartbeat.now, (ticks_now() - (uint64_t)passed) << 16 | what);
}

START_TEST(a_stuck_worker_is_told_of)
{
    static const uint64_t in_data = 1 << 8 | CALLBACK_DATA;
    struct host host;

    set_up_workers(&host);
    host.cycle.core.worker_watchdog = 60000;
    WAIT_FOR(ticks_rate(&host.control.ticks) > 0);
    set_heartbeat(&host, 0, in_data);
    expect(&host, NO_PROBLEMS);
    set_heartbeat(&host, 30, in_data);
    expect(&host, "\"state\":\"stuck\",\"stuck_ms\":");
    expect(&host, "\"where\":\"in callback \\\"data\\\" of protocol \\\"counts\\\"\"");
    expect(&host, " is stuck in callback \\\"data\\\" of protocol \\\"counts\\\" for ");
    expect(&host, "\"advice\":\"worker_watchdog ends this after 60 s, kill -ABRT ");
    host.cycle.core.worker_watchdog = 0;
    expect(&host, "\"advice\":\"worker_watchdog is off: kill -ABRT ");
    set_heartbeat(&host, 30, CALLBACK_NONE);
    expect(&host, " is stuck outside of callbacks for ");
    set_heartbeat(&host, 30, CALLBACK_WAIT);
    expect(&host, NO_PROBLEMS);
    set_heartbeat(&host, -30, in_data); /* nonsense */
    expect(&host, NO_PROBLEMS);
    host.generation->workers[0].phase = POOL_WORKER_STARTING;
    set_heartbeat(&host, 30, in_data);
    expect(&host, NO_PROBLEMS);
    tear_down(&host);
}
END_TEST

START_TEST(a_stopped_worker_is_told_of)
{
    struct host host;
    pid_t child;

    set_up_workers(&host);
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    host.generation->workers[1].pid = child;
    expect(&host, NO_PROBLEMS);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    WAIT_FOR(strstr(ask_status(&host), "\"state\":\"stopped\"") != NULL);
    expect(&host, " is stopped, and its clients wait\",\"advice\":\"kill -CONT ");
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    WAIT_FOR(strstr(ask_status(&host), NO_PROBLEMS) != NULL);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    tear_down(&host);
}
END_TEST

START_TEST(ended_workers_are_told_of)
{
    struct host host;

    set_up_workers(&host);
    host.generation->workers[1].pid = 0;
    expect(
        &host, "\"level\":\"warning\",\"problem\":\"worker process 1 of generation 7 has ended, ");
    host.generation->crashing = true;
    expect(&host, "\"problem\":\"all workers of generation 7 crash, and no client is served\"");
    host.generation->crashing = false;
    host.pool.ending = true;
    expect(&host, NO_PROBLEMS);
    tear_down(&host);
}
END_TEST

static struct proc_usage used; /* by every worker */

static void use(pid_t pid, struct proc_usage *usage)
{
    ck_assert_int_eq(pid, getpid());
    *usage = used;
}

START_TEST(what_workers_use_is_told_as_far_as_it_is_known)
{
    struct process_ops told = process_ops_system;
    struct host host;

    set_up_workers(&host);
    told.proc_usage = use;
    process_ops = &told;
    used = (struct proc_usage) { 1500, 4096, 9, 10 };
    expect(&host, "\"cpu_ms\":1500,\"memory\":4096,\"descriptors\":9,\"descriptors_max\":10,");
    used = (struct proc_usage) { -1, -1, -1, 10 };
    expect(&host, ",\"uptime_ms\":10000,\"descriptors_max\":10,\"stalls\":");
    used = (struct proc_usage) { -1, -1, -1, -1 };
    expect(&host, ",\"uptime_ms\":10000,\"stalls\":");
    process_ops = &process_ops_system;
    tear_down(&host);
}
END_TEST

START_TEST(descriptors_that_run_out_are_told_of)
{
    struct process_ops told = process_ops_system;
    struct host host;

    set_up_workers(&host);
    told.proc_usage = use;
    process_ops = &told;
    used = (struct proc_usage) { -1, -1, 921, 1024 };
    expect(&host, NO_PROBLEMS);
    used.descriptors = 922;
    expect(&host, "\"level\":\"warning\",\"problem\":\"worker process ");
    expect(&host, " uses 922 of 1024 descriptors\",\"advice\":\"raise worker_rlimit_nofile\"");
    used.descriptors = -1; /* not known, or the limit is not */
    expect(&host, NO_PROBLEMS);
    used = (struct proc_usage) { -1, -1, 922, -1 };
    expect(&host, NO_PROBLEMS);
    host.generation->workers[1].pid = 0; /* has no descriptors */
    expect(&host, "\"problems\":[{\"level\":\"warning\",\"problem\":\"worker process 1 of ");
    process_ops = &process_ops_system;
    tear_down(&host);
}
END_TEST

START_TEST(a_certificate_that_ends_soon_is_told_of)
{
    static struct tls_file file = { .path = "/it.pem" };
    struct host host;
    struct pool_worker *keeper;
    struct slot_expiry *expiry;

    set_up_workers(&host);
    host.clock.wall_ms = INT64_C(86400000) * 100;
    host.cycle.tls = (struct tls_profiles) { .files = &file, .file_n = 1 };
    keeper = &host.generation->workers[WORKERS];
    keeper->slot = (struct slot_id) { .slot = WORKERS, .serial = 1 };
    expiry = &shared_slot(host.pool.shared, keeper->slot)->expiry;
    atomic_store(&expiry->end, 86400 * 103);
    expect(&host, NO_PROBLEMS); /* there is no keeper */
    host.generation->worker_n++;
    host.generation->keeper_n = 1;
    keeper->task = TASK_KEEP;
    keeper->phase = POOL_WORKER_ACCEPTING;
    keeper->pid = getpid();
    expect(&host, "\"problems\":[{\"level\":\"warning\",\"problem\":\"certificate /it.pem expires "
                  "in 3.0 days\",\"advice\":\"renew the ");
    atomic_store(&expiry->end, 86400 * 114 + 1);
    expect(&host, NO_PROBLEMS);
    atomic_store(&expiry->end, 86400 * 99);
    expect(&host, "\"problems\":[{\"level\":\"critical\",\"problem\":\"certificate /it.pem has "
                  "expired 1.0 days ago\"");
    atomic_store(&expiry->file, 1); /* nonsense of a keeper */
    expect(&host, NO_PROBLEMS);
    atomic_store(&expiry->file, 0);
    atomic_store(&expiry->end, INT64_MIN);
    expect(&host, NO_PROBLEMS);
    atomic_store(&expiry->end, INT64_MAX);
    expect(&host, NO_PROBLEMS);
    atomic_store(&expiry->end, 0); /* none is known */
    expect(&host, NO_PROBLEMS);
    tear_down(&host);
}
END_TEST

START_TEST(lost_lines_of_logs_are_told_of)
{
    _Atomic uint64_t own = 0;
    struct host host;

    set_up_workers(&host);
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert(slot_acquire(host.pool.shared, &host.generation->workers[i].slot));
    host.log.lost = &own;
    expect(&host, "\"log_lines_lost\":0," NO_PROBLEMS);
    counters_add(&slot_of(&host, 0)->counters, COUNTER_LOST, 5);
    atomic_store(&own, 2);
    expect(&host,
        "\"log_lines_lost\":7,\"problems\":[{\"level\":\"warning\",\"problem\":\"log lines "
        "were lost, 7 since the start\"");
    host.clock.mono_ms += 4 * 60 * 1000;
    expect(&host, "\"problem\":\"log lines were lost, 7 since the start\"");
    host.clock.mono_ms += 60 * 1000;
    expect(&host, "\"log_lines_lost\":7," NO_PROBLEMS);
    counters_add(&slot_of(&host, 1)->counters, COUNTER_LOST, 1);
    expect(&host, "\"problem\":\"log lines were lost, 8 since the start\"");
    tear_down(&host);
}
END_TEST

START_TEST(the_time_of_a_drain_is_told)
{
    struct host host;
    struct pool_worker *worker;

    set_up_workers(&host);
    worker = &host.generation->workers[0];
    worker->phase = POOL_WORKER_RELEASED;
    expect(&host, "\"state\":\"draining\",\"restarts\"");
    worker->due = POOL_KILL_DRAIN_LATE;
    worker->deadline.deadline = host.clock.mono_ms + 2500;
    expect(&host, "\"state\":\"draining\",\"drain_ms\":2500,");
    expect(&host, NO_PROBLEMS);
    tear_down(&host);
}
END_TEST

START_TEST(a_full_queue_is_told_of)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    struct listener listener = { .text = "127.0.0.1:80", .fd_n = 1 };
    int fd = socket(AF_INET, SOCK_STREAM, 0), clients[4];
    struct host host;

    set_up_workers(&host);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 3), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    listener.address.any.sa_family = AF_INET;
    listener.fds = &fd;
    STAILQ_INSERT_TAIL(&host.cycle.stream.listeners.list, &listener, link);
    expect(&host, NO_PROBLEMS);
    for (unsigned i = 0; i < 4; i++) { /* the kernel takes one more */
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(clients[i], (struct sockaddr *)&address, length), 0);
        if (i == 0)
            expect(&host, NO_PROBLEMS);
    }
    expect(&host,
        "\"level\":\"critical\",\"problem\":\"4 clients wait at 127.0.0.1:80, whose queue "
        "has room for 3\"");
    for (unsigned i = 0; i < 4; i++) {
        close(clients[i]);
        close(accept(fd, NULL, NULL));
    }
    expect(&host, NO_PROBLEMS);
    ck_assert_int_eq(listen(fd, 0), 0); /* no queue at all, and nobody waits */
    expect(&host, NO_PROBLEMS);
    close(fd);
    tear_down(&host);
}
END_TEST

START_TEST(a_group_without_servers_is_told_of)
{
    struct host host;

    set_up_workers(&host);
    host.health = PEER_HEALTH_BAD;
    expect(&host,
        "\"problem\":\"server 127.0.0.1:1 of upstream \\\"u\\\" is unhealthy\",\"advice\":"
        "\"forkbeard upstream u\"");
    expect(&host,
        "\"level\":\"critical\",\"problem\":\"upstream \\\"u\\\" has no server that is up\"");
    host.health = PEER_HEALTH_GOOD;
    expect(&host, NO_PROBLEMS);
    host.set_to = UPSTREAM_DRAIN; /* a server that an operator has taken out is no problem */
    expect(&host,
        "\"problems\":[{\"level\":\"critical\",\"problem\":\"upstream \\\"u\\\" has no server");
    host.set_to = UPSTREAM_AUTO;
    host.server_n = 2 * PROBLEMS_MAX; /* without an address each */
    expect(&host, "\"problems_left_out\":64");
    tear_down(&host);
}
END_TEST

START_TEST(a_name_without_an_answer_is_told_of)
{
    struct host host;

    set_up_workers(&host);
    add_names(&host);
    expect(&host,
        "\"level\":\"warning\",\"problem\":\"server b.test:1 of upstream \\\"u\\\" has no "
        "address, without a good answer for 0 s (b.test: no server has answered in time)\","
        "\"advice\":\"forkbeard upstream u\"");
    ck_assert_ptr_null(strstr(ask_status(&host), "server a.test:1 of ")); /* answered */
    tear_down(&host);
}
END_TEST

START_TEST(problems_of_the_host_are_listed)
{
    struct host host;

    set_up_workers(&host);
    host.problem = "the \"last\" reload";
    expect(&host, "\"problems\":[{\"level\":\"warning\",\"problem\":\"the \\\"last\\\" reload\","
                  "\"advice\":\"what to do\"}],\"problems_left_out\":0");
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_worker_that_does_not_accept_is_told_of);
    tcase_add_test(tcase, a_stuck_worker_is_told_of);
    tcase_add_test(tcase, a_stopped_worker_is_told_of);
    tcase_add_test(tcase, ended_workers_are_told_of);
    tcase_add_test(tcase, what_workers_use_is_told_as_far_as_it_is_known);
    tcase_add_test(tcase, descriptors_that_run_out_are_told_of);
    tcase_add_test(tcase, a_certificate_that_ends_soon_is_told_of);
    tcase_add_test(tcase, lost_lines_of_logs_are_told_of);
    tcase_add_test(tcase, the_time_of_a_drain_is_told);
    tcase_add_test(tcase, a_full_queue_is_told_of);
    tcase_add_test(tcase, a_group_without_servers_is_told_of);
    tcase_add_test(tcase, a_name_without_an_answer_is_told_of);
    tcase_add_test(tcase, problems_of_the_host_are_listed);
}

TEST_MAIN("problems", add_tests)
