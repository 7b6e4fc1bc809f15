/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors announced by the environment. A case runs in a separate process, without descriptors
 * except the passed ones. */
#include "upgrade/exec_state.h"

#include "support/test.h"
#include "tls/engine.h"

#include <bsd/unistd.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKETS_MAX 3

/* The report of the process about itself. */
struct outcome {
    bool finished, failed, variables_left;
    unsigned n;
    struct {
        int number, fd, from, descriptor_flags, flags;
        char name[32];
    } sockets[SOCKETS_MAX];
    int first_flags; /* flags of the first descriptor, whether taken or not */
    int link, parent, tickets;
    unsigned side, serial;
    char text[1024];
};

static void open_sockets(unsigned n)
{
    struct sockaddr_in address = { .sin_family = AF_INET };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    closefrom(ADOPTED_PASSED_FIRST);
    for (unsigned i = 0; i < n; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd != ADOPTED_PASSED_FIRST + (int)i ||
            bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 || listen(fd, 1) == -1)
            _exit(1);
    }
}

static void set_variables(const char *pid, const char *fds, const char *names)
{
    char own[16];

    snprintf(own, sizeof(own), "%d", (int)getpid());
    setenv("LISTEN_PIDFDID", "1", 1);
    setenv("LISTEN_PID", strcmp(pid, "own") == 0 ? own : pid, 1);
    setenv("LISTEN_FDS", fds, 1);
    if (names != NULL)
        setenv("LISTEN_FDNAMES", names, 1);
}

#define TICKETS 20 /* the descriptor of memory for the keys of tickets */

static off_t ticket_size = TLS_TICKETS_SIZE;

