/* SPDX-License-Identifier: BSD-2-Clause */
/* The shim of kqueue(2) against the rules of FreeBSD's manual page. */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct timespec no_time = { 0, 0 };

static int queue, ends[2];

static void begin_queue(void)
{
    queue = kqueue();
    ck_assert_int_ne(queue, -1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
}

static void end_queue(void)
{
    close(queue);
    close(ends[0]);
    close(ends[1]);
}

/* Applies one change that has to succeed. */
static void change(uintptr_t ident, int filter, unsigned flags, unsigned fflags, int64_t data)
{
    struct kevent one = { ident, (short)filter, (unsigned short)flags, fflags, data, &queue,
        { 0 } };

    ck_assert_int_eq(kevent(queue, &one, 1, NULL, 0, NULL), 0);
}

/* Returns the error of a change, required to fail. */
static int refusal(uintptr_t ident, int filter, unsigned flags)
{
    struct kevent one = { .ident = ident, .filter = (short)filter, .flags = (unsigned short)flags };

    ck_assert_int_eq(kevent(queue, &one, 1, NULL, 0, NULL), -1);
    return errno;
}

static int take(struct kevent *events, int n)
{
    return kevent(queue, NULL, 0, events, n, &no_time);
}

static bool is_quiet(void)
{
    struct kevent event;

    return take(&event, 1) == 0;
}

static void say(const char *text)
{
    ck_assert_int_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
}

static void hear(size_t n)
{
    char bytes[64];

    ck_assert_int_eq(read(ends[0], bytes, n), (ssize_t)n);
}

START_TEST(a_level_is_told_as_long_as_it_holds)
{
    struct kevent event;

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0);
    ck_assert(is_quiet());
    say("abc");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(take(&event, 1), 1);
        ck_assert_uint_eq(event.ident, (uintptr_t)ends[0]);
        ck_assert_int_eq(event.filter, EVFILT_READ);
        ck_assert_int_eq(event.data, 3); /* the bytes that wait */
        ck_assert_ptr_eq(event.udata, &queue);
        ck_assert_int_eq(event.flags & (EV_EOF | EV_ERROR), 0);
    }
    hear(3);
    ck_assert(is_quiet()); /* the filter is run again before the event is returned */
}
END_TEST

START_TEST(an_edge_is_told_once)
{
    struct kevent events[2];

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0);
    change((uintptr_t)ends[0], EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0);
    ck_assert_int_eq(take(events, 2), 1); /* a condition that holds at the registration */
    ck_assert_int_eq(events[0].filter, EVFILT_WRITE);
    ck_assert_int_gt(events[0].data, 0);
    say("a");
    ck_assert_int_eq(take(events, 2), 1); /* input is no edge of output */
    ck_assert_int_eq(events[0].filter, EVFILT_READ);
    ck_assert(is_quiet());
    say("b");
    ck_assert_int_eq(take(events, 2), 1);
    ck_assert_int_eq(events[0].data, 2);
    say("c");
    hear(3);
    ck_assert(is_quiet());
}
END_TEST

START_TEST(it_is_told_once_and_then_gone)
{
    struct kevent event;

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_ONESHOT, 0, 0);
    say("a");
    ck_assert_int_eq(take(&event, 1), 1);
    ck_assert(is_quiet());
    ck_assert_int_eq(refusal((uintptr_t)ends[0], EVFILT_READ, EV_DELETE), ENOENT);

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_DISPATCH, 0, 0);
    ck_assert_int_eq(take(&event, 1), 1);
    ck_assert(is_quiet());
    change((uintptr_t)ends[0], EVFILT_READ, EV_ENABLE, 0, 0);
    ck_assert_int_eq(take(&event, 1), 1);
}
END_TEST

START_TEST(what_is_disabled_is_kept)
{
    struct kevent event;

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_CLEAR | EV_DISABLE, 0, 0);
    say("a");
    ck_assert(is_quiet());
    change((uintptr_t)ends[0], EVFILT_READ, EV_ENABLE, 0, 0);
    ck_assert_int_eq(take(&event, 1), 1);
    change((uintptr_t)ends[0], EVFILT_READ, EV_DISABLE, 0, 0);
    hear(1);
    change((uintptr_t)ends[0], EVFILT_READ, EV_ENABLE, 0, 0);
    ck_assert(is_quiet());
    change((uintptr_t)ends[0], EVFILT_READ, EV_DELETE, 0, 0);
    say("b");
    ck_assert(is_quiet());
}
END_TEST

START_TEST(a_second_add_changes_the_first)
{
    struct kevent one = { (uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0, ends, { 0 } }, events[2];

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0);
    say("a");
    ck_assert_int_eq(
        kevent(queue, &one, 1, events, 2, &no_time), 1); /* changes and events in a call */
    ck_assert_ptr_eq(events[0].udata, ends);
}
END_TEST

START_TEST(the_end_is_told_beside_the_data)
{
    struct kevent event;

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0);
    say("last");
    close(ends[1]);
    ck_assert_int_eq(take(&event, 1), 1);
    ck_assert_int_ne(event.flags & EV_EOF, 0);
    ck_assert_int_eq(event.data, 4);
    ends[1] = dup(ends[0]);
}
END_TEST

