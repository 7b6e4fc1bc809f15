/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages waiting for a service manager that does not read, under a clock of the test's. */
#include "systemd/notify_queue.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FILLER "#"

struct fixture {
    struct clock clock;
    struct timers timers;
    struct notify_queue queue;
    int fd;    /* the manager's socket, without a file */
    int other; /* any descriptor */
    struct sockaddr_un address;
    socklen_t length;
    char text[8192]; /* the latest message */
    int sent;        /* the descriptor passed with the message, or -1 */
    struct log log;
    struct log_target target;
};

static void set_up(struct fixture *f)
{
    char name[64];

    memset(f, 0, sizeof(*f));
    f->clock.mono_ms = 1000;
    timers_init(&f->timers, &f->clock, NULL);
    f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    f->other = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(f->fd, -1);
    ck_assert_int_ne(f->other, -1);
    f->address.sun_family = AF_UNIX;
    f->length = sizeof(sa_family_t);
    ck_assert_int_eq(bind(f->fd, (struct sockaddr *)&f->address, f->length), 0); /* any name */
    f->length = sizeof(f->address);
    ck_assert_int_eq(getsockname(f->fd, (struct sockaddr *)&f->address, &f->length), 0);
    snprintf(name, sizeof(name), "@%.*s", (int)(f->length - sizeof(sa_family_t) - 1),
        f->address.sun_path + 1);
    f->target = (struct log_target) { .fd = memfd_create("log", MFD_CLOEXEC), .level = LEVEL_INFO };
    log_init(&f->log, &f->target, 1);
    f->log.plain = "t";
    notify_queue_init(&f->queue, name, &f->log);
    notify_queue_attend(&f->queue, &f->timers, &f->log);
}

static void pass_time(struct fixture *f, unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        f->clock.mono_ms++;
        timers_run(&f->timers);
    }
}

/* Sends until the queue, or the sender's own buffer, is full; whether anything was sent. */
static bool send_fillers(struct fixture *f)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool any = false;

    ck_assert_int_ne(fd, -1);
    while (sendto(fd, FILLER, strlen(FILLER), 0, (struct sockaddr *)&f->address, f->length) != -1)
        any = true;
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
    return any;
}

static void fill(struct fixture *f)
{
    while (send_fillers(f))
        continue;
}

/* Takes the next message that fills nothing; NULL: there is none. */
static const char *take(struct fixture *f)
{
    struct iovec piece = { f->text, sizeof(f->text) - 1 };
    char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control };
    struct cmsghdr *c;
    ssize_t n;

    do {
        message.msg_controllen = sizeof(control);
        n = recvmsg(f->fd, &message, MSG_CMSG_CLOEXEC);
        if (n == -1)
            return NULL;
        f->text[n] = '\0';
    } while (strcmp(f->text, FILLER) == 0);
    f->sent = -1;
    c = CMSG_FIRSTHDR(&message);
    if (c != NULL)
        memcpy(&f->sent, CMSG_DATA(c), sizeof(f->sent));
    return f->text;
}

/* Takes all messages, each followed by '|', and closes attached descriptors. */
static const char *take_all(struct fixture *f)
{
    static char all[16384];
    size_t n = 0;

    all[0] = '\0';
    for (unsigned quiet = 0; quiet < 3;) { /* the queue may be shorter than the waiting messages */
        if (take(f) == NULL) {
            pass_time(f, 500);
            quiet++;
            continue;
        }
        quiet = 0;
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s|", f->text);
        if (f->sent != -1)
            close(f->sent);
    }
    return all;
}

static int push(struct fixture *f, enum notify_kind kind, const char *text)
{
    return notify_queue_push(&f->queue, &f->log, kind, text, kind == NOTIFY_STORE ? f->other : -1);
}

