/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers by TLS between their users: in the pool, and in a queue, where only
 * connections of one name and profile are alike. */
#include "session/connecting.h"

#include "text/template.h"
#include "tls/record.h"

static void keep_connection(struct told *told)
{
    keepalive_keep(told->conn, 10000);
    fixture_settle(test.fixture);
    fixture_run(test.fixture);
    ck_assert_uint_eq(told->closings, 1);
    ck_assert_int_eq(told->reason, FB_FINISHED);
}

static bool is_reused(const struct told *told)
{
    return told->conn->session->reused;
}

static void forget(const struct told *told)
{
    fb_abort(told->conn);
    fixture_settle(test.fixture);
}

START_TEST(a_kept_connection_is_for_its_name_alone)
{
    static struct fb_tls_profile other;
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    other = profile;
    peer = open_connection(&told, with());
    keep_connection(&told);
    ask(&next, with_name("two.tests"));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_profile(NULL));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_profile(&other));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_header());
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_name("one.tests:443"));
    ck_assert(is_reused(&next));
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 1);
    fb_write(next.conn, "again", 5);
    fixture_settle(test.fixture);
    ck_assert_str_eq(sealing_sent(&peer->peer), "again");
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* Its client is known to the server by the certificate. */
START_TEST(a_kept_connection_is_for_its_certificate_alone)
{
    static struct template_part part;
    static const struct template name = { &part, 1 };
    static const struct template *templates[] = { &name, &name };
    static const char *directories[] = { "/etc/a", "/etc/a" };
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    part = (struct template_part) { .text = value_own("a.pem", 5) };
    tls_profiles[1].named =
        (struct tls_named) { .names = templates, .directories = directories, .n = 2 };
    peer = open_connection(&told, with());
    keep_connection(&told);
    part.text = value_own("b.pem", 5);
    ask(&next, with());
    ck_assert(!is_reused(&next));
    forget(&next);
    part.text = value_own("a.pem", 5);
    ask(&next, with());
    ck_assert(is_reused(&next));
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* A ticket or an update of keys ends nothing; data, and an end, do. */
START_TEST(an_idle_connection_stays)
{
    static const uint8_t ticket[] = { 4, 0, 0, 3, 1, 2, 3 };
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with());
    keep_connection(&told);
    if (_i == 0)
        sealing_add(&peer->peer, TLS_HANDSHAKE, ticket, sizeof(ticket));
    else if (_i == 1)
        sealing_add_update(&peer->peer, false);
    else if (_i == 2)
        sealing_add_text(&peer->peer, "unasked");
    else
        sealing_add_close(&peer->peer);
    sealing_say(&peer->peer);
    fixture_run(test.fixture);
    ask(&next, with());
    ck_assert(is_reused(&next) == (_i <= 1));
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, _i <= 1);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* A waiting connection takes the place of a secured one, or shakes hands. */
START_TEST(a_waiting_connection_is_secured)
{
    struct told told, next;
    struct tls_client *peer, *second = NULL;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with_limit());
    ask(&next, with_limit());
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 0);
    if (_i == 0) {
        keep_connection(&told);
    } else {
        forget(&told);
        second = accept_connection();
        ck_assert_uint_eq(next.openings, 0);
        shake(second);
    }
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 1);
    ck_assert(is_reused(&next) == (_i == 0));
    tls_client_destroy(&peer);
    if (second != NULL)
        tls_client_destroy(&second);
    finish();
}
END_TEST

/* A stop before the connect has been answered holds on the connection that is taken over. */
START_TEST(a_stop_while_waiting_holds)
{
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with_limit());
    ask(&next, with_limit());
    fb_stop(next.conn);
    keep_connection(&told);
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 1);
    ck_assert(is_reused(&next));
    sealing_says(&peer->peer, "answer");
    fixture_run(test.fixture);
    ck_assert_str_eq(next.heard, "");
    fb_resume(next.conn);
    fixture_run(test.fixture);
    ck_assert_str_eq(next.heard, "answer");
    tls_client_destroy(&peer);
    finish();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_kept_connection_is_for_its_name_alone);
    tcase_add_test(tcase, a_kept_connection_is_for_its_certificate_alone);
    tcase_add_loop_test(tcase, an_idle_connection_stays, 0, 4);
    tcase_add_loop_test(tcase, a_waiting_connection_is_secured, 0, 2);
    tcase_add_test(tcase, a_stop_while_waiting_holds);
}

TEST_MAIN("connect_tls_pool", add_tests)
