/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper in a process of its own, confined as by the daemon. Its engine is the one without
 * cryptography, but for bytes that begin with a "!": these are an attempt (sandbox/attempts.h),
 * made within the keeper, whose outcome is the text of the failed handshake. */
#include "event/mechanism.h"
#include "keeper/keeper.h"
#include "process/role.h"
#include "process/sanitized.h"
#include "sandbox/attempts.h"
#include "sandbox/sandbox.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_START 200

static struct tls_profile list[] = { { .at = "a:1" } };
static struct tls_file file_list[] = { { .path = "/a.crt", .at = "a:1" } };

static struct cycle cycle;
static struct log_target target;
static struct log log_;
static struct heritage heritage;
static pid_t pid;
static int master, worker;
static uint8_t packet[TLS_PART_SIZE_MOST];
static struct tls_part part;
static int dumpable = -1;
static const char **directories;

/* Notes whether the process can be looked into while keys are read. */
static struct tls_engine *create_noting(struct tls_files *files, struct log *log)
{
    dumpable = prctl(PR_GET_DUMPABLE);
    return tls_engine_plain.create(files, log);
}

static enum tls_step feed_or_attempt(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    char words[64];

    if (in.n == 0 || in.p[0] != '!')
        return tls_engine_plain.feed(handshake, in, reply);
    snprintf(words, sizeof(words), "%.*s", (int)in.n - 1, (const char *)in.p + 1);
    reply->used = in.n;
    snprintf(reply->text, sizeof(reply->text), "%d",
        strcmp(words, "dumpable") == 0 ? dumpable : attempt(words));
    return TLS_FAILED;
}

static void run_keeper(void)
{
    struct tls_engine_ops engine = tls_engine_plain;

    engine.create = create_noting;
    engine.feed = feed_or_attempt;
    if (shared_enter(heritage.shared, heritage.slot) != NULL)
        _exit(CANNOT_START);
    role_set(ROLE_MASTER);
    if (sandbox_prepare(&cycle, &log_) == -1)
        _exit(CANNOT_START);
    role_set(ROLE_WORKER);
    sandbox_narrow_keeper(&cycle);
    _exit(keeper_main(&heritage, &engine));
}

/* Waits for a message of the keeper. */
static void expect_message(uint32_t kind)
{
    struct pollfd state = { .fd = master, .events = POLLIN };
    struct channel_message message;

    ck_assert_int_eq(poll(&state, 1, TEST_PATIENCE_MS), 1);
    ck_assert_int_eq(channel_receive(master, &message), CHANNEL_DONE);
    ck_assert_uint_eq(message.kind, kind);
}

static void start(int sandbox)
{
    int ends[2], links[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    log_init_plain(&log_, &target, "t");
    cycle.arena = arena_create();
    ck_assert_ptr_nonnull(cycle.arena);
    STAILQ_INIT(&cycle.needs.paths);
    STAILQ_INIT(&cycle.needs.ports);
    cycle.core.sandbox = sandbox;
    cycle.core.sigterm_graceful = true;
    cycle.core.worker_processes = 1;
    cycle.core.rlimit_core = cycle.core.rlimit_nofile = -1;
    cycle.core.logs = log_.targets;
    cycle.core.log_n = log_.target_n;
    cycle.events.mechanism = mechanism_find("poll");
    cycle.tls = (struct tls_profiles) {
        .list = list,
        .n = 1,
        .files = file_list,
        .file_n = 1,
        .directories = directories,
        .directory_n = directories != NULL ? 2 : 0,
    };
    ck_assert_int_eq(channel_open(ends), 0);
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, links), 0);
    heritage = (struct heritage) {
        .cycle = &cycle,
        .shared = shared_create(false),
        .task = TASK_KEEP,
        .index = 1,
        .place = PLACE_NONE,
        .channel = ends[1],
    };
    ck_assert_ptr_nonnull(heritage.shared);
    ck_assert(slot_acquire(heritage.shared, &heritage.slot));
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        close(ends[0]);
        close(links[0]);
        close(links[1]);
        run_keeper();
    }
    close(ends[1]);
    master = ends[0];
    worker = links[0];
    expect_message(MESSAGE_FILE_WANTED);
    ck_assert_int_eq(channel_send(master, &(struct channel_message) { MESSAGE_FILE, 0, fd }), 0);
    close(fd);
    expect_message(MESSAGE_READY);
    ck_assert_int_eq(
        channel_send(master, &(struct channel_message) { MESSAGE_LINK, 1, links[1] }), 0);
    close(links[1]);
    ck_assert_int_eq(channel_send(master, &(struct channel_message) { MESSAGE_ACCEPT, 0, -1 }), 0);
    expect_message(MESSAGE_ACCEPTING);
}

