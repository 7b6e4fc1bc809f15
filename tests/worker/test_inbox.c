/* SPDX-License-Identifier: BSD-2-Clause */
/* The inbox of a worker on the real kernel, with the test as the master and the second worker:
 * messages waiting without memory, and workers gone meanwhile. */
#include "support/fixture_worker.h"
#include "support/wait.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#define MARK 0x6d61726b

static char calls[256];
static int inbox; /* the sending end */

static void note(const char *what)
{
    strcat(calls, what);
}

static int note_message(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    (void)worker;
    (void)state;
    ck_assert_uint_ne(from, 0);
    ck_assert_uint_eq(message.n, 5);
    note("message ");
    return 0;
}

static void note_came(fb_worker *worker, void *state, fb_ref id)
{
    (void)worker;
    (void)state;
    (void)id;
    note("came ");
}

static void note_gone(fb_worker *worker, void *state, fb_ref id)
{
    (void)worker;
    (void)state;
    (void)id;
    note("gone ");
}

static const fb_worker_ops worker_ops = {
    .size = sizeof(worker_ops),
    .message = note_message,
    .worker_came = note_came,
    .worker_gone = note_gone,
};

static void send_order(struct fixture *fixture, uint32_t kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    ck_assert_int_eq(channel_send(fixture->master, &message), 0);
}

static struct fixture *start(void)
{
    struct fixture_worker_options options = { .connections = 16, .processes = 2 };
    struct fixture *fixture;
    int ends[2];

    options.mechanism = mechanism_find(NULL);
    fixture = fixture_prepare_worker(&options);
    fixture->server.protocol.worker_ops = &worker_ops;
    fixture->worker->protocols[0] = (struct fb_worker) {
        .worker = fixture->worker,
        .protocol = &fixture->server.protocol,
        .started = true,
        .mark = MARK,
    };
    ck_assert_int_eq(channel_open_inbox(ends), 0);
    send_order(fixture, MESSAGE_INBOX, 0, ends[0]);
    close(ends[0]);
    inbox = ends[1];
    worker_turn(fixture->worker);
    return fixture;
}

static void stop(struct fixture *fixture)
{
    close(inbox);
    fixture->worker->protocols[0].started = false;
    fixture_stop(fixture);
}

static void send_packet(
    struct fixture *fixture, struct slot_id from, uint64_t outcome, const void *p, size_t n)
{
    struct {
        struct message_head head;
        uint8_t bytes[16];
    } packet = { .head = { .number = 1,
                     .from = references_of_slot(from),
                     .to = references_own_worker(fixture->worker),
                     .protocol = MARK,
                     .outcome = outcome } };

    memcpy(packet.bytes, p, n);
    ck_assert_int_eq(send(inbox, &packet, sizeof(packet.head) + n, MSG_DONTWAIT),
        (ssize_t)(sizeof(packet.head) + n));
}

/* The retry timer ends each wait. */
static void turn_until(struct fixture *fixture, const char *expected)
{
    for (int i = 0; i < 1000 && strcmp(calls, expected) != 0; i++) {
        worker_turn(fixture->worker);
        worker_check(fixture->worker);
    }
    ck_assert_str_eq(calls, expected);
}

/* Messages wait while there is no memory, which is logged; then memory is there again. */
static void turn_without_memory(struct fixture *fixture, const char *expected)
{
    for (int i = 0; i < 10; i++) {
        worker_turn(fixture->worker);
        worker_check(fixture->worker);
    }
    ck_assert_str_eq(calls, expected);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "no memory to receive messages"));
    fixture->memory.until_failure = UINT_MAX;
}

/* A greeting behind the news of the sender's end does not announce the sender a second time. */
START_TEST(who_has_gone_does_not_come)
{
    struct fixture *fixture = start();
    struct slot_id from = fixture_take_slot(fixture);
    uint64_t mark = MARK;

    send_packet(fixture, from, MESSAGE_IS_GREETING, &mark, sizeof(mark));
    turn_until(fixture, "came ");
    fixture->memory.until_failure = 0; /* a reply is spare */
    send_packet(fixture, from, MESSAGE_IS_SENT, "hello", 5);
    send_packet(fixture, from, MESSAGE_IS_GREETING, &mark, sizeof(mark));
    send_order(fixture, MESSAGE_SIBLING_GONE, slot_incarnation(from), -1);
    turn_without_memory(fixture, "came message ");
    turn_until(fixture, "came message gone ");
    stop(fixture);
}
END_TEST