static struct sockaddr_in listen_on(int *fd)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(*fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(*fd, 16), 0);
    ck_assert_int_eq(getsockname(*fd, (struct sockaddr *)&address, &length), 0);
    return address;
}

START_TEST(a_listener_tells_how_many_wait)
{
    struct kevent event;
    int listener, clients[3];
    struct sockaddr_in address = listen_on(&listener);

    change((uintptr_t)listener, EVFILT_READ, EV_ADD, 0, 0);
    ck_assert(is_quiet());
    for (int i = 0; i < 3; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_eq(connect(clients[i], (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
        ck_assert_int_eq(event.data, i + 1);
    }
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    close(listener);
}
END_TEST

START_TEST(an_error_comes_in_fflags)
{
    static const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
    struct kevent event;
    int listener, client = socket(AF_INET, SOCK_STREAM, 0), served;
    struct sockaddr_in address = listen_on(&listener);

    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served = accept(listener, NULL, NULL);
    change((uintptr_t)served, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 0);
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(client);
    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
    ck_assert_int_ne(event.flags & EV_EOF, 0);
    ck_assert_uint_eq(event.fflags, ECONNRESET);
    ck_assert_int_eq(read(served, &(char) { 0 }, 1), -1); /* the owner gets it too */
    ck_assert_int_eq(errno, ECONNRESET);
    close(served);
    close(listener);

    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); /* no listener is there now */
    connect(client, (struct sockaddr *)&address, sizeof(address));
    change((uintptr_t)client, EVFILT_WRITE, EV_ADD | EV_CLEAR, 0, 0);
    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
    ck_assert_int_ne(event.flags & EV_EOF, 0);
    ck_assert_uint_eq(event.fflags, ECONNREFUSED);
    close(client);
}
END_TEST

START_TEST(changes_are_refused)
{
    int none = dup(ends[0]);

    close(none);
    ck_assert_int_eq(refusal((uintptr_t)none, EVFILT_READ, EV_ADD), EBADF);
    ck_assert_int_eq(refusal((uintptr_t)none, EVFILT_READ, EV_DELETE), EBADF);
    ck_assert_int_eq(refusal((uintptr_t)ends[0], EVFILT_READ, EV_DELETE), ENOENT);
    ck_assert_int_eq(refusal((uintptr_t)ends[0], EVFILT_WRITE, EV_ENABLE), ENOENT);
    ck_assert_int_eq(refusal((uintptr_t)ends[0], 99, EV_ADD), EINVAL);
    ck_assert_int_eq(refusal(7, EVFILT_USER, 0), ENOENT);
}
END_TEST

/* An error has the place of an event, in order; where there is no place the call fails. */
START_TEST(errors_are_events)
{
    struct kevent changes[] = {
        { (uintptr_t)ends[0], EVFILT_READ, EV_DELETE, 0, 0, &changes[0], { 0 } },
        { (uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0, &changes[1], { 0 } },
        { (uintptr_t)ends[0], EVFILT_WRITE, EV_DELETE, 0, 0, &changes[2], { 0 } },
    };
    struct kevent events[4];

    say("a");
    ck_assert_int_eq(kevent(queue, changes, 3, events, 4, NULL), 2); /* without the event */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(events[i].flags, EV_ERROR);
        ck_assert_int_eq(events[i].data, ENOENT);
        ck_assert_ptr_eq(events[i].udata, &changes[2 * i]);
    }
    ck_assert_int_eq(take(events, 4), 1); /* the change between was applied */
    changes[1].flags = EV_DELETE;
    ck_assert_int_eq(kevent(queue, changes + 1, 2, events, 1, NULL), 1);
    ck_assert_int_eq(kevent(queue, changes + 1, 2, events, 1, NULL), -1); /* two, and one place */
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(receipts_drain_nothing)
{
    struct kevent one = { (uintptr_t)ends[0], EVFILT_READ, EV_ADD | EV_RECEIPT, 0, 0, NULL, { 0 } };
    struct kevent events[2];

    say("a");
    ck_assert_int_eq(kevent(queue, &one, 1, events, 2, NULL), 1);
    ck_assert_int_eq(events[0].flags, EV_ERROR);
    ck_assert_int_eq(events[0].data, 0);
    ck_assert_int_eq(take(events, 2), 1);
    ck_assert_int_eq(events[0].data, 1);
}
END_TEST

START_TEST(closing_removes_the_filters)
{
    int other = dup(ends[0]), again;

    change((uintptr_t)other, EVFILT_READ, EV_ADD, 0, 0);
    change((uintptr_t)other, EVFILT_WRITE, EV_ADD, 0, 0);
    say("a");
    close(other); /* the socket stays open */
    ck_assert(is_quiet());
    again = dup(ends[0]);
    ck_assert_int_eq(again, other);
    ck_assert_int_eq(refusal((uintptr_t)again, EVFILT_READ, EV_DELETE), ENOENT);
    change((uintptr_t)again, EVFILT_READ, EV_ADD, 0, 0);
    ck_assert_int_eq(dup2(ends[1], again), again); /* closes it as well */
    ck_assert(is_quiet());
    ck_assert_int_eq(refusal((uintptr_t)again, EVFILT_READ, EV_DELETE), ENOENT);
    close(again);
}
END_TEST

START_TEST(a_child_has_no_queue)
{
    int status;
    pid_t pid;

    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0);
    pid = fork();
    if (pid == 0) {
        struct kevent event;
        int n = kevent(queue, NULL, 0, &event, 1, &no_time);
        bool dead = n == -1 && errno == EBADF && fcntl(queue, F_GETFD) == -1;

        close(ends[0]); /* not ours alone */
        queue = kqueue();
        _exit(dead && queue != -1 && is_quiet() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    say("a");
    ck_assert(!is_quiet());
}
END_TEST

START_TEST(time_passes)
{
    const struct timespec some = { .tv_nsec = 20000000 };
    struct kevent event;

    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, &some), 0);
    change(1, EVFILT_TIMER, EV_ADD, 0, 5);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
        ck_assert_int_eq(event.filter, EVFILT_TIMER);
        ck_assert_int_ge(event.data, 1);
    }
    change(1, EVFILT_TIMER, EV_DELETE, 0, 0);
    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, &some), 0);
    change(2, EVFILT_TIMER, EV_ADD | EV_ONESHOT, NOTE_USECONDS, 500);
    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
    ck_assert_int_eq(refusal(2, EVFILT_TIMER, EV_DELETE), ENOENT);
}
END_TEST