/* Sends a request, and waits for the reply. */
static void ask(enum tls_request_kind kind, unsigned place, enum tls_role role, fb_bytes in)
{
    const struct tls_request request = { kind, 1u << TLS_PLACE_BITS | place, { .role = role }, in };
    struct pollfd state = { .fd = worker, .events = POLLIN };
    size_t n = tls_message_write_request(&request, packet);
    ssize_t got;

    ck_assert_int_eq(send(worker, packet, n, 0), (ssize_t)n);
    ck_assert_int_eq(poll(&state, 1, TEST_PATIENCE_MS), 1);
    got = recv(worker, packet, sizeof(packet), 0);
    ck_assert_int_gt(got, 0);
    ck_assert_int_eq(tls_message_read_part(&part, packet, (size_t)got), 0);
}

/* Waits for the keeper's end, and returns the exit code. */
static int await_end(void)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    close(master);
    arena_destroy(&cycle.arena);
    return WEXITSTATUS(status);
}

/* The bytes for a peer, which lie in the packet, in memory that the next message leaves alone. */
static fb_bytes copy_out(void)
{
    static uint8_t bytes[1024];

    ck_assert_uint_le(part.out.n, sizeof(bytes));
    memcpy(bytes, part.out.p, part.out.n);
    return (fb_bytes) { bytes, part.out.n };
}

static void leave(void)
{
    if (worker != -1)
        close(worker);
    close(master);
    slot_release(heritage.shared, heritage.slot);
    shared_destroy(&heritage.shared);
}

START_TEST(it_shakes_hands)
{
    start(_i);
    for (unsigned i = 0; i < 100; i++) {
        ask(TLS_BEGIN, 0, TLS_CLIENT, (fb_bytes) { NULL, 0 });
        ask(TLS_BEGIN, 1, TLS_SERVER, copy_out());
        ask(TLS_FEED, 0, TLS_SERVER, copy_out());
        ck_assert_int_eq(part.step, TLS_DONE);
        ask(TLS_FEED, 1, TLS_SERVER, copy_out());
        ck_assert_int_eq(part.step, TLS_DONE);
        ck_assert_uint_eq(part.session.version, TLS_1_3);
    }
    /* a drain ends with the worker */
    ck_assert_int_eq(kill(pid, SIGQUIT), 0);
    expect_message(MESSAGE_RELEASED);
    ask(TLS_BEGIN, 0, TLS_CLIENT, (fb_bytes) { NULL, 0 });
    ck_assert_int_eq(part.step, TLS_MORE);
    close(worker);
    ck_assert_int_eq(await_end(), 0);
    worker = -1;
    leave();
}
END_TEST

struct attempt_case {
    const char *words;
    const char *outcome; /* errno */
};

/* Has the keeper make attempts, and ends it. */
static void check_attempts(const struct attempt_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *words = cases[i].words;

        if (sanitized_clones && (strcmp(words, "!fork") == 0 || strncmp(words, "!open", 5) == 0 ||
                                    strncmp(words, "!make", 5) == 0))
            continue; /* a sanitizer's runtime may */
        ask(TLS_BEGIN, 0, TLS_SERVER, (fb_bytes) { (const uint8_t *)words, strlen(words) });
        ck_assert_int_eq(part.step, TLS_FAILED);
        ck_assert_msg(strcmp(part.text, cases[i].outcome) == 0, "%s: %s", words, part.text);
    }
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(await_end(), 0);
    leave();
}

START_TEST(it_can_do_little_else)
{
    static const struct attempt_case cases[] = {
        { "!dumpable", "0" },
        { "!execve", "1" },
        { "!udp", "1" },
        { "!unix", "1" },
        { "!tcp", "1" },
        { "!fork", "1" },
        { "!pidfd_open", "1" },
        { "!setsid", "1" },
        { "!open /etc/passwd", "1" },
    };

    start(SANDBOX_ON);
    check_attempts(cases, countof(cases));
}
END_TEST

/* Opens files that variables name, for reading alone. */
START_TEST(it_reads_beneath_directories)
{
    static const struct attempt_case cases[] = {
        { "!open /etc/ssl/openssl.cnf", "0" },
        { "!open /etc/passwd", "13" },
        { "!make /etc/ssl/made", "1" },
        { "!fork", "1" },
    };
    static const char *beneath[] = { "/etc/ssl", "/none" };

    if (access("/etc/ssl/openssl.cnf", R_OK) == -1)
        return;
    directories = beneath;
    start(_i);
    check_attempts(cases, countof(cases));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_shakes_hands, SANDBOX_OFF, SANDBOX_STRICT + 1);
    tcase_add_test(tcase, it_can_do_little_else);
    tcase_add_loop_test(tcase, it_reads_beneath_directories, SANDBOX_ON, SANDBOX_STRICT + 1);
}

TEST_MAIN("keeper_process", add_tests)
