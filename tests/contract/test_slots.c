/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: events find their own source, for any number of sources and after any reuse of slot
 * and descriptor. */
#include "contract/contract.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static void close_other(struct watched *watched)
{
    if (watched->other == NULL || watched->runs[EVENT_READ] > 1)
        return;
    watched->other->other = NULL;
    unwatch(&watched->other);
}

/* Watches two ready descriptors, with `then` for each. */
static void watch_two(struct fixture *fixture, struct watched *watched[2], int pairs[2][2],
    void (*then)(struct watched *watched))
{
    for (int i = 0; i < 2; i++) {
        make_pair(pairs[i]);
        watched[i] = watch_fd(fixture, pairs[i][0]);
        watched[i]->then = then;
        send_text(pairs[i][1], "both are ready");
    }
    for (int i = 0; i < 2; i++) {
        watched[i]->other = watched[1 - i];
        arm_event(watched[i], EVENT_READ);
    }
}

START_TEST(who_is_closed_within_the_batch_is_not_run)
{
    struct fixture *fixture = contract_start(_i, 2);
    struct watched *watched[2];
    int pairs[2][2];
    unsigned n = 0;

    watch_two(fixture, watched, pairs, close_other);
    fixture_turn_waiting(fixture, 1000);
    for (int i = 0; i < 2; i++) {
        close_end(pairs[i][1]);
        if (!watched[i]->source.in_use)
            continue;
        n++;
        ck_assert_uint_eq(watched[i]->runs[EVENT_READ], 1);
        unwatch(&watched[i]);
    }
    ck_assert_uint_eq(n, 1);
    fixture_stop(fixture);
}
END_TEST

/* Input for a descriptor with a new slot is reported at the new slot alone. */
START_TEST(a_moved_descriptor_is_reported_at_its_new_place)
{
    struct fixture *fixture = contract_start(_i, 2);
    struct watched *from, *to;
    int pair[2];

    make_pair(pair);
    from = watch_fd(fixture, pair[0]);
    to = watch_fd(fixture, -1);
    ck_assert_int_eq(source_arm_both(fixture->loop, &from->source), 0);
    turn_until(fixture, from->runs[EVENT_WRITE] > 0);
    source_move(fixture->loop, &from->source, &to->source);
    ck_assert_int_eq(to->source.fd, pair[0]);
    ck_assert_int_eq(from->source.fd, -1);
    unwatch(&from);
    send_text(pair[1], "for the new place");
    arm_event(to, EVENT_READ);
    turn_until(fixture, to->runs[EVENT_READ] > 0);
    ck_assert_uint_eq(receive_once(to), 17);
    unwatch(&to);
    close_end(pair[1]);
    fixture_stop(fixture);
}
END_TEST

/* Closes the second source and gives its slot to a source on a silent descriptor. */
static void replace_other(struct watched *watched)
{
    struct fixture *fixture = watched->fixture;
    struct watched *old = watched->other;
    int silent[2];

    if (old == NULL)
        return;
    make_pair(silent);
    unwatch(&watched->other);
    watched->other = watch_fd(fixture, silent[0]);
    ck_assert_ptr_eq(watched->other, old);
    arm_event(watched->other, EVENT_READ);
    watched->then = NULL;
    watched->received = (size_t)silent[1]; /* for the test to close */
}

