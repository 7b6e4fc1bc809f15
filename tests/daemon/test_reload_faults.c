/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults at every step of a reload. The client that has asked is told why, the generation before
 * serves on, and nothing is left behind. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/fault_cases.h"
#include "daemon/fault_plan.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"
#include "sandbox/confine.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS 2
#define NAMES_MAX 2048

struct fault_run {
    struct daemon *daemon;
    struct fault_plan *plan;
    struct rate_clients clients;
    int session;
    pid_t workers[WORKERS];
    unsigned descriptors;
    char names[NAMES_MAX];
};

/* The sorted names in the directory, except the harness's. */
static void list_names(const struct daemon *daemon, char names[NAMES_MAX])
{
    struct dirent **entries;
    int n = scandir(daemon->directory, &entries, NULL, alphasort);

    ck_assert_int_ge(n, 0);
    *names = '\0';
    for (int i = 0; i < n; i++) {
        if (strncmp(entries[i]->d_name, "run.", 4) != 0) {
            strncat(names, entries[i]->d_name, NAMES_MAX - strlen(names) - 1);
            strncat(names, " ", NAMES_MAX - strlen(names) - 1);
        }
        free(entries[i]);
    }
    free(entries);
}

static void configure_daemon(struct daemon *daemon, const char *conf)
{
    if (strstr(conf, "other.pid") != NULL) {
        daemon_write(daemon, "forkbeard.conf", "%s", conf);
        return;
    }
    daemon_write(daemon, "forkbeard.conf", "error_log error.log notice; %s %s\n%s",
        strstr(conf, "pid ") == conf ? "" : "pid forkbeard.pid;",
        strstr(conf, "control ") == conf ? "" : "control unix:forkbeard.sock;", conf);
}

/* With a long session, and further sessions coming and going all the time. */
static struct fault_run *begin_case(void)
{
    struct fault_run *run = calloc(1, sizeof(*run));
    struct daemon *daemon = daemon_create(4);
    /* a client may come between the last rescan and the close of a reuseport socket given up again,
     * and is reset by the kernel; without the rescan it would be several */
    struct rate_clients_options options = { daemon->ports[1], 100, 10, 100, 1 };

    ck_assert_ptr_nonnull(run);
    run->daemon = daemon;
    run->plan = fault_plan_share(daemon);
    daemon_write(daemon, "more.log", "%s", "");
    daemon_write(daemon, "says", "%s", "");
    ck_assert_int_eq(mkdir(daemon_path(daemon, "directory"), 0755), 0);
    daemon_owns(daemon, "directory");
    daemon_write(
        daemon, "client.conf", "pid forkbeard.pid; control unix:forkbeard.sock; events {}");
    ck_assert_int_eq(listen(daemon->reservations[3], 1), 0);
    configure_daemon(daemon, FAULT_BEFORE);
    daemon->before_exec = fault_plan_preload;
    daemon_start(daemon);
    daemon->before_exec = NULL;
    daemon_expects(daemon, ""); /* the log is the place for it */
    run->session = client_open(daemon->ports[0]);
    client_echo(run->session, "begun");
    rate_clients_start(&run->clients, &options);
    atomic_store(&run->clients.told, &run->plan->clients);
    ck_assert_uint_eq(proc_children(daemon->pid, run->workers, WORKERS), WORKERS);
    run->descriptors = proc_descriptors(daemon->pid);
    list_names(daemon, run->names);
    return run;
}

static void check_unchanged(struct fault_run *run)
{
    struct daemon *daemon = run->daemon;
    pid_t workers[WORKERS + 1];
    char names[NAMES_MAX];
    int client;

    client_echo(run->session, "goes on");
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS + 1), WORKERS);
    for (int i = 0; i < WORKERS; i++)
        ck_assert(proc_has(run->workers, WORKERS, workers[i]));
    WAIT_FOR(proc_descriptors(daemon->pid) == run->descriptors);
    list_names(daemon, names);
    ck_assert_str_eq(names, run->names);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    ck_assert_int_eq(client_error(daemon->ports[2]), ECONNREFUSED);
    for (int i = 0; i < 3; i++) {
        client =
            i < 2 ? client_open(daemon->ports[i]) : client_open_unix(daemon_path(daemon, "kept"));
        client_echo(client, "served");
        close(client);
    }
    rate_clients_check(&run->clients);
}

