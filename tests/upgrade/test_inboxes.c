/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions of the two master processes of an upgrade about their workers. This test is the other
 * process, of any version, the host, and the pool: the linker leads calls of the pool here. */
#include "upgrade/inboxes.h"

#include "channel/fd_passing.h"
#include "pool/outbox.h"
#include "pool/worker.h"
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
    struct pool pool;
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

/* The scene of the running test, for the calls of the pool. */
static struct scene *noted;

uint32_t __wrap_shared_serial(const struct shared *shared);
void __wrap_shared_note_serial(struct shared *shared, uint32_t serial);
unsigned __wrap_pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX]);
struct pool_worker *__wrap_pool_worker_of_incarnation(
    const struct pool *pool, uint32_t incarnation);
int __wrap_pool_others_find_inbox(struct pool *pool, uint32_t incarnation);
void __wrap_pool_others_came(struct pool *pool, const uint32_t *others, unsigned n);
void __wrap_pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd);
void __wrap_pool_others_note_gone(struct pool *pool, uint32_t incarnation);
void __wrap_pool_others_end(struct pool *pool);
void __wrap_upgrade_alone_rescan(struct upgrade *upgrade);
void __wrap_upgrade_sockets_take(struct upgrade *upgrade, int fd);

uint32_t __wrap_shared_serial(const struct shared *shared)
{
    (void)shared;
    return 7;
}

void __wrap_shared_note_serial(struct shared *shared, uint32_t serial)
{
    (void)shared;
    note(noted, "serial %u ", serial);
}

unsigned __wrap_pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX])
{
    (void)pool;
    note(noted, "list ");
    own[0] = 2048;
    own[1] = 2049;
    return 2;
}

struct pool_worker *__wrap_pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation)
{
    static struct pool_worker worker;

    (void)pool;
    return incarnation == 2048 ? &worker : NULL;
}

int __wrap_pool_others_find_inbox(struct pool *pool, uint32_t incarnation)
{
    (void)pool;
    note(noted, "find %u ", incarnation);
    return incarnation == 2048 ? STDERR_FILENO : -1;
}

void __wrap_pool_others_came(struct pool *pool, const uint32_t *others, unsigned n)
{
    (void)pool;
    note(noted, "others ");
    for (unsigned i = 0; i < n; i++)
        note(noted, "%u ", others[i]);
}

void __wrap_pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd)
{
    (void)pool;
    note(noted, "inbox %u for %u%s%s ", incarnation, asker, found ? " found" : "",
        fd != -1 ? " passed" : "");
}

void __wrap_pool_others_note_gone(struct pool *pool, uint32_t incarnation)
{
    (void)pool;
    note(noted, "gone %u ", incarnation);
}

void __wrap_pool_others_end(struct pool *pool)
{
    (void)pool;
    note(noted, "end ");
}

void __wrap_upgrade_alone_rescan(struct upgrade *upgrade)
{
    (void)upgrade;
    note(noted, "rescan ");
}

void __wrap_upgrade_sockets_take(struct upgrade *upgrade, int fd)
{
    (void)upgrade;
    note(noted, "socket ");
    close(fd);
}

static const struct upgrade_ops ops = { .serves = NULL };

/* We are the new process; the old process has sent `said`. */
static void start(struct scene *scene, const char *said)
{
    struct exec_state state = { .parent = getppid() };
    int ends[2];

    memset(scene, 0, sizeof(*scene));
    noted = scene;
    signal(SIGIO, SIG_IGN);
    memory_log_open(&scene->log, LEVEL_NOTICE);
    timers_init(&scene->timers, &scene->clock, NULL);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    scene->other = ends[1];
    state.link = ends[0];
    ck_assert_int_eq(send(scene->other, said, strlen(said), 0), (ssize_t)strlen(said));
    scene->pool.log = &scene->log.log;
    scene->pool.timers = &scene->timers;
    upgrade_init(&scene->upgrade, &(struct upgrade) { .ops = &ops, .pool = &scene->pool }, &state);
}

static void expect_calls(struct scene *scene, const char *calls)
{
    ck_assert_str_eq(scene->calls, calls);
    scene->calls[0] = '\0';
}

/* The packets sent by us; the descriptor passed with the last, or -1. */
static int expect_sent(struct scene *scene, const char *text)
{
    char sent[4096];
    size_t n = 0;
    int passed = -1, one;
    ssize_t piece;

    while ((piece = fd_receive(scene->other, sent + n, sizeof(sent) - 1 - n, &one, NULL)) > 0) {
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
    ck_assert_int_eq(upgrade_ask_inboxes(&scene.upgrade, POOL_ASK_ALL, 0), 0);
    ck_assert_int_eq(upgrade_ask_inboxes(&scene.upgrade, 3072, 2049), 0);
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

/* A descriptor is received together with the messages before. */
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
        ck_assert_int_eq(upgrade_ask_inboxes(&scene.upgrade, POOL_ASK_ALL, 0), -1);
        ck_assert_int_eq(errno, ENOTCONN);
        ck_assert_int_eq(upgrade_ask_inboxes(&scene.upgrade, 3072, 2048), -1);
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
        memory_log_take(&scene.log), "exchange no messages: the forms of messages differ ("));
    finish(&scene, "rescan ");
}
END_TEST

/* The host may be told any number, like the numbers below. */
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
