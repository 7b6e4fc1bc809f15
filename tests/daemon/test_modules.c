/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules: a good module serves, and is replaced by a reload; a bad module does no harm. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULE(name) "load_module " MODULES_PATH "/" name ".so;\n"
#define ECHO "events {}\nstream { server { listen 127.0.0.1:$0; echo; } %s }\n"

/* Mistakes of modules, in a single line of the daemon; some show only when a server asks for the
 * module. */
static const struct {
    const char *module, *server, *line;
} faults[] = {
    { "other_abi", NULL, "was built for ABI 2, this forkbeard has ABI 1: build it again with" },
    { "no_callbacks", NULL, "has no callbacks: set at least one" },
    { "no_function", NULL, "needs \"fb_frobnicate\", unknown to this forkbeard: is the module" },
    { "newer", NULL, "needs \"fb_frobnicate\", unknown to this forkbeard: the module was built" },
    { "no_library", NULL, "needs \"frobnicate\": link the module with the library of the symbol" },
    { "second_echo", NULL, "has a protocol \"echo\", and so has forkbeard itself" },
    { "second_listen", NULL, "has a directive \"listen\", and so has forkbeard itself" },
    { "stranger", NULL, "is not a Forkbeard module: it defines no \"fb_module\"" },
    { "../../Makefile", NULL, "is not a shared object: build with \"cc -shared -fPIC\"" },
    { "none", NULL, "cannot be opened (2: No such file or directory)" },
    { "crashes_loaded", NULL,
        ".so\" crashed while it was loaded: signal 11 (Segmentation fault) in /" },
    { "crashes_unloaded", NULL,
        ".so\" crashed while it was unloaded: signal 11 (Segmentation fault)" },
    { "exits", NULL, ".so\" exited while it was loaded: code 0 in /" },
    { "crashes_set", "server { listen 127.0.0.1:$1; faulty; faulty_option; }",
        "protocol \"faulty\" crashed when its directive was set: signal 11 (Segmentation fault) "
        "in /" },
    { "crashes_done", "server { listen 127.0.0.1:$1; faulty; }",
        "protocol \"faulty\" crashed when its configuration was done: signal 11 (Segmentation "
        "fault) in /" },
    { "greet_one", "server { listen 127.0.0.1:$1; greet; greet_mark forbidden; }",
        "this mark is forbidden in /" },
    { "threads_loaded", NULL, "has started a thread while it was loaded: workers would not" },
};

/* The last is visible where threads can be counted. */
#define FAULTS (sizeof(faults) / sizeof(faults[0]) - !LINUX_SYSTEM)

static void configure_fault(struct daemon *daemon, size_t i)
{
    const char *ending = strchr(faults[i].module, '.') != NULL ? "" : ".so";

    daemon_configure(daemon, "load_module " MODULES_PATH "/%s%s;\n" ECHO, faults[i].module, ending,
        faults[i].server != NULL ? faults[i].server : "");
}

static unsigned count_lines(const char *text, const char *word)
{
    unsigned n = 0;

    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* The only grave line on standard error is the fault's. */
static void check_line(const struct daemon *daemon, size_t i)
{
    ck_assert_msg(
        count_lines(daemon->err, "[emerg]") == 1 && count_lines(daemon->err, faults[i].line) == 1,
        "%s: it says:\n%.2000s", faults[i].module, daemon->err);
}

START_TEST(a_fault_is_found_by_a_test_and_at_the_start)
{
    struct daemon *daemon = daemon_create(2);
    size_t i = (size_t)_i;

    configure_fault(daemon, i);
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    check_line(daemon, i);
    ck_assert_uint_eq(count_lines(daemon->err, "test failed"), 1);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", NULL), 1);
    check_line(daemon, i);
    ck_assert(!daemon_has(daemon, "error.log"));
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    daemon_finish(daemon);
}
END_TEST

/* Pieces of a module's memory in the master. */
static unsigned count_maps(const struct daemon *daemon, const char *name)
{
    char path[64], *line = NULL;
    size_t size = 0;
    unsigned n = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)daemon->pid);
    maps = fopen(path, "re");
    ck_assert_ptr_nonnull(maps);
    while (getline(&line, &size, maps) != -1)
        n += strstr(line, "memfd:") != NULL && strstr(line, name) != NULL;
    free(line);
    fclose(maps);
    return n;
}

