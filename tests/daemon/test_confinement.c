/* SPDX-License-Identifier: BSD-2-Clause */
/* The surroundings of workers: limits, user, processors, directory, environment. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ECHO "events { worker_connections 20; } stream { server { listen 127.0.0.1:$0; echo; } }\n"

/* The only worker of a daemon with the configuration. */
static pid_t start_worker(struct daemon *daemon, const char *directives)
{
    pid_t worker;

    daemon_configure(daemon, "%s" ECHO, directives);
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    return worker;
}

/* The fields of a line of /proc/PID/NAME behind its title, separated by single blanks. */
static const char *line_of(pid_t pid, const char *name, const char *title)
{
    static char line[256];
    const char *found = strstr(proc_text(pid, name), title);
    size_t n = 0;

    ck_assert_msg(found != NULL, "no %s in %s", title, name);
    for (const char *p = found + strlen(title); *p != '\n' && *p != '\0'; p++)
        if ((*p != ' ' && *p != '\t') || (n > 0 && line[n - 1] != ' '))
            line[n++] = *p == '\t' ? ' ' : *p;
    line[n] = '\0';
    return line;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

START_TEST(resource_limits)
{
    struct daemon *daemon = daemon_create(1);
    char before[256];
    pid_t worker = start_worker(daemon, "worker_rlimit_nofile 123; worker_rlimit_core 1m;");

    ck_assert(begins(line_of(worker, "limits", "Max open files"), "123 "));
    ck_assert(begins(line_of(worker, "limits", "Max core file size"), "1048576 "));
    snprintf(before, sizeof(before), "%s", line_of(getpid(), "limits", "Max open files"));
    ck_assert_str_eq(line_of(daemon->pid, "limits", "Max open files"), before);
    daemon_finish(daemon);
}
END_TEST

/* Fewer descriptors than connections are worth a warning. */
START_TEST(limit_below_connections)
{
    struct daemon *daemon = daemon_create(1);

    start_worker(daemon, "worker_rlimit_nofile 19;");
    daemon_wait_log(daemon, "[warn] ");
    daemon_wait_log(daemon, " 20 worker_connections exceed open file resource limit: 19\n");
    daemon_finish(daemon);
}
END_TEST

START_TEST(priority)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker = start_worker(daemon, "worker_priority 7;");

    ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)worker), 7);
    ck_assert_int_eq(
        getpriority(PRIO_PROCESS, (id_t)daemon->pid), getpriority(PRIO_PROCESS, (id_t)getpid()));
    daemon_finish(daemon);
}
END_TEST

/* The first processor that we may use. */
static int first_processor(void)
{
    cpu_set_t set;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

static void check_processors(pid_t pid, int first, int n)
{
    cpu_set_t set;

    ck_assert_int_eq(sched_getaffinity(pid, sizeof(set), &set), 0);
    ck_assert_int_eq(CPU_COUNT(&set), n);
    ck_assert(CPU_ISSET(first, &set));
}

START_TEST(affinity)
{
    struct daemon *daemon = daemon_create(1);
    cpu_set_t own;
    int cpu = first_processor();
    char directive[256] = "worker_cpu_affinity auto;";

    if (_i == 1)
        snprintf(directive, sizeof(directive), "worker_cpu_affinity 1%.*s;", cpu,
            "0000000000000000000000000000000000000000000000000000000000000000");
    ck_assert_int_eq(sched_getaffinity(0, sizeof(own), &own), 0);
    check_processors(start_worker(daemon, directive), cpu, 1);
    check_processors(daemon->pid, cpu, CPU_COUNT(&own));
    daemon_finish(daemon);
}
END_TEST

START_TEST(working_directory)
{
    struct daemon *daemon = daemon_create(1);
    char path[128];
    pid_t worker;

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "place"));
    ck_assert_int_eq(mkdir(path, 0755), 0);
    worker = start_worker(daemon, "working_directory place;");
    ck_assert_str_eq(proc_link(worker, "cwd"), path);
    ck_assert_str_eq(proc_link(daemon->pid, "cwd"), daemon->directory);
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(rmdir(path), 0);
    daemon_finish(daemon);
}
END_TEST

/* The real, effective, saved and file system's id. */
static const char *four(unsigned id, char text[64])
{
    snprintf(text, 64, "%u %u %u %u", id, id, id, id);
    return text;
}