START_TEST(a_slot_used_again_within_the_batch_is_somebody_else)
{
    struct fixture *fixture = contract_start(_i, 2);
    struct watched *watched[2];
    int pairs[2][2], survivor;

    watch_two(fixture, watched, pairs, replace_other);
    fixture_turn_waiting(fixture, 1000);
    fixture_turn_waiting(fixture, 0);
    survivor = watched[0]->received != 0 ? 0 : 1;
    ck_assert_uint_gt(watched[survivor]->runs[EVENT_READ], 0);
    ck_assert_uint_eq(watched[!survivor]->runs[EVENT_READ], 0);
    send_text((int)watched[survivor]->received, "now it is");
    turn_until(fixture, watched[!survivor]->runs[EVENT_READ] > 0);
    close_end((int)watched[survivor]->received);
    for (int i = 0; i < 2; i++) {
        close_end(pairs[i][1]);
        unwatch(&watched[i]);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_late_event_of_an_earlier_life_is_dropped)
{
    struct fixture *fixture = contract_start(_i, 1);
    int old[2], new[2], kept;
    struct watched *watched;

    make_pair(old);
    make_pair(new);
    watched = watch_fd(fixture, old[0]);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    kept = dup(old[0]); /* keeps the kernel from noticing the end of the source */
    unwatch(&watched);
    send_text(old[1], "late");
    fixture_turn_waiting(fixture, 0);
    check_quiet(fixture);

    watched = watch_fd(fixture, new[0]);
    ck_assert_uint_eq(source_index(&fixture->loop->sources, &watched->source), 0);
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    send_text(old[1], "later still");
    fixture_turn_waiting(fixture, 0);
    check_quiet(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    send_text(new[1], "in time");
    turn_until(fixture, watched->received == 7);
    close(kept);
    close(old[1]);
    close(new[1]);
    unwatch(&watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_descriptor_used_again_is_watched_anew)
{
    struct fixture *fixture = contract_start(_i, 3);
    struct watched *bystander;
    int pair[2];

    make_pair(pair);
    bystander = watch_fd(fixture, pair[0]);
    bystander->receives = true;
    arm_event(bystander, EVENT_READ);
    for (unsigned i = 0; i < 10; i++) {
        int fds[2], again[2], fd;
        struct watched *watched;

        make_pair(fds);
        fd = fds[0];
        watched = watch_fd(fixture, fd);
        arm_event(watched, EVENT_READ);
        arm_event(watched, EVENT_WRITE);
        send_text(fds[1], "left unread");
        if (i % 2 == 0)
            fixture_turn_waiting(fixture, 1000);
        unwatch(&watched);
        close(fds[1]);

        make_pair(again);
        ck_assert_int_eq(again[0], fd);
        watched = watch_fd(fixture, fd);
        watched->receives = true;
        arm_event(watched, EVENT_READ);
        check_quiet(fixture);
        send_text(again[1], "new");
        turn_until(fixture, watched->received == 3);
        ck_assert_uint_eq(watched->runs[EVENT_WRITE], 0);
        unwatch(&watched);
        close(again[1]);
        send_text(pair[1], "x");
        turn_until(fixture, bystander->received == i + 1);
    }
    close_end(pair[1]);
    unwatch(&bystander);
    fixture_stop(fixture);
}
END_TEST

static size_t many_for(const struct mechanism *mechanism)
{
    struct rlimit limits;
    size_t most = mechanism->descriptors_max > 0 ? mechanism->descriptors_max : 4096;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limits), 0);
    if (limits.rlim_cur < most + 64) {
        limits.rlim_cur = limits.rlim_max < most + 64 ? limits.rlim_max : most + 64;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limits), 0);
    }
    if (limits.rlim_cur < most)
        most = limits.rlim_cur;
    return (most - 64) / 2; /* a pair per source, and room for the test's descriptors */
}

static void use_many(struct fixture *fixture, size_t n)
{
    struct watched **watched = calloc(n, sizeof(struct watched *));
    int *peers = calloc(n, sizeof(*peers));

    ck_assert_ptr_nonnull(watched);
    ck_assert_ptr_nonnull(peers);
    for (size_t i = 0; i < n; i++) {
        int fds[2];

        make_pair(fds);
        watched[i] = watch_fd(fixture, fds[0]);
        watched[i]->receives = true;
        arm_event(watched[i], EVENT_READ);
        peers[i] = fds[1];
    }
    for (size_t i = 0; i < n; i++)
        send_text(peers[i], "x");
    turn_until_quiet(fixture);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(watched[i]->runs[EVENT_READ], 1);

    /* every second slot goes, so a dense table moves entries */
    for (size_t i = 0; i < n; i += 2)
        unwatch(&watched[i]);
    for (size_t i = 1; i < n; i += 2)
        send_text(peers[i], "x");
    turn_until_quiet(fixture);
    for (size_t i = 1; i < n; i += 2) {
        ck_assert_uint_eq(watched[i]->received, 2);
        unwatch(&watched[i]);
    }
    for (size_t i = 0; i < n; i++)
        close_end(peers[i]);
    free(watched);
    free(peers);
}