static void open_tickets(void)
{
    int fd = memfd_create("tickets", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (dup2(fd, TICKETS) == -1 || ftruncate(fd, ticket_size) == -1)
        _exit(1);
    close(fd);
}

/* "%d" in the value is our parent. */
static void set_handover(const char *format)
{
    char *p = strstr(format, "%d"), value[128];

    if (p == NULL)
        snprintf(value, sizeof(value), "%s", format);
    else
        snprintf(
            value, sizeof(value), "%.*s%d%s", (int)(p - format), format, (int)getppid(), p + 2);
    setenv("FORKBEARD", value, 1);
}

static void report_state(struct outcome *outcome, const struct adopted *inherited)
{
    const struct adopted_socket *passed;

    STAILQ_FOREACH (passed, &inherited->sockets, link) {
        unsigned i = outcome->n++;

        outcome->sockets[i].number = passed->number;
        outcome->sockets[i].fd = passed->fd;
        outcome->sockets[i].from = (int)passed->from;
        outcome->sockets[i].descriptor_flags = fcntl(passed->fd, F_GETFD);
        outcome->sockets[i].flags = fcntl(passed->fd, F_GETFL);
        snprintf(outcome->sockets[i].name, sizeof(outcome->sockets[i].name), "%s", passed->name);
    }
}

static void inherit_descriptors(struct outcome *outcome)
{
    struct log_target target = { .level = LEVEL_INFO };
    struct exec_state inheritance;
    struct log log;
    int fd = memfd_create("log", MFD_CLOEXEC);

    target.fd = 50;
    dup2(fd, target.fd);
    close(fd);
    log_init(&log, &target, 1);
    log.plain = "t";
    outcome->failed = exec_state_take(&inheritance, &log) == -1;
    outcome->variables_left = getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDS") != NULL ||
                              getenv("LISTEN_FDNAMES") != NULL ||
                              getenv("LISTEN_PIDFDID") != NULL || getenv("FORKBEARD") != NULL;
    outcome->first_flags = fcntl(ADOPTED_PASSED_FIRST, F_GETFD);
    if (!outcome->failed)
        report_state(outcome, inheritance.sockets);
    outcome->link = inheritance.link;
    outcome->parent = (int)inheritance.parent;
    outcome->tickets = inheritance.tickets;
    outcome->side = inheritance.side;
    outcome->serial = inheritance.serial;
    exec_state_done(&inheritance);
    outcome->finished = pread(target.fd, outcome->text, sizeof(outcome->text) - 1, 0) != -1;
}

/* `pid` NULL: `fds` is what another master process says. */
static struct outcome run_case(
    unsigned sockets, const char *pid, const char *fds, const char *names)
{
    struct outcome outcome, *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child;

    ck_assert_ptr_ne(told, MAP_FAILED);
    child = fork();
    ck_assert_int_ne(child, -1);
    if (child == 0) {
        open_sockets(sockets);
        open_tickets();
        if (pid != NULL)
            set_variables(pid, fds, names);
        else
            set_handover(fds);
        inherit_descriptors(told);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    outcome = *told;
    munmap(told, sizeof(*told));
    ck_assert(outcome.finished);
    ck_assert(!outcome.variables_left);
    return outcome;
}

START_TEST(sockets_are_taken)
{
    static const char *const names[] = { "one", "forkbeard", "unknown" };
    struct outcome outcome = run_case(3, "own", "3", "one:forkbeard");

    ck_assert(!outcome.failed);
    ck_assert_str_eq(outcome.text, "");
    ck_assert_uint_eq(outcome.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(outcome.sockets[i].number, ADOPTED_PASSED_FIRST + i);
        ck_assert_int_eq(outcome.sockets[i].fd, ADOPTED_PASSED_FIRST + i);
        ck_assert_str_eq(outcome.sockets[i].name, names[i]);
        ck_assert_int_eq(
            outcome.sockets[i].from, i == 1 ? ADOPTED_FROM_STORE : ADOPTED_FROM_MANAGER);
        ck_assert_int_ne(outcome.sockets[i].descriptor_flags & FD_CLOEXEC, 0);
        ck_assert_int_ne(outcome.sockets[i].flags & O_NONBLOCK, 0);
    }
}
END_TEST

static const struct {
    const char *pid, *fds;
} ignored[] = {
    { "1", "1" },
    { "", "1" },
    { "x", "1" },
    { "0", "x" },
    { "own", "0" },
    { "99999999999", "1" },
};

START_TEST(what_is_not_ours_is_ignored)
{
    struct outcome outcome = run_case(1, ignored[_i].pid, ignored[_i].fds, NULL);

    ck_assert(!outcome.failed);
    ck_assert_str_eq(outcome.text, "");
    ck_assert_uint_eq(outcome.n, 0);
    ck_assert_int_eq(outcome.first_flags, 0);
}
END_TEST

static const struct {
    const char *fds, *message;
} bad[] = {
    { "x", "t: [emerg] LISTEN_FDS=\"x\" is not a number of descriptors\n" },
    { "", "t: [emerg] LISTEN_FDS=\"\" is not a number of descriptors\n" },
    { "-1", "t: [emerg] LISTEN_FDS=\"-1\" is not a number of descriptors\n" },
    { "1 ", "t: [emerg] LISTEN_FDS=\"1 \" is not a number of descriptors\n" },
    { "2147483645", "t: [emerg] LISTEN_FDS=\"2147483645\" is not a number of descriptors\n" },
    { "2", "t: [emerg] LISTEN_FDS announces 2 descriptors, but number 4 is not open "
           "(9: Bad file descriptor)\n" },
};

START_TEST(nonsense_is_refused)
{
    struct outcome outcome = run_case(1, "own", bad[_i].fds, NULL);

    ck_assert(outcome.failed);
    ck_assert_str_eq(outcome.text, bad[_i].message);
}
END_TEST

START_TEST(a_master_process_hands_over)
{
    struct outcome outcome = run_case(3, NULL, "1:p%d:n1,7:l3:s4:m5,9,a name", NULL);

    ck_assert(!outcome.failed);
    ck_assert_str_eq(outcome.text, "");
    ck_assert_int_eq(outcome.parent, getpid());
    ck_assert_int_eq(outcome.link, 3);
    ck_assert_uint_eq(outcome.side, 1);
    ck_assert_uint_eq(outcome.serial, 7);
    ck_assert_int_ne(outcome.first_flags & FD_CLOEXEC, 0);
    ck_assert_uint_eq(outcome.n, 2);
    ck_assert_int_eq(outcome.sockets[0].from, ADOPTED_FROM_MASTER);
    ck_assert_int_eq(outcome.sockets[0].fd, 4);
    ck_assert_int_eq(outcome.sockets[1].from, ADOPTED_FROM_MANAGER);
    ck_assert_int_eq(outcome.sockets[1].fd, 5);
    ck_assert_int_eq(outcome.sockets[1].number, 9);
    ck_assert_str_eq(outcome.sockets[1].name, "a name");
}
END_TEST

static const struct {
    const char *item;
    off_t size;
    bool taken;
} tickets[] = {
    { ":t20,2", TLS_TICKETS_SIZE, true }, { ":t20,2:t4,2", TLS_TICKETS_SIZE, true },
    { ":t20,1", TLS_TICKETS_SIZE, false }, { ":t20,2", TLS_TICKETS_SIZE - 1, false },
    { ":t20,2", 2 * TLS_TICKETS_SIZE, false }, { ":t4,2", TLS_TICKETS_SIZE, false }, /* a socket */
};

/* Memory of no use is closed, and the start goes on. */
START_TEST(keys_of_tickets_are_taken)
{
    struct outcome outcome;
    char text[64];

    ticket_size = tickets[_i].size;
    snprintf(text, sizeof(text), "1:p%%d:l3%s", tickets[_i].item);
    outcome = run_case(3, NULL, text, NULL);
    ck_assert(!outcome.failed);
    ck_assert_str_eq(outcome.text, "");
    ck_assert_int_eq(outcome.tickets, tickets[_i].taken ? TICKETS : -1);
}
END_TEST

static const char *const not_ours[] = { "1:p1:l3", "/usr/sbin/forkbeard", "", "1", "1:l3",
    "1:px:l3", "1:p:l3" };

START_TEST(what_another_process_hands_over_is_ignored)
{
    struct outcome outcome = run_case(1, NULL, not_ours[_i], NULL);

    ck_assert(!outcome.failed);
    ck_assert_str_eq(outcome.text,
        "t: [warn] the environment's FORKBEARD is not of the parent process, and is ignored\n");
    ck_assert_int_eq(outcome.link, -1);
    ck_assert_int_eq(outcome.parent, 0);
    ck_assert_int_eq(outcome.first_flags, 0);
}
END_TEST

static const struct {
    const char *text, *message;
} odd[] = {
    { "2:p%d:l3", "(\"2\") is not understood: the form is different\n" },
    { "1:p%d:l3:x3", "(\"x3\") is not understood: the kind is unknown\n" },
    { "1:p%d:l9", "(\"l9\") is not understood: the descriptor is not open (9: Bad" },
    { "1:p%d:l3:", "(\"\") is not understood: the kind is unknown\n" },
    { "1:p%d:l3:s", "(\"s\") is not understood: a number is missing\n" },
    { "1:p%d:l3:n2,0", "(\"n2,0\") is not understood: a number is" },
    { "1:p%d:l3:n1", "(\"n1\") is not understood: a number is" },
    { "1:p%d:l3:t20", "(\"t20\") is not understood: a number is" },
    { "1:p%d:l3:t8,1", "(\"t8,1\") is not understood: the descriptor is not open" },
    { "1:p%d:s3", "(\"\") is not understood: the link is missing\n" },
    { "1:p%d:l3:s1", "(\"s1\") is not understood: the descriptor is not a socket (88" },
};

START_TEST(nonsense_of_a_master_process_is_refused)
{
    struct outcome outcome = run_case(1, NULL, odd[_i].text, NULL);

    ck_assert(outcome.failed);
    ck_assert_msg(strstr(outcome.text, odd[_i].message) != NULL, "%s", outcome.text);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sockets_are_taken);
    tcase_add_loop_test(tcase, what_is_not_ours_is_ignored, 0, (int)countof(ignored));
    tcase_add_loop_test(tcase, nonsense_is_refused, 0, (int)countof(bad));
    tcase_add_test(tcase, a_master_process_hands_over);
    tcase_add_loop_test(tcase, keys_of_tickets_are_taken, 0, sizeof(tickets) / sizeof(tickets[0]));
    tcase_add_loop_test(
        tcase, what_another_process_hands_over_is_ignored, 0, (int)countof(not_ours));
    tcase_add_loop_test(tcase, nonsense_of_a_master_process_is_refused, 0, (int)countof(odd));
}

TEST_MAIN("inherit", add_tests)
