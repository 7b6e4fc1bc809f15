/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection with TLS that the kernel seals, from the middle of the connection on. The
 * simulated kernel loses sealed bytes at an end, as Linux does. */
#include "tls/sealing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUCH ((size_t)300000)
/* Bytes of a sealed record of n bytes. */
#define SEALED(n) ((size_t)TLS_HEADER + (n) + 1 + CIPHER_TAG)

static void open_offloading(struct sealed *sealed, enum fixture_events events)
{
    *sealed = (struct sealed) { .fixture = sealing_start(events, 2) };
    sealed->fixture->test = sealed;
    sim_splice(sealed->fixture->sim);
    sealed->owner = owner_open(sealed->fixture);
    sealed->owner->data = sealed_collect;
    sealing_begin(&sealed->peer, sealed->owner);
    layer_allow_offload(sealed->owner->conn);
    fixture_run(sealed->fixture);
}

static void settle_sealed(struct sealed *sealed)
{
    fixture_settle(sealed->fixture);
    fixture_run(sealed->fixture);
}

static int pattern_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, sealing_pattern(), SEALING_PATTERN), (ssize_t)SEALING_PATTERN);
    return fd;
}

/* Sends a part of the pattern from a file. */
static void send_part(struct sealed *sealed, size_t from, size_t n)
{
    ck_assert_int_eq(conn_write_file(sealed->owner->conn, pattern_file(), from, n), 0);
    settle_sealed(sealed);
}

/* Makes the kernel seal, with MUCH of the pattern sent. */
static void offload_sealed(struct sealed *sealed)
{
    send_part(sealed, 0, MUCH);
    ck_assert(sealed->owner->socket->sealing);
    ck_assert(sealing_sent_pattern(&sealed->peer, MUCH));
}

START_TEST(a_file_goes_past_the_process)
{
    static const size_t rooms[] = { 0, 1, 30, 65536, 65658, 70000, SIZE_MAX };

    for (unsigned i = 0; i < countof(rooms); i++) {
        struct sealed sealed;
        struct fb_conn *conn;

        open_offloading(&sealed, _i);
        conn = sealed.owner->conn;
        sim_set_room(sealed.owner->socket, rooms[i]);
        conn_write(conn, sealing_pattern(), 10);
        ck_assert_int_eq(conn_write_file(conn, pattern_file(), 10, 500000), 0);
        conn_write(conn, sealing_pattern() + 500010, 90);
        settle_sealed(&sealed);
        sealed_let_all_leave(&sealed);
        ck_assert(sealed.owner->socket->sealing);
        ck_assert(sealing_sent_pattern(&sealed.peer, 500100));
        ck_assert_uint_eq(conn->sent, 500100);
        sealing_says(&sealed.peer, "input");
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.got.n, 5); /* goes on to be opened here */
        conn_close(conn);
        settle_sealed(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, 500100) && sealed.peer.closed);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(the_keys_are_forgotten)
{
    uint8_t key[CIPHER_KEY_MOST], secret[TLS_SECRET_MOST];
    const uint8_t *layer;
    struct sealed sealed;

    open_offloading(&sealed, _i);
    layer = (const uint8_t *)layer_of(sealed.owner->conn);
    memcpy(key, layer_of(sealed.owner->conn)->out.key, sizeof(key));
    memcpy(secret, layer_of(sealed.owner->conn)->out.secret, sizeof(secret));
    offload_sealed(&sealed);
    ck_assert_ptr_null(memmem(layer, sizeof(struct layer), key, 8));
    ck_assert_ptr_null(memmem(layer, sizeof(struct layer), secret, 8));
    sealed_close(&sealed);
}
END_TEST

START_TEST(little_stays_with_the_layer)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    send_part(&sealed, 0, LAYER_FILE_LEAST - 1);
    ck_assert(sealing_sent_pattern(&sealed.peer, LAYER_FILE_LEAST - 1));
    ck_assert(!sealed.owner->socket->sealing);
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_peer_of_short_records_stays_with_the_layer)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    layer_of(sealed.owner->conn)->plain_most = 1000;
    send_part(&sealed, 0, MUCH);
    ck_assert(sealing_sent_pattern(&sealed.peer, MUCH));
    ck_assert_uint_eq(sealed.peer.longest, 1000);
    ck_assert(!sealed.owner->socket->sealing);
    sealed_close(&sealed);
}
END_TEST

