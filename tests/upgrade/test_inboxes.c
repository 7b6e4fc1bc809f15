/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions of the two master processes of an upgrade about their workers. This test is the
 * other process, of any version, and the host. */
#include "upgrade/inboxes.h"

#include "process/fd_passing.h"
#include "support/memory_log.h"
#include "support/test.h"
#include "upgrade/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO "{\"inboxes\":1}\n"
#define OWN_HELLO "{\"inboxes\":1}\n"

struct scene {
    struct upgrade upgrade;
    struct memory_log log;
    struct clock clock;
    struct timers timers;
    int other; /* the other process's end of the link */
    char calls[1024];
};

static void note(void *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(void *host, const char *format, ...)
{
    struct scene *scene = host;
    size_t n = strlen(scene->calls);
    va_list args;

    va_start(args, format);
    vsnprintf(scene->calls + n, sizeof(scene->calls) - n, format, args);
    va_end(args);
}

static void note_rescan(void *host)
{
    note(host, "rescan ");
}

static uint32_t own_serial(void *host)
{
    (void)host;
    return 7;
}

static void note_serial(void *host, uint32_t serial)
{
    note(host, "serial %u ", serial);
}

static unsigned list_workers(void *host, uint32_t *own)
{
    note(host, "list ");
    own[0] = 2048;
    own[1] = 2049;
    return 2;
}

static int find_inbox(void *host, uint32_t incarnation, bool *found)
{
    note(host, "find %u ", incarnation);
    *found = incarnation == 2048;
    return *found ? STDERR_FILENO : -1;
}

static void note_others(void *host, const uint32_t *others, unsigned n)
{
    note(host, "others ");
    for (unsigned i = 0; i < n; i++)
        note(host, "%u ", others[i]);
}

static void note_inbox(void *host, uint32_t incarnation, uint32_t asker, bool found, int fd)
{
    note(host, "inbox %u for %u%s%s ", incarnation, asker, found ? " found" : "",
        fd != -1 ? " passed" : "");
}

static void note_gone(void *host, uint32_t incarnation)
{
    note(host, "gone %u ", incarnation);
}

static void note_end(void *host)
{
    note(host, "end ");
}

static void note_socket(void *host, int fd)
{
    note(host, "socket ");
    close(fd);
}

static const struct upgrade_ops ops = {
    .rescan = note_rescan,
    .adopt_socket = note_socket,
    .serial = own_serial,
    .note_serial = note_serial,
    .list_workers = list_workers,
    .find_inbox = find_inbox,
    .others_came = note_others,
    .inbox_came = note_inbox,
    .worker_gone = note_gone,
    .others_end = note_end,
};

/* We are the new process; the old one has said this. */
static void start(struct scene *scene, const char *said)
{
    struct exec_state state = { .parent = getppid() };
    int ends[2];

    memset(scene, 0, sizeof(*scene));
    signal(SIGIO, SIG_IGN);
    memory_log_open(&scene->log, LEVEL_NOTICE);
    timers_init(&scene->timers, &scene->clock, NULL);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    scene->other = ends[1];
    state.link = ends[0];
    ck_assert_int_eq(send(scene->other, said, strlen(said), 0), (ssize_t)strlen(said));
    upgrade_init(&scene->upgrade, &ops, scene, &state, NULL, &scene->log.log, &scene->timers);
}

static void expect_calls(struct scene *scene, const char *calls)
{
    ck_assert_str_eq(scene->calls, calls);
    scene->calls[0] = '\0';
}

/* The packets that we have sent; the descriptor that came along with the last of it, or -1. */
static int expect_sent(struct scene *scene, const char *text)
{
    char sent[4096];
    size_t n = 0;
    int passed = -1, one;
    ssize_t piece;

    while ((piece = fd_receive(scene->other, sent + n, sizeof(sent) - 1 - n, &one)) > 0) {
        n += (size_t)piece;
        passed = one != -1 ? one : passed;
    }
    sent[n] = '\0';
    ck_assert_str_eq(sent, text);
    return passed;
}

static void say(struct scene *scene, const char *text, int passed)
{
    ck_assert_int_eq(fd_send(scene->other, text, strlen(text), passed), (ssize_t)strlen(text));
}

static void finish(struct scene *scene, const char *calls)
{
    close(scene->other);
    upgrade_receive(&scene->upgrade);
    expect_calls(scene, calls);
    memory_log_take(&scene->log); /* the old process has ended */
    upgrade_done(&scene->upgrade, false);
    expect_calls(scene, "");
    memory_log_close(&scene->log);
}

START_TEST(they_ask_and_answer)
{
    struct scene scene;
    int fd;

    start(&scene, HELLO);
    ck_assert_int_eq(upgrade_ask_others(&scene.upgrade), 0);
    ck_assert_int_eq(upgrade_ask_inbox(&scene.upgrade, 3072, 2049), 0);
    upgrade_tell_gone(&scene.upgrade, 2049);
    expect_sent(&scene, OWN_HELLO "{\"serial\":7,\"workers_wanted\":true}\n"
                                  "{\"serial\":7,\"inbox_wanted\":3072,\"asker\":2049}\n"
                                  "{\"serial\":7,\"gone\":2049}\n");
    say(&scene, "{\"serial\":4,\"workers\":[3072,3073]}\n", -1);
    say(&scene, "{\"serial\":5,\"inbox\":3072,\"asker\":2049,\"found\":true}\n", STDERR_FILENO);
    say(&scene, "{\"serial\":5,\"inbox\":3073,\"asker\":2049,\"found\":false}\n", -1);
    say(&scene, "{\"serial\":5,\"gone\":3073}\n", -1);
    upgrade_receive(&scene.upgrade);
    expect_calls(&scene, "serial 4 others 3072 3073 serial 5 inbox 3072 for 2049 found passed "
                         "serial 5 inbox 3073 for 2049 serial 5 gone 3073 ");
    say(&scene, "{\"serial\":5,\"workers_wanted\":true}\n", -1);
    upgrade_receive(&scene.upgrade);
    expect_sent(&scene, "{\"serial\":7,\"workers\":[2048,2049]}\n");
    say(&scene, "{\"serial\":5,\"inbox_wanted\":2048,\"asker\":3072}\n", -1);
    upgrade_receive(&scene.upgrade);
    fd = expect_sent(&scene, "{\"serial\":7,\"inbox\":2048,\"asker\":3072,\"found\":true}\n");
    ck_assert_int_ne(fd, -1);
    close(fd);
    say(&scene, "{\"serial\":5,\"inbox_wanted\":9,\"asker\":3072}\n", -1);
    upgrade_receive(&scene.upgrade);
    expect_sent(&scene, "{\"serial\":7,\"inbox\":9,\"asker\":3072,\"found\":false}\n");
    expect_calls(&scene, "serial 5 list serial 5 find 2048 serial 5 find 9 ");
    finish(&scene, "end rescan ");
}
END_TEST

/* A descriptor is received together with messages before its own. */
START_TEST(descriptors_find_their_messages)
{
    struct scene scene;

    start(&scene, HELLO);
    say(&scene, "{\"look\":true}\n{\"serial\":1,\"gone\":3072}\n", -1);
    say(&scene, "{\"serial\":1,\"inbox\":3072,\"asker\":1,\"found\":true}\n", STDERR_FILENO);
    say(&scene, "{\"look\":true}\n", -1);
    say(&scene, "{}\n", STDERR_FILENO);
    upgrade_receive(&scene.upgrade);
    expect_calls(
        &scene, "rescan serial 1 gone 3072 serial 1 inbox 3072 for 1 found passed rescan socket ");
    finish(&scene, "end rescan ");
}
END_TEST

/* Processes before this, and after it. */
static const char *const other_forms[] = { "{\"sockets\":[]}\n", "{\"inboxes\":2}\n",
    "{\"inboxes\":0}\n", "{\"inboxes\":-1}\n", "{\"inboxes\":\"1\"}\n",
    "{\"inboxes\":99999999999999999999}\n" };

START_TEST(another_form_is_told_once)
{
    unsigned before = 0, after = 0;
    struct scene scene;

    start(&scene, other_forms[_i]);
    for (int fd = 0; fd < 256; fd++)
        before += fcntl(fd, F_GETFD) != -1;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(upgrade_ask_others(&scene.upgrade), -1);
        ck_assert_int_eq(errno, ENOTCONN);
        ck_assert_int_eq(upgrade_ask_inbox(&scene.upgrade, 3072, 2048), -1);
        ck_assert_int_eq(errno, ENOTCONN);
    }
    upgrade_tell_gone(&scene.upgrade, 2048);
    say(&scene, "{\"serial\":4,\"workers\":[3072]}\n{\"serial\":4,\"workers_wanted\":true}\n", -1);
    say(&scene, "{\"serial\":4,\"inbox\":3072,\"asker\":2048,\"found\":true}\n", STDERR_FILENO);
    upgrade_receive(&scene.upgrade);
    for (int fd = 0; fd < 256; fd++)
        after += fcntl(fd, F_GETFD) != -1;
    ck_assert_uint_eq(before, after);
    expect_sent(&scene, OWN_HELLO);
    ck_assert_ptr_nonnull(strstr(
        memory_log_take(&scene.log), "send each other no messages: theirs have another form ("));
    finish(&scene, "rescan ");
}
END_TEST

/* The number that the host is told may be any number, as these are. */
START_TEST(what_the_other_says_may_be_anything)
{
    struct scene scene;

    start(&scene, HELLO);
    say(&scene, "{\"serial\":-1,\"workers\":[-1,\"x\",99999999999,1],\"gone\":\"y\"}\n", -1);
    say(&scene, "{\"serial\":{},\"workers\":3,\"inbox\":[],\"inbox_wanted\":-7}\n", -1);
    say(&scene, "{\"serial\":4294967295,\"inbox\":4294967294,\"found\":1}\n", -1);
    upgrade_receive(&scene.upgrade);
    expect_calls(&scene, "serial 0 others 1 serial 0 others serial 0 inbox 4294967294 for 0 ");
    finish(&scene, "end rescan ");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, they_ask_and_answer);
    tcase_add_test(tcase, descriptors_find_their_messages);
    tcase_add_loop_test(
        tcase, another_form_is_told_once, 0, (int)(sizeof(other_forms) / sizeof(other_forms[0])));
    tcase_add_test(tcase, what_the_other_says_may_be_anything);
}

TEST_MAIN("inboxes", add_tests)