START_TEST(many_sources_are_all_served)
{
    size_t n = many_for(mechanism_at(_i));
    struct fixture *fixture = contract_start(_i, (uint32_t)n);

    ck_assert_uint_gt(n, 400);
    use_many(fixture, n);
    fixture_stop(fixture);
}
END_TEST

START_TEST(so_they_are_with_the_least_values_of_its_options)
{
    const struct mechanism *mechanism = mechanism_at(_i);
    struct mechanism_values least = mechanism_defaults(mechanism);
    struct fixture *fixture;

    for (int i = 0; i < MECHANISM_OPTIONS; i++)
        least.of[i] = mechanism->options[i].least;
    fixture = contract_start_with(mechanism, least, 100, NULL);
    use_many(fixture, 100);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_descriptor_beyond_its_limit_is_refused)
{
    const struct mechanism *mechanism = mechanism_at(_i);
    struct fixture *fixture = contract_start(_i, 2);
    struct loop *loop = fixture->loop;
    struct watched *watched, *fine;
    struct rlimit limits;
    int most = (int)mechanism->descriptors_max, fds[2], beyond;

    if (most == 0) { /* no limit */
        fixture_stop(fixture);
        return;
    }
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limits), 0);
    limits.rlim_cur = limits.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limits), 0);
    make_pair(fds);
    beyond = fcntl(fds[0], F_DUPFD_CLOEXEC, most);
    ck_assert_int_ge(beyond, most);
    watched = watch_fd(fixture, beyond);
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
        errno = 0;
        ck_assert_int_eq(source_arm(loop, &watched->source, direction), -1);
        ck_assert_int_eq(errno, EMFILE);
    }
    errno = 0;
    ck_assert_int_eq(source_arm_both(loop, &watched->source), -1);
    ck_assert_int_eq(errno, EMFILE);
    ck_assert_int_eq(source_arm_listener(loop, &watched->source, false), -1);
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [alert] a listener could not be watched (24: Too many open files)\n");
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
        ck_assert(
            !watched->source.events[direction].armed && !watched->source.events[direction].active);

    fine = watch_fd(fixture, fds[0]);
    fine->receives = true;
    arm_event(fine, EVENT_READ);
    send_text(fds[1], "x");
    turn_until(fixture, fine->received == 1);
    unwatch(&watched);
    unwatch(&fine);
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(two_loops_do_not_disturb_each_other)
{
    struct fixture *fixture[2] = { contract_start(_i, 4), contract_start(_i, 4) };
    struct watched *watched[2];
    int pairs[2][2];

    for (int i = 0; i < 2; i++) {
        make_pair(pairs[i]);
        watched[i] = watch_fd(fixture[i], pairs[i][0]);
        watched[i]->receives = true;
        arm_event(watched[i], EVENT_READ);
    }
    ck_assert_ptr_ne(fixture[0]->loop->mechanism_state, fixture[1]->loop->mechanism_state);
    send_text(pairs[1][1], "second");
    check_quiet(fixture[0]);
    turn_until(fixture[1], watched[1]->received == 6);
    unwatch(&watched[1]);
    fixture_stop(fixture[1]);
    send_text(pairs[0][1], "first");
    turn_until(fixture[0], watched[0]->received == 5);
    unwatch(&watched[0]);
    close_end(pairs[0][1]);
    close_end(pairs[1][1]);
    fixture_stop(fixture[0]);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_loop_test(tcase, a_moved_descriptor_is_reported_at_its_new_place, from, to);
    tcase_add_loop_test(tcase, who_is_closed_within_the_batch_is_not_run, from, to);
    tcase_add_loop_test(tcase, a_slot_used_again_within_the_batch_is_somebody_else, from, to);
    tcase_add_real_test(tcase, a_late_event_of_an_earlier_life_is_dropped, from, to);
    tcase_add_real_test(tcase, a_descriptor_used_again_is_watched_anew, from, to);
    tcase_add_loop_test(tcase, many_sources_are_all_served, from, to);
    tcase_add_loop_test(tcase, so_they_are_with_the_least_values_of_its_options, from, to);
    tcase_add_real_test(tcase, a_descriptor_beyond_its_limit_is_refused, from, to);
    tcase_add_loop_test(tcase, two_loops_do_not_disturb_each_other, from, to);
}

CONTRACT_MAIN("slots", add_tests)