static void *trigger(void *arg)
{
    struct kevent one = { .ident = 3, .filter = EVFILT_USER, .fflags = NOTE_TRIGGER };

    return kevent(queue, &one, 1, NULL, 0, NULL) == 0 ? arg : NULL;
}

START_TEST(a_thread_triggers_an_event)
{
    struct kevent event;
    pthread_t thread;
    void *result;

    change(3, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0);
    ck_assert(is_quiet());
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(pthread_create(&thread, NULL, trigger, &event), 0);
        ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), 1);
        ck_assert_uint_eq(event.ident, 3);
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_nonnull(result);
        ck_assert(is_quiet());
    }
}
END_TEST

static void ignore_signal(int number)
{
    (void)number;
}

START_TEST(signals_are_counted_and_end_a_wait)
{
    struct sigaction action = { .sa_handler = ignore_signal };
    struct kevent event;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGUSR1, &action, NULL);
    change(SIGUSR1, EVFILT_SIGNAL, EV_ADD, 0, 0);
    ck_assert(is_quiet());
    ck_assert_int_eq(raise(SIGUSR1), 0);
    ck_assert_int_eq(take(&event, 1), 1);
    ck_assert_uint_eq(event.ident, SIGUSR1);
    ck_assert_int_eq(event.data, 1);
    ck_assert(is_quiet()); /* an edge; the signal is pending still */
    change(SIGUSR1, EVFILT_SIGNAL, EV_DELETE, 0, 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);

    action.sa_handler = ignore_signal;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    ck_assert_int_eq(kevent(queue, NULL, 0, &event, 1, NULL), -1);
    ck_assert_int_eq(errno, EINTR);
}
END_TEST

START_TEST(many_take_turns)
{
    struct kevent event;
    int more[2];
    unsigned mine = 0;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, more), 0);
    change((uintptr_t)ends[0], EVFILT_READ, EV_ADD, 0, 0);
    change((uintptr_t)more[0], EVFILT_READ, EV_ADD, 0, 0);
    say("a");
    ck_assert_int_eq(write(more[1], "b", 1), 1);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(take(&event, 1), 1); /* with room for one */
        mine += event.ident == (uintptr_t)ends[0];
    }
    ck_assert_uint_eq(mine, 5);
    close(more[0]);
    close(more[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin_queue, end_queue);
    tcase_add_test(tcase, a_level_is_told_as_long_as_it_holds);
    tcase_add_test(tcase, an_edge_is_told_once);
    tcase_add_test(tcase, it_is_told_once_and_then_gone);
    tcase_add_test(tcase, what_is_disabled_is_kept);
    tcase_add_test(tcase, a_second_add_changes_the_first);
    tcase_add_test(tcase, the_end_is_told_beside_the_data);
    tcase_add_test(tcase, a_listener_tells_how_many_wait);
    tcase_add_test(tcase, an_error_comes_in_fflags);
    tcase_add_test(tcase, changes_are_refused);
    tcase_add_test(tcase, errors_are_events);
    tcase_add_test(tcase, receipts_drain_nothing);
    tcase_add_test(tcase, closing_removes_the_filters);
    tcase_add_test(tcase, a_child_has_no_queue);
    tcase_add_test(tcase, time_passes);
    tcase_add_test(tcase, a_thread_triggers_an_event);
    tcase_add_test(tcase, signals_are_counted_and_end_a_wait);
    tcase_add_test(tcase, many_take_turns);
}

TEST_MAIN("kqueue's shim", add_tests)