START_TEST(messages_wait_for_memory)
{
    struct fixture *fixture = start();
    struct slot_id from = fixture_take_slot(fixture);
    uint64_t mark = MARK;

    send_packet(fixture, from, MESSAGE_IS_GREETING, &mark, sizeof(mark));
    turn_until(fixture, "came ");
    send_packet(fixture, from, MESSAGE_IS_SENT, "hello", 5);
    turn_until(fixture, "came message ");
    fixture->memory.until_failure = 0; /* a reply is spare */
    send_packet(fixture, from, MESSAGE_IS_SENT, "hello", 5);
    send_packet(fixture, from, MESSAGE_IS_SENT, "hello", 5);
    send_order(fixture, MESSAGE_SIBLING_GONE, slot_incarnation(from), -1);
    turn_without_memory(fixture, "came message message ");
    turn_until(fixture, "came message message message gone ");
    stop(fixture);
}
END_TEST

/* Whether the worker has asked for the inbox of worker `id`. */
static bool asks_for(struct fixture *fixture, struct slot_id id)
{
    struct channel_message message;

    worker_turn(fixture->worker);
    worker_check(fixture->worker);
    while (channel_receive(fixture->master, &message) == CHANNEL_DONE)
        if (message.kind == MESSAGE_INBOX_WANTED && message.argument == slot_incarnation(id))
            return true;
    return false;
}

/* A worker without a descriptor for a receiver's inbox asks again: nobody has gone. */
START_TEST(an_inbox_waits_for_a_descriptor)
{
    struct fixture *fixture = start();
    struct slot_id from = fixture_take_slot(fixture);
    uint64_t mark = MARK;
    struct message_head greeting;
    int ends[2];

    send_packet(fixture, from, MESSAGE_IS_GREETING, &mark, sizeof(mark));
    WAIT_FOR(asks_for(fixture, from));
    for (int i = 0; i < 2; i++) {
        send_order(fixture, MESSAGE_SIBLING_INBOX, slot_incarnation(from), -1);
        WAIT_FOR(asks_for(fixture, from));
    }
    ck_assert_str_eq(calls, "came ");
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "messages to another worker wait"));
    ck_assert_int_eq(channel_open_inbox(ends), 0);
    send_order(fixture, MESSAGE_SIBLING_INBOX, slot_incarnation(from), ends[1]);
    worker_turn(fixture->worker);
    ck_assert_int_gt(recv(ends[0], &greeting, sizeof(greeting), 0), 0);
    ck_assert_uint_eq(greeting.to, references_of_slot(from));
    send_order(fixture, MESSAGE_SIBLING_GONE, slot_incarnation(from), -1);
    turn_until(fixture, "came gone ");
    close(ends[0]);
    close(ends[1]);
    stop(fixture);
}
END_TEST

/* How many more inboxes the worker asks for. */
static unsigned count_asked(struct fixture *fixture)
{
    struct channel_message message;
    unsigned n = 0;

    worker_turn(fixture->worker);
    worker_check(fixture->worker);
    while (channel_receive(fixture->master, &message) == CHANNEL_DONE)
        n += message.kind == MESSAGE_INBOX_WANTED;
    return n;
}

/* Senders may be invented: the master is not asked for many of them at once. */
START_TEST(few_inboxes_are_asked_for_at_once)
{
    enum { MOST = 64, SENDERS = MOST + 2 }; /* ASKED_MAX */
    struct fixture *fixture = start();
    struct slot_id from = fixture_take_slot(fixture);
    unsigned first = from.serial, asked = 0;
    uint64_t mark = MARK;

    for (; from.serial < first + SENDERS; from.serial++) {
        send_packet(fixture, from, MESSAGE_IS_GREETING, &mark, sizeof(mark));
        asked += count_asked(fixture);
        calls[0] = '\0';
    }
    ck_assert_uint_eq(asked, MOST);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(count_asked(fixture), 0); /* the retry timer ends each wait */
    from.serial = first;
    send_order(fixture, MESSAGE_SIBLING_GONE, slot_incarnation(from), -1);
    WAIT_FOR(count_asked(fixture) == 1);
    stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, messages_wait_for_memory);
    tcase_add_test(tcase, who_has_gone_does_not_come);
    tcase_add_test(tcase, an_inbox_waits_for_a_descriptor);
    tcase_add_test(tcase, few_inboxes_are_asked_for_at_once);
}

TEST_MAIN("inbox", add_tests)