static int compare_groups(const void *a, const void *b)
{
    return *(const gid_t *)a < *(const gid_t *)b ? -1 : *(const gid_t *)a > *(const gid_t *)b;
}

/* A user's groups, in the kernel's order and form. */
static const char *groups_of(const char *user, gid_t gid, char text[256])
{
    gid_t groups[16];
    int n = 16;
    size_t used = 0;

    ck_assert_int_ne(getgrouplist(user, gid, groups, &n), -1);
    qsort(groups, (size_t)n, sizeof(groups[0]), compare_groups);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, 256 - used, "%u ", groups[i]);
    return text;
}

/* Users and groups of every system, as the directive and as /proc have them; the first is the
 * build's choice, and not root. */
START_TEST(user)
{
    static const struct {
        const char *directive, *user, *group;
    } cases[] = {
        { "", NULL, NULL },
        { "user nobody;", "nobody", NULL },
        { "user nobody daemon;", "nobody", "daemon" },
        { "user daemon;", "daemon", "daemon" },
        { "user root;", "root", "root" },
    };
    struct daemon *daemon = daemon_create(1);
    pid_t worker = start_worker(daemon, cases[_i].directive);
    const struct passwd *passwd = cases[_i].user == NULL ? NULL : getpwnam(cases[_i].user);
    const struct group *group = cases[_i].group == NULL ? NULL : getgrnam(cases[_i].group);
    char ids[64], groups[256];

    if (passwd == NULL)
        ck_assert_str_ne(line_of(worker, "status", "Uid:"), "0 0 0 0");
    else
        ck_assert_str_eq(line_of(worker, "status", "Uid:"), four(passwd->pw_uid, ids));
    if (group != NULL)
        ck_assert_str_eq(line_of(worker, "status", "Gid:"), four(group->gr_gid, ids));
    if (passwd != NULL)
        ck_assert_str_eq(line_of(worker, "status", "Groups:"),
            groups_of(passwd->pw_name, group != NULL ? group->gr_gid : passwd->pw_gid, groups));
    if (passwd == NULL || passwd->pw_uid != 0)
        ck_assert_str_eq(line_of(worker, "status", "CapEff:"), "0000000000000000");
    ck_assert_str_eq(line_of(daemon->pid, "status", "Uid:"), "0 0 0 0");
    daemon_finish(daemon);
}
END_TEST

/* Workers have the descriptors they need, and none of the master's or of neighbours', except the
 * bells for waking. */
START_TEST(descriptors)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[3];

    daemon_use_best(); /* every mechanism has another number of descriptors */
    daemon_configure(daemon, "worker_processes 3;" ECHO);
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 3), 3);
    for (int i = 0; i < 3; i++) /* 0 to 2, log, listener, channel; bells */
        ck_assert_uint_eq(proc_descriptors(workers[i]), mechanisms_descriptors() + 6 + 3);
    daemon_finish(daemon);
}
END_TEST

#define STRAY 57

static void open_stray(void)
{
    ck_assert_int_eq(dup2(STDIN_FILENO, STRAY), STRAY);
}

static bool is_among(pid_t pid, const pid_t *pids, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (pids[i] == pid)
            return true;
    return false;
}

/* A worker inherits nothing else, whatever the master has open at the fork: descriptors from its
 * own start, a client of the control socket, channels and listeners of a draining generation. */
START_TEST(descriptors_beside_others)
{
    struct daemon *daemon = daemon_create(2);
    pid_t before[2], after[3];
    int client, asking;
    unsigned n;

    daemon_use_best();
    daemon->before_exec = open_stray;
    daemon_configure(daemon,
        "worker_processes 2; events { worker_connections 20; } stream {"
        " server { listen 127.0.0.1:$0; echo; } server { listen 127.0.0.1:$1; echo; } }");
    daemon_start(daemon);
    ck_assert_str_ne(proc_link(daemon->pid, "fd/57"), "");
    ck_assert_uint_eq(proc_children(daemon->pid, before, 2), 2);
    client = client_open(daemon->ports[0]);
    client_echo(client, "stays");
    asking = control_open(daemon);

    daemon_configure(daemon, "worker_processes 2;" ECHO);
    control_send(asking, "reload");
    ck_assert(control_is_ok(control_receive(asking)));
    WAIT_FOR(proc_child_n(daemon->pid) == 3);
    n = proc_children(daemon->pid, after, 3);
    for (unsigned i = 0; i < n; i++)
        if (!is_among(after[i], before, 2)) { /* the same, and two bells */
            ck_assert_uint_eq(proc_descriptors(after[i]), mechanisms_descriptors() + 6 + 2);
            ck_assert_str_eq(proc_link(after[i], "fd/57"), "");
        }
    client_echo(client, "goes on");
    close(client);
    close(asking);
    WAIT_FOR(proc_child_n(daemon->pid) == 2);
    daemon_finish(daemon);
}
END_TEST