/* Records that the kernel has sealed, and the socket has no room for, would be lost by the end. */
START_TEST(an_end_waits_for_what_is_sealed)
{
    static const size_t sealed_n = 50000 + 4 * SEALED(0), rooms[] = { 1, 8000, 16000, 49999,
        sealed_n, sealed_n + 1, sealed_n + SEALED(2) - 1, sealed_n + SEALED(2) };

    for (unsigned i = 0; i < countof(rooms); i++) {
        size_t room = rooms[i];
        struct sealed sealed;

        open_offloading(&sealed, _i);
        offload_sealed(&sealed);
        sim_set_room(sealed.owner->socket, room);
        conn_write(sealed.owner->conn, sealing_pattern() + MUCH, 50000);
        conn_close(sealed.owner->conn);
        settle_sealed(&sealed);
        fixture_pass(sealed.fixture, 1000);
        ck_assert_int_eq(sealed.owner->socket->closed, room == sealed_n + SEALED(2));
        sealing_look(&sealed.peer);
        ck_assert_int_eq(sealed.peer.plain.n == MUCH + 50000, room >= sealed_n);
        sealed_let_all_leave(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, MUCH + 50000) && sealed.peer.closed);
        ck_assert(sealed.owner->socket->closed);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_kernel_without_it_changes_nothing)
{
    static const int errors[] = { ENOENT, EOPNOTSUPP, ENOTCONN, ENOBUFS };

    for (unsigned i = 0; i < countof(errors); i++) {
        struct sealed sealed;
        const char *log;

        open_offloading(&sealed, _i);
        sealed.fixture->sim->seal_error = errors[i];
        for (unsigned n = 0; n < 3; n++)
            send_part(&sealed, n * MUCH, MUCH);
        ck_assert(sealing_sent_pattern(&sealed.peer, 3 * MUCH));
        ck_assert(!sealed.owner->socket->sealing);
        log = fixture_logged(sealed.fixture);
        if (errors[i] == ENOTCONN || errors[i] == ENOBUFS) { /* an affair of this connection */
            ck_assert_str_eq(log, "");
            ck_assert_uint_eq(sealed.owner->conn->net->layers->lacks, 0);
        } else {
            ck_assert_ptr_nonnull(strstr(log, "TLS: the kernel does not seal by PLAIN"));
            ck_assert_ptr_eq(strchr(log, '\n'), strrchr(log, '\n'));
            ck_assert_uint_eq(sealed.owner->conn->net->layers->lacks, 1u << CIPHER_PLAIN);
        }
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_kernel_that_is_busy_is_asked_again)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    sealed.fixture->sim->seal_error = EAGAIN;
    send_part(&sealed, 0, MUCH);
    ck_assert(!sealed.owner->socket->sealing);
    sealed.fixture->sim->seal_error = 0;
    send_part(&sealed, MUCH, MUCH);
    ck_assert(sealed.owner->socket->sealing);
    ck_assert(sealing_sent_pattern(&sealed.peer, 2 * MUCH));
    ck_assert_str_eq(fixture_logged(sealed.fixture), "");
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_connection_without_leave_stays_with_the_layer)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    layer_of(sealed.owner->conn)->offload = LAYER_SEALS;
    send_part(&sealed, 0, MUCH);
    ck_assert(sealing_sent_pattern(&sealed.peer, MUCH));
    ck_assert(!sealed.owner->socket->sealing);
    sealed_close(&sealed);
}
END_TEST

START_TEST(an_update_of_the_peer_alone_is_followed)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    offload_sealed(&sealed);
    sealing_add_update(&sealed.peer, false);
    sealing_says(&sealed.peer, "new keys");
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.got.n, 8);
    sealed_close(&sealed);
}
END_TEST