/* The workers that run are left alone, and nothing stays of the attempt. */
START_TEST(a_fault_fails_a_reload)
{
    struct daemon *daemon = daemon_create(2);
    pid_t workers[4], now[4];
    unsigned descriptors, grave;
    int client;

    daemon_configure(daemon, "worker_processes 2;\n" MODULE("plain_a") ECHO, "");
    daemon_start(daemon);
    daemon_expects(daemon, "[emerg]");
    client = client_open(daemon->ports[0]);
    client_echo(client, "before");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 4), 2);
    descriptors = proc_descriptors(daemon->pid);
    for (size_t i = 0; i < FAULTS; i++) {
        grave = daemon_count_log(daemon, "[emerg]");
        configure_fault(daemon, i);
        daemon_signal(daemon, SIGHUP);
        daemon_wait_log(daemon, faults[i].line);
        daemon_wait_log(daemon, "reload failed: the previous configuration stays in force");
        ck_assert_uint_eq(daemon_count_log(daemon, "[emerg]"), grave + 1);
        client_echo(client, faults[i].module);
    }
    ck_assert_uint_eq(proc_children(daemon->pid, now, 4), 2);
    ck_assert(proc_has(now, 2, workers[0]) && proc_has(now, 2, workers[1]));
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    ck_assert_uint_eq(count_maps(daemon, "greet_one.so"), 0);
    ck_assert_uint_gt(count_maps(daemon, "plain_a.so"), 0);
    close(client);
    close(client_open(daemon->ports[0]));
    daemon_finish(daemon);
}
END_TEST

/* Puts another file in the place of a module, as an administrator should. */
static void install_module(struct daemon *daemon, const char *module)
{
    char from[512], to[128];
    FILE *in, *out;
    int c;

    snprintf(from, sizeof(from), MODULES_PATH "/%s.so", module);
    snprintf(to, sizeof(to), "%s", daemon_path(daemon, "module.new"));
    in = fopen(from, "re");
    out = fopen(to, "we");
    ck_assert(in != NULL && out != NULL);
    while ((c = getc(in)) != EOF)
        putc(c, out);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(rename(to, daemon_path(daemon, "module.so")), 0);
    daemon_owns(daemon, "module.so");
}

static void ask_protocol(int client, const char *answer)
{
    client_send(client, "x\n");
    client_expect(client, answer);
}

static void reload_daemon(struct daemon *daemon)
{
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reconfiguring");
    daemon_wait_log(daemon, "gracefully shutting down");
}

/* A client of the new worker: the old worker accepts waiting clients as it steps back. */
static int open_new(const struct daemon *daemon, const char *answer)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);
        char received[32] = "";

        client_send(client, "x\n");
        ck_assert_int_gt(read(client, received, sizeof(received) - 1), 0);
        if (strcmp(received, answer) == 0)
            return client;
        close(client);
        ck_assert_int_lt(now_ms(), until);
    }
}

START_TEST(a_replaced_module_is_picked_up)
{
    struct daemon *daemon = daemon_create(1);
    unsigned maps, descriptors;
    int old, new;

    install_module(daemon, "greet_one");
    daemon_configure(daemon, "load_module $D/module.so;\n"
                             "events {}\nstream { server { listen 127.0.0.1:$0; greet; } }");
    daemon_start(daemon);
    old = client_open(daemon->ports[0]);
    ask_protocol(old, "one! 1\n");
    maps = count_maps(daemon, "module.so");
    ck_assert_uint_gt(maps, 0);
    descriptors = proc_descriptors(daemon->pid);

    install_module(daemon, "greet_two");
    reload_daemon(daemon);
    new = open_new(daemon, "two! 1\n");
    ask_protocol(new, "two! 2\n");
    client_send(old, "x\n"); /* further sessions of the old worker are counted */
    client_expect(old, "one! ");
    ck_assert_uint_eq(count_maps(daemon, "module.so"), 2 * maps);
    close(old);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    WAIT_FOR(count_maps(daemon, "module.so") == maps);
    ask_protocol(new, "two! 3\n");
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    close(new);
    daemon_finish(daemon);
}
END_TEST