static char zones[128]; /* a directory with the zone "Ahead", five hours */

static void set_zone(void)
{
    setenv("TZ", ":Ahead", 1);
    setenv("TZDIR", zones, 1);
}

/* A file in the oldest format of tzfile(5). */
static void write_zone(struct daemon *daemon)
{
    static const char text[] = "TZif\0" /* 15 bytes for later use */
                               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
                               "\0\0\x46\x50\0\0"
                               "FWD\0";
    FILE *file = fopen(daemon_path(daemon, "Ahead"), "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, sizeof(text) - 1, file), sizeof(text) - 1);
    ck_assert_int_eq(fclose(file), 0);
    daemon_owns(daemon, "Ahead");
    snprintf(zones, sizeof(zones), "%s", daemon->directory);
}

/* Whether the log begins at the hour of the zone, or in the last minute of it. */
static bool is_in_zone(const char *log, int hours)
{
    for (int ago = 0; ago <= 60; ago += 60) {
        time_t then = time(NULL) + hours * 3600 - ago;
        char date[64];
        struct tm tm;

        gmtime_r(&then, &tm);
        strftime(date, sizeof(date), "%Y/%m/%d %H:", &tm);
        if (begins(log, date))
            return true;
    }
    return false;
}

/* The log's clock shows the environment of workers and master: TZ and nothing else of the start's
 * environment, unless `env` names it. */
static const struct {
    const char *directives;
    int hours;
} environments[] = {
    { "", 0 }, /* without TZDIR there is no such zone */
    { "env TZDIR;", 5 },
    { "env NONE; env TZDIR; env OTHER=1;", 5 },
    { "env TZ=BEHIND7;", -7 },
    { "env TZ=:Ahead; env TZDIR;", 5 },
    { "env TZDIR=/nowhere;", 0 },
};

START_TEST(environment)
{
    struct daemon *daemon = daemon_create(1);

    write_zone(daemon);
    daemon->before_exec = set_zone;
    start_worker(daemon, environments[_i].directives);
    daemon_stop(daemon, SIGTERM);
    ck_assert_msg(is_in_zone(daemon_text(daemon, "error.log"), environments[_i].hours),
        "%d hours: %s", environments[_i].hours, daemon_text(daemon, "error.log"));
    daemon_finish(daemon);
}
END_TEST

/* A worker that opens nothing any more knows the zone, even if nothing was logged before. */
START_TEST(workers_inherit_the_zone)
{
    struct daemon *daemon = daemon_create(1);
    const char *line;

    write_zone(daemon);
    daemon->before_exec = set_zone;
    daemon_write(
        daemon, "forkbeard.conf", "error_log error.log info; pid forkbeard.pid; env TZDIR; " ECHO);
    daemon_start(daemon);
    ck_assert_int_eq(unlink(daemon_path(daemon, "Ahead")), 0);
    client_reset(client_open(daemon->ports[0]));
    daemon_wait_log(daemon, "client disconnected");
    line = daemon_text(daemon, "error.log");
    for (; *line != '\0'; line = strchr(line, '\n') + 1)
        ck_assert_msg(is_in_zone(line, 5), "%s", line);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (!is_wrapped()) { /* a sanitizer may keep limits to itself, and has descriptors of its own */
        tcase_add_test(tcase, resource_limits);
        tcase_add_test(tcase, descriptors);
        tcase_add_test(tcase, descriptors_beside_others);
    }
    tcase_add_test(tcase, limit_below_connections);
    tcase_add_test(tcase, priority);
    tcase_add_loop_test(tcase, affinity, 0, 2);
    tcase_add_test(tcase, working_directory);
    if (geteuid() == 0)
        tcase_add_loop_test(tcase, user, 0, 5);
    tcase_add_loop_test(tcase, environment, 0, sizeof(environments) / sizeof(environments[0]));
    tcase_add_test(tcase, workers_inherit_the_zone);
}

TEST_MAIN("confinement", add_tests)