/* The kernel takes no new keys. */
START_TEST(an_update_that_is_asked_for_ends_the_session)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    offload_sealed(&sealed);
    sealing_add_update(&sealed.peer, true);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    sealed_check_alert(&sealed, TLS_INTERNAL_ERROR, "the keys cannot be updated");
    ck_assert(sealing_sent_pattern(&sealed.peer, MUCH));
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_bad_record_is_answered_by_an_alert)
{
    struct sealed sealed;

    open_offloading(&sealed, _i);
    offload_sealed(&sealed);
    sealed.peer.out.sequence++;
    sealing_says(&sealed.peer, "wrong");
    fixture_run(sealed.fixture);
    sealed_check_alert(&sealed, TLS_BAD_RECORD_MAC, "a record cannot be opened");
    sealed_close(&sealed);
}
END_TEST

START_TEST(keys_that_are_used_up_end_the_session)
{
    const uint64_t last = ((uint64_t)1 << 24) - 3;
    struct sealed sealed;
    struct fb_conn *conn;

    open_offloading(&sealed, _i);
    conn = sealed.owner->conn;
    layer_of(conn)->out.sequence = sealed.peer.in.sequence = last;
    ck_assert(conn->source.io->offload(&conn->source));
    ck_assert_int_eq(layer_of(conn)->offload, LAYER_OFFLOADED);
    layer_of(conn)->sealing.most += 100; /* an estimate, which is looked at */
    for (unsigned i = 0; i < 3; i++)
        sealed_write(&sealed, "more", 4, SIZE_MAX);
    ck_assert_str_eq(sealing_sent(&sealed.peer), "moremoremore");
    ck_assert_str_eq(fixture_logged(sealed.fixture), "");
    sealed_write(&sealed, "more", 4, SIZE_MAX);
    ck_assert_str_eq(sealing_sent(&sealed.peer), "moremoremore");
    ck_assert_ptr_nonnull(strstr(fixture_logged(sealed.fixture), "the keys cannot be updated"));
    ck_assert_int_eq(sealed.owner->reason, FB_IO_ERROR);
    sealed_close(&sealed);
}
END_TEST

/* ---- Pipes ---- */

/* Pipes another connection, without TLS, to the connection with TLS. */
static struct owner *pipe_sealed(struct sealed *sealed)
{
    struct owner *plain = owner_open(sealed->fixture);

    ck_assert_int_eq(owner_pipe(plain, sealed->owner, 0), 0);
    settle_sealed(sealed);
    return plain;
}

/* Lets the plain end receive a part of the pattern, piece by piece. */
static void say_plain(struct sealed *sealed, struct owner *plain, size_t from, size_t n)
{
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < 5000 ? n - at : 5000;
        sim_say(plain->socket, sealing_pattern() + from + at, part);
        fixture_run(sealed->fixture);
    }
}

static void end_piped(struct sealed *sealed, struct owner *plain)
{
    sim_end(plain->socket);
    fixture_run(sealed->fixture);
    sealed_let_all_leave(sealed);
    sealing_look(&sealed->peer);
    ck_assert(sealed->peer.closed);
    sealing_add_close(&sealed->peer);
    sealing_say(&sealed->peer);
    sim_end(sealed->owner->socket);
    fixture_run(sealed->fixture);
    ck_assert_int_eq(plain->reason, FB_FINISHED);
    ck_assert_int_eq(sealed->owner->reason, FB_FINISHED);
    owner_free(&plain);
    sealed_close(sealed);
}

START_TEST(a_pipe_goes_past_the_process)
{
    static const size_t rooms[] = { 1, 30000, 400000, SIZE_MAX };

    for (unsigned i = 0; i < countof(rooms); i++) {
        struct sealed sealed;
        struct owner *plain;
        unsigned recvs;

        open_offloading(&sealed, _i);
        plain = pipe_sealed(&sealed);
        say_plain(&sealed, plain, 0, 260000);
        ck_assert_uint_eq(plain->socket->splices, 0);
        say_plain(&sealed, plain, 260000, 40000);
        ck_assert(sealed.owner->socket->sealing);
        sim_set_room(sealed.owner->socket, rooms[i]);
        recvs = plain->socket->recvs - plain->socket->splices;
        say_plain(&sealed, plain, 300000, 600000);
        ck_assert_uint_gt(plain->socket->splices, 0);
        ck_assert_uint_eq(plain->socket->recvs - plain->socket->splices, recvs);
        sealed_let_all_leave(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, 900000));
        sealing_says(&sealed.peer, "back");
        fixture_run(sealed.fixture);
        ck_assert_str_eq(owner_sent(plain), "back");
        sim_set_room(sealed.owner->socket, rooms[i]);
        end_piped(&sealed, plain);
    }
}
END_TEST