static const char *logged(struct fixture *f)
{
    static char text[4096];
    ssize_t n = pread(f->target.fd, text, sizeof(text) - 1, 0);

    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

static void tear_down(struct fixture *f)
{
    ck_assert_ptr_null(take(f));
    notify_queue_done(&f->queue);
    ck_assert_uint_eq(timers_check(&f->timers), 0);
    close(f->target.fd);
    close(f->other);
    close(f->fd);
}

#define STORE(name) "FDSTORE=1\nFDNAME=" name
#define UNSTORE(name) "FDSTOREREMOVE=1\nFDNAME=" name

/* Scripts of kinds and texts, and the messages that are left when the manager reads. */
static const struct {
    struct {
        enum notify_kind kind;
        const char *text;
    } pushed[8];
    const char *left;
} scripts[] = {
    { { { NOTIFY_STATUS, "S1" }, { NOTIFY_READY, "R" }, { NOTIFY_STATUS, "S2" } }, "S2|R|" },
    { { { NOTIFY_ALIVE, "A" }, { NOTIFY_READY, "R" }, { NOTIFY_ALIVE, "A" } }, "A|R|" },
    { { { NOTIFY_READY, "R" }, { NOTIFY_RELOADING, "L1" }, { NOTIFY_STATUS, "S1" },
          { NOTIFY_READY, "R" }, { NOTIFY_RELOADING, "L2" }, { NOTIFY_STATUS, "S2" },
          { NOTIFY_READY, "R" } },
        "R|S2|L2|R|" },
    { { { NOTIFY_RELOADING, "L" }, { NOTIFY_READY, "R" }, { NOTIFY_STOPPING, "T" },
          { NOTIFY_STOPPING, "T" } },
        "L|R|T|" },
    { { { NOTIFY_READY, "R" }, { NOTIFY_STOPPING, "T" }, { NOTIFY_READY, "R" } }, "R|T|R|" },
    { { { NOTIFY_MAIN_PID, "P1" }, { NOTIFY_ALIVE, "A" }, { NOTIFY_MAIN_PID, "P2" } },
        "A|P2|BARRIER=1|" },
    { { { NOTIFY_STORE, STORE("a") }, { NOTIFY_STORE, STORE("b") }, { NOTIFY_STORE, STORE("a") },
          { NOTIFY_READY, "R" }, { NOTIFY_UNSTORE, UNSTORE("a") },
          { NOTIFY_UNSTORE, UNSTORE("a") } },
        STORE("b") "|R|" UNSTORE("a") "|BARRIER=1|" },
    { { { NOTIFY_UNSTORE, UNSTORE("a") }, { NOTIFY_STORE, STORE("a") } },
        UNSTORE("a") "|" STORE("a") "|BARRIER=1|" },
};

START_TEST(a_later_message_makes_others_needless)
{
    struct fixture f;

    set_up(&f);
    fill(&f);
    for (unsigned i = 0; i < 8 && scripts[_i].pushed[i].text != NULL; i++)
        ck_assert_int_eq(push(&f, scripts[_i].pushed[i].kind, scripts[_i].pushed[i].text), 0);
    ck_assert(notify_queue_is_waiting(&f.queue));
    ck_assert_str_eq(take_all(&f), scripts[_i].left);
    ck_assert(!notify_queue_is_waiting(&f.queue));
    ck_assert(notify_queue_is_confirmed(&f.queue));
    ck_assert_str_eq(logged(&f), "");
    tear_down(&f);
}
END_TEST

/* Descriptors wait as copies, in any number, after any change of the originals. */
START_TEST(descriptors_wait_in_any_number)
{
    struct fixture f;
    char text[64];
    unsigned n = 0;
    int fd;

    set_up(&f);
    fill(&f);
    for (unsigned i = 0; i < 200; i++) {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        snprintf(text, sizeof(text), STORE("%u"), i);
        ck_assert_int_eq(notify_queue_push(&f.queue, &f.log, NOTIFY_STORE, text, fd), 0);
        close(fd);
    }
    ck_assert(!notify_queue_is_confirmed(&f.queue));
    while (n < 200) {
        if (take(&f) == NULL) {
            pass_time(&f, 1);
            continue;
        }
        snprintf(text, sizeof(text), STORE("%u"), n);
        ck_assert_str_eq(f.text, text);
        ck_assert_int_ne(f.sent, -1);
        close(f.sent);
        n++;
    }
    ck_assert_str_eq(take_all(&f), "BARRIER=1|");
    tear_down(&f);
}
END_TEST

/* Waiting copies never take the last descriptors, which the daemon needs to serve. */
START_TEST(copies_leave_room)
{
    const struct rlimit limit = { 80, 80 };
    struct fixture f;
    unsigned n = 0;

    set_up(&f);
    fill(&f);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (push(&f, NOTIFY_STORE, STORE("a")) == 0)
        n++;
    ck_assert_uint_gt(n, 30);
    ck_assert_ptr_nonnull(strstr(logged(&f), "was dropped (24: Too many open files)"));
    for (unsigned i = 0; i < 9; i++)
        ck_assert_int_ne(dup(f.other), -1);
    while (take(&f) != NULL)
        if (f.sent != -1)
            close(f.sent);
    tear_down(&f);
}
END_TEST

/* Removals wait in any number too: all listeners may be left to another process. */
START_TEST(removals_wait_in_any_number)
{
    struct fixture f;
    char text[64];
    const unsigned count = 10000;

    set_up(&f);
    fill(&f);
    for (unsigned i = 0; i < 2 * count; i++) {
        snprintf(text, sizeof(text), UNSTORE("%u"), i % count);
        ck_assert_int_eq(push(&f, NOTIFY_UNSTORE, text), 0);
    }
    for (unsigned i = 0; i < count;) {
        if (take(&f) == NULL) {
            pass_time(&f, 1);
            continue;
        }
        snprintf(text, sizeof(text), UNSTORE("%u"), i++);
        ck_assert_str_eq(f.text, text);
    }
    ck_assert_str_eq(take_all(&f), "BARRIER=1|");
    ck_assert_str_eq(logged(&f), "");
    tear_down(&f);
}
END_TEST

/* However many removals there are: those beyond are logged, and the main process is still told. */
START_TEST(what_waits_is_bounded)
{
    struct fixture f;
    char text[64];

    set_up(&f);
    fill(&f);
    for (unsigned i = 0; i <= NOTIFY_QUEUE_MAX; i++) {
        snprintf(text, sizeof(text), UNSTORE("%u"), i);
        ck_assert_int_eq(push(&f, NOTIFY_UNSTORE, text), i < NOTIFY_QUEUE_MAX ? 0 : -1);
    }
    ck_assert_int_eq(push(&f, NOTIFY_MAIN_PID, "P"), 0);
    ck_assert_uint_eq(f.queue.plain_n, NOTIFY_QUEUE_MAX + 1);
    ck_assert_ptr_nonnull(strstr(logged(&f), "was dropped"));
    while (take(&f) != NULL)
        continue;
    tear_down(&f);
}
END_TEST

START_TEST(it_is_said_once_that_the_manager_does_not_read)
{
    struct fixture f;

    set_up(&f);
    fill(&f);
    push(&f, NOTIFY_READY, "R");
    pass_time(&f, 900);
    ck_assert_str_eq(logged(&f), "");
    pass_time(&f, 100000);
    ck_assert_ptr_nonnull(strstr(logged(&f), "does not read: messages wait for it\n"));
    ck_assert_ptr_null(strstr(strstr(logged(&f), "does not read") + 1, "does not read"));
    ck_assert_str_eq(take_all(&f), "R|");
    ck_assert_ptr_nonnull(strstr(logged(&f), "reads again\n"));
    tear_down(&f);
}
END_TEST

/* The timer is armed only while a message waits. */
START_TEST(a_barrier_is_answered)
{
    struct fixture f;

    set_up(&f);
    push(&f, NOTIFY_READY, "R");
    ck_assert_str_eq(take(&f), "R");
    ck_assert_uint_eq(timers_check(&f.timers), 0);
    push(&f, NOTIFY_MAIN_PID, "P");
    ck_assert_str_eq(take(&f), "P");
    pass_time(&f, 1);
    ck_assert_str_eq(take(&f), "BARRIER=1");
    pass_time(&f, 1000);
    ck_assert(!notify_queue_is_confirmed(&f.queue));
    close(f.sent);
    pass_time(&f, 500);
    ck_assert(notify_queue_is_confirmed(&f.queue));
    ck_assert_uint_eq(timers_check(&f.timers), 0);
    tear_down(&f);
}
END_TEST

/* After the timeout the barrier is not asked again until needed. */
START_TEST(a_barrier_is_never_answered)
{
    struct fixture f;
    int first;

    set_up(&f);
    push(&f, NOTIFY_MAIN_PID, "P");
    pass_time(&f, 1);
    ck_assert_str_eq(take(&f), "P");
    ck_assert_str_eq(take(&f), "BARRIER=1");
    first = f.sent;
    pass_time(&f, 2 * NOTIFY_QUEUE_DEADLINE_MS);
    ck_assert_ptr_null(take(&f));
    ck_assert_uint_eq(timers_check(&f.timers), 0);
    ck_assert(!notify_queue_is_confirmed(&f.queue));
    notify_queue_advance(&f.queue, &f.log);
    ck_assert_str_eq(take(&f), "BARRIER=1");
    close(first);
    pass_time(&f, 500);
    ck_assert(!notify_queue_is_confirmed(&f.queue)); /* the other one's */
    close(f.sent);
    pass_time(&f, 500);
    ck_assert(notify_queue_is_confirmed(&f.queue));
    tear_down(&f);
}
END_TEST

/* A vanished manager blocks nothing, and waiting messages are dropped. */
START_TEST(a_manager_goes_while_messages_wait)
{
    struct fixture f;

    set_up(&f);
    fill(&f);
    push(&f, NOTIFY_STORE, STORE("a"));
    push(&f, NOTIFY_READY, "R");
    close(f.fd);
    f.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    pass_time(&f, 500);
    ck_assert(!notify_queue_is_waiting(&f.queue));
    ck_assert(notify_queue_is_confirmed(&f.queue));
    ck_assert_int_eq(push(&f, NOTIFY_STORE, STORE("b")), -1);
    ck_assert_ptr_nonnull(strstr(logged(&f), "cannot be reached (111: Connection refused)\n"));
    ck_assert_ptr_null(strstr(strstr(logged(&f), "cannot be") + 1, "cannot be"));
    ck_assert_uint_eq(timers_check(&f.timers), 0);
    ck_assert_int_eq(bind(f.fd, (struct sockaddr *)&f.address, f.length), 0); /* another one */
    ck_assert_int_eq(push(&f, NOTIFY_STORE, STORE("c")), 0);
    ck_assert_str_eq(take_all(&f), STORE("c") "|BARRIER=1|");
    tear_down(&f);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_later_message_makes_others_needless, 0,
        (int)(sizeof(scripts) / sizeof(scripts[0])));
    tcase_add_test(tcase, descriptors_wait_in_any_number);
    tcase_add_test(tcase, copies_leave_room);
    tcase_add_test(tcase, removals_wait_in_any_number);
    tcase_add_test(tcase, what_waits_is_bounded);
    tcase_add_test(tcase, it_is_said_once_that_the_manager_does_not_read);
    tcase_add_test(tcase, a_barrier_is_answered);
    tcase_add_test(tcase, a_barrier_is_never_answered);
    tcase_add_test(tcase, a_manager_goes_while_messages_wait);
}

TEST_MAIN("notify_queue", add_tests)