/* The file is shared, but every generation has separate variables. */
START_TEST(reloads_leave_nothing_behind)
{
    struct daemon *daemon = daemon_create(1);
    unsigned maps, descriptors;

    install_module(daemon, "greet_one");
    daemon_configure(daemon, "load_module $D/module.so;\n"
                             "events {}\nstream { server { listen 127.0.0.1:$0; greet; } }");
    daemon_start(daemon);
    maps = count_maps(daemon, "module.so");
    descriptors = proc_descriptors(daemon->pid);
    for (int i = 0; i < 8; i++) {
        int client = client_open(daemon->ports[0]);

        ask_protocol(client, "one! 1\n");
        close(client);
        reload_daemon(daemon);
        WAIT_FOR(count_maps(daemon, "module.so") == maps);
        WAIT_FOR(proc_child_n(daemon->pid) == 1);
    }
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    daemon_finish(daemon);
}
END_TEST

/* A library is loaded once for all generations: all workers share the open files. */
START_TEST(workers_have_what_a_library_opened_once)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, MODULE("plain_opens") ECHO, "");
    daemon_start(daemon);
    for (int i = 0; i < 4; i++) {
        pid_t workers[2];

        WAIT_FOR(proc_children(daemon->pid, workers, 2) == 1);
        ck_assert_str_eq(proc_link(workers[0], "fd/77"), "/dev/null");
        reload_daemon(daemon);
    }
    daemon_finish(daemon);
}
END_TEST

/* An end of the daemon does not depend on the configuration. */
START_TEST(a_broken_configuration_keeps_nobody_from_ending_it)
{
    static const char *const signals[] = { "stop", "quit" };
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon, ECHO, "");
    daemon_start(daemon);
    daemon_expects(daemon, "[emerg]"); /* line of the reload that fails */
    daemon_configure(daemon, MODULE("crashes_loaded") ECHO "bogus; stream {", "bogus;");
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "crashed while it was loaded"));
    ck_assert_int_eq(daemon_run(daemon, "-s", "reopen", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    daemon_wait_log(daemon, "\"reopen\" received from ");
    ck_assert_int_eq(daemon_run(daemon, "-s", signals[_i], "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_eq(daemon->err, "");
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "SIGHUP"), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(relative_paths_start_from_the_module_directory)
{
    struct daemon *daemon = daemon_create(1);
    char line[512];
    const char *said;

    ck_assert_int_eq(daemon_run(daemon, "-V", NULL), 0);
    said = strstr(daemon->err, "\nmodule directory: /");
    ck_assert_ptr_nonnull(said);
    said += strlen("\nmodule directory: ");
    snprintf(line, sizeof(line),
        "module \"%.*s/no/such.so\" cannot be opened (2: ", (int)strcspn(said, "\n"), said);
    daemon_configure(daemon, "load_module no/such.so;\n" ECHO, "");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_msg(strstr(daemon->err, line) != NULL, "%s", daemon->err);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_fault_is_found_by_a_test_and_at_the_start, 0, FAULTS);
    tcase_add_test(tcase, a_fault_fails_a_reload);
    tcase_add_test(tcase, a_replaced_module_is_picked_up);
    tcase_add_test(tcase, reloads_leave_nothing_behind);
    tcase_add_test(tcase, workers_have_what_a_library_opened_once);
    tcase_add_loop_test(tcase, a_broken_configuration_keeps_nobody_from_ending_it, 0, 2);
    tcase_add_test(tcase, relative_paths_start_from_the_module_directory);
}

TEST_MAIN("modules", add_tests)