static bool has_filter(void)
{
    const char *sandbox = getenv("FORKBEARD_TEST_SANDBOX");
    int error;

    return (sandbox == NULL || strcmp(sandbox, "off") != 0) &&
           sandbox_seccomp_lacks(&error) == NULL;
}

/* The master's call for the filter that a row's call comes after, or is; 0: for none. */
static unsigned filters_call(const struct fault_case *row)
{
    if (row->call == NULL || row->process != 0)
        return 0;
    if (strcmp(row->call, "fork") == 0)
        return FAULT_FILTER_FORK;
    return strcmp(row->call, "mmap") == 0 ? FAULT_FILTER_MMAP : 0;
}

static bool is_filters(const struct fault_case *row)
{
    unsigned call = filters_call(row);

    return call > 0 && row->nth == call;
}

/* Arms the fault of a row, without the filter's child and calls where there is no filter. */
static void arm_fault(struct fault_run *run, size_t i)
{
    unsigned before = filters_call(&fault_cases[i]);
    struct fault_plan *plan = run->plan;

    memset(plan, 0, sizeof(*plan));
    plan->round = (uint32_t)i + 1;
    snprintf(plan->call, sizeof(plan->call), "%s", fault_cases[i].call);
    plan->process = fault_cases[i].process;
    plan->nth = fault_cases[i].nth;
    plan->kind = fault_cases[i].kind;
    plan->error = fault_cases[i].error;
    if (!has_filter() && plan->process > FAULT_FILTER)
        plan->process--;
    if (!has_filter() && before > 0 && plan->nth > before)
        plan->nth--;
    atomic_store(&plan->armed, 1);
}

static int reload_daemon(struct daemon *daemon)
{
    return daemon_run(daemon, "-s", "reload", "-c", "client.conf", NULL);
}

static void fail_once(struct fault_run *run, size_t i)
{
    struct daemon *daemon = run->daemon;
    const char *says;
    int code;

    configure_daemon(daemon, fault_cases[i].conf != NULL ? fault_cases[i].conf : FAULT_AFTER);
    if (fault_cases[i].call != NULL)
        arm_fault(run, i);
    code = reload_daemon(daemon);
    atomic_store(&run->plan->armed, 0);
    daemon_write(daemon, "says", "%s", fault_cases[i].says);
    says = daemon_text(daemon, "says");
    ck_assert_msg(fault_cases[i].call == NULL || atomic_load(&run->plan->hits) > 0,
        "%zu: %s was called only %u times", i, fault_cases[i].call, run->plan->calls);
    ck_assert_msg(code == 1 && strstr(daemon->err, says) != NULL,
        "%zu: the code is %d, and instead of \"%s\" it says: %s", i, code, says, daemon->err);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "reload failed: the previous configuration stays in force"));
    check_unchanged(run);
}

static bool needs_root(const char *call)
{
    return call != NULL && strncmp(call, "set", 3) == 0 && strcmp(call, "setsockopt") != 0;
}

/* The good one at the end. */
static void reload_succeeds(struct fault_run *run)
{
    struct daemon *daemon = run->daemon;
    int client;

    configure_daemon(daemon, FAULT_AFTER);
    ck_assert_msg(reload_daemon(daemon) == 0, "%s", daemon->err);
    client = client_open(daemon->ports[2]);
    client_echo(client, "new");
    close(client);
    close(client_open_unix(daemon_path(daemon, "new")));
    client_echo(run->session, "finishes");
    close(run->session);
    rate_clients_stop(&run->clients);
    rate_clients_check(&run->clients);
    WAIT_FOR(proc_child_n(daemon->pid) == 3);
    ck_assert(!daemon_has(daemon, "forkbeard.pid") && daemon_has(daemon, "other.pid"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock") && daemon_has(daemon, "other.sock"));
}

START_TEST(each_step_fails)
{
    struct fault_run *run;

    daemon_use_best(); /* the rows name its calls */
    run = begin_case();
    for (size_t i = 0; i < fault_case_n; i++)
        if (!has_filter() && is_filters(&fault_cases[i]))
            continue;
        else if (geteuid() == 0 || !needs_root(fault_cases[i].call))
            fail_once(run, i);
    reload_succeeds(run);
    daemon_stop(run->daemon, SIGTERM);
    proc_reap_orphans(); /* a sanitizer's helpers, left by workers killed during a leak check */
    daemon_finish(run->daemon);
    free(run);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, each_step_fails);
}

TEST_MAIN("reload_faults", add_tests)