/* The layer's own output goes first: the pipe looks again later. */
START_TEST(held_output_puts_a_pipe_off)
{
    struct sealed sealed;
    struct owner *plain;

    open_offloading(&sealed, _i);
    plain = pipe_sealed(&sealed);
    say_plain(&sealed, plain, 0, 255000);
    sim_set_room(sealed.owner->socket, 10);
    say_plain(&sealed, plain, 255000, 5000);
    ck_assert(sealed.owner->conn->source.held);
    sim_say(plain->socket, sealing_pattern() + 260000, 10000);
    fixture_run(sealed.fixture);
    ck_assert(!sealed.owner->socket->sealing);
    sealed_let_all_leave(&sealed);
    say_plain(&sealed, plain, 270000, 100000);
    ck_assert(!sealed.owner->socket->sealing);
    say_plain(&sealed, plain, 370000, 300000);
    ck_assert(sealed.owner->socket->sealing);
    ck_assert(sealing_sent_pattern(&sealed.peer, 670000));
    end_piped(&sealed, plain);
}
END_TEST

START_TEST(a_pipe_without_the_kernel_is_copied)
{
    struct sealed sealed;
    struct owner *plain;

    open_offloading(&sealed, _i);
    sealed.fixture->sim->seal_error = ENOENT;
    plain = pipe_sealed(&sealed);
    say_plain(&sealed, plain, 0, 900000);
    ck_assert_uint_eq(plain->socket->splices, 0);
    ck_assert(sealing_sent_pattern(&sealed.peer, 900000));
    fixture_logged(sealed.fixture);
    end_piped(&sealed, plain);
}
END_TEST

/* ---- Trouble ---- */

/* Part sends, needless "again" and late events change nothing of what arrives. */
START_TEST(trouble_changes_nothing)
{
    static const struct sim_trouble trouble = {
        .partial_send = 300, .partial_recv = 300, .again = 300, .spurious = 100, .late = 200
    };

    for (unsigned seed = 1; seed <= 40; seed++) {
        bool pipes = seed % 2 == 0;
        struct owner *plain = NULL;
        struct sealed sealed;

        open_offloading(&sealed, _i);
        sim_trouble(sealed.fixture->sim, seed, &trouble);
        if (pipes) {
            plain = pipe_sealed(&sealed);
            say_plain(&sealed, plain, 0, 700000);
        } else {
            send_part(&sealed, 0, 350000);
            send_part(&sealed, 350000, 350000);
        }
        sim_set_room(sealed.owner->socket, sim_random(sealed.fixture->sim, 40000));
        if (pipes)
            sim_say(plain->socket, sealing_pattern() + 700000, 50000);
        else
            conn_write(sealed.owner->conn, sealing_pattern() + 700000, 50000);
        if (!pipes)
            conn_close(sealed.owner->conn);
        settle_sealed(&sealed);
        sealed_let_all_leave(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, 750000));
        if (pipes) {
            end_piped(&sealed, plain);
        } else {
            ck_assert(sealed.peer.closed);
            sealed_close(&sealed);
        }
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_file_goes_past_the_process, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_keys_are_forgotten, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, little_stays_with_the_layer, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_peer_of_short_records_stays_with_the_layer, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_end_waits_for_what_is_sealed, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_kernel_without_it_changes_nothing, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_kernel_that_is_busy_is_asked_again, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_connection_without_leave_stays_with_the_layer, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_update_of_the_peer_alone_is_followed, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_update_that_is_asked_for_ends_the_session, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_bad_record_is_answered_by_an_alert, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, keys_that_are_used_up_end_the_session, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_pipe_goes_past_the_process, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, held_output_puts_a_pipe_off, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_pipe_without_the_kernel_is_copied, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, trouble_changes_nothing, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_kernel", add_tests)
