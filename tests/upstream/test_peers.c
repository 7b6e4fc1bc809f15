/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of peers replaced while sessions remember tries. */
#include "upstream/groups.h"

static struct resolve_found address_of(const char *text, bool backup)
{
    struct fb_target target;

    ck_assert_ptr_null(target_parse(text, false, &target));
    return (struct resolve_found) { .address = target.address, .backup = backup };
}

/* Gives the server the addresses `ports`, and checks the resulting list. */
static void replace(
    struct group *group, unsigned server, const char *ports, const char *backups, const char *after)
{
    struct resolve_found addresses[64];
    char list[512] = "", text[32];
    unsigned n = 0;

    for (const char *p = ports; *p != '\0'; p++) {
        snprintf(text, sizeof(text), "127.0.0.9:%d", *p);
        addresses[n++] = address_of(text, strchr(backups, *p) != NULL);
    }
    ck_assert_int_eq(
        peers_replace(group->upstream.peers, &group->servers[server], addresses, n), 0);
    for (unsigned i = 0; i < group->upstream.peers->n; i++) {
        const struct peer *peer = group_peer(group, i);

        if (peer->server->target == NULL)
            snprintf(list + strlen(list), 2, "%c", atoi(strchr(peer->target.text, ':') + 1));
        else
            snprintf(list + strlen(list), 2, "%d", (int)(peer->server - group->servers));
    }
    ck_assert_str_eq(list, after);
}

static struct group *create_group(void)
{
    struct group *group = group_create();

    group_add(group, 1);
    group_add(group, 1)->target = NULL;
    group_add(group, 1);
    group_add(group, 1)->backup = true;
    group_open(group);
    return group;
}

START_TEST(list_has_the_order_of_the_configuration)
{
    struct group *group = create_group();

    replace(group, 1, "", "", "023");
    replace(group, 1, "ab", "", "0ab23");
    replace(group, 1, "ba", "", "0ba23");
    replace(group, 1, "xay", "x", "0ay2x3");
    replace(group, 1, "aa", "", "0aa23");
    replace(group, 1, "", "", "023");
    ck_assert_uint_eq(group->upstream.peers->index_n, 3);
    group_close(&group);
}
END_TEST

START_TEST(peer_that_stays_keeps_its_state)
{
    struct group *group = create_group();
    struct peer *peer;

    replace(group, 1, "ab", "", "0ab23");
    peer = group_peer(group, 2);
    peer->state->sessions = 7;
    replace(group, 1, "cdb", "", "0cdb23");
    ck_assert_ptr_eq(group_peer(group, 3), peer);
    ck_assert_uint_eq(group_peer(group, 3)->state->sessions, 7);
    group_close(&group);
}
END_TEST

START_TEST(peer_that_goes_lasts_until_its_try_ends)
{
    struct group *group = create_group();
    struct choice choice;

    replace(group, 1, "a", "", "0a23");
    group_begin(group, &choice);
    ck_assert_int_eq(group_next(group, &choice), 'a');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'b');
    ck_assert_str_eq(choice.peer->target.text, "127.0.0.9:97");
    replace(group, 1, "c", "", "0c23");
    ck_assert_str_eq(choice.peer->target.text, "127.0.0.9:97");
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'c');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'b');
    ck_assert_str_eq(choice.peer->target.text, "127.0.0.9:99");
    choice_end(&choice, FB_TRY_UNUSED);
    group_close(&group);
}
END_TEST

START_TEST(what_was_tried_survives_a_replacement)
{
    struct group *group = create_group();
    struct choice choice;

    replace(group, 1, "ab", "", "0ab23");
    group_begin(group, &choice);
    for (int i = 0; i < 3; i++) {
        group_next(group, &choice);
        choice_end(&choice, FB_TRY_FAILED);
    }
    ck_assert_uint_eq(choice.left, 2);
    replace(group, 1, "xb", "", "0xb23"); /* x has the index that a had */
    ck_assert_int_eq(group_next(group, &choice), 'c');
    ck_assert_uint_eq(choice.left, 2);
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'b');
    ck_assert_str_eq(choice.peer->target.text, "127.0.0.9:120");
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), 'd');
    choice_end(&choice, FB_TRY_FAILED);
    ck_assert_int_eq(group_next(group, &choice), '-');
    group_close(&group);
}
END_TEST

START_TEST(more_servers_than_bits_of_a_word_are_tried_once_each)
{
    struct group *group = group_create();
    struct choice choice;

    for (int i = 0; i < GROUP_SERVERS; i++)
        group_add(group, 1)->max_fails = 0;
    group->servers[0].target = NULL;
    group_open(group);
    group_begin(group, &choice);
    for (unsigned i = 1; i < GROUP_SERVERS; i++) {
        ck_assert_int_eq(choice_next(&choice), FB_CHOICE_SERVER);
        ck_assert_ptr_eq(choice.peer->server, &group->servers[i]);
        choice_end(&choice, FB_TRY_FAILED);
    }
    ck_assert_int_eq(choice_next(&choice), FB_CHOICE_NONE);
    for (unsigned n = 1; n < 64; n += 31) {
        struct resolve_found addresses[64];

        for (unsigned i = 0; i < n; i++)
            addresses[i] = address_of("127.0.0.9:97", false);
        ck_assert_int_eq(peers_replace(group->upstream.peers, &group->servers[0], addresses, n), 0);
    }
    for (unsigned i = 0; i < 63; i++) {
        ck_assert_int_eq(choice_next(&choice), FB_CHOICE_SERVER);
        ck_assert_ptr_eq(choice.peer->server, &group->servers[0]);
        ck_assert_uint_eq(choice.left, 62 - i);
        choice_end(&choice, FB_TRY_FAILED);
    }
    ck_assert_int_eq(choice_next(&choice), FB_CHOICE_NONE);
    choice_done(&choice);
    group_close(&group);
}
END_TEST

START_TEST(group_without_addresses_has_no_server)
{
    struct group *group = group_create();

    group_add(group, 1)->target = NULL;
    group_open(group);
    group_expect(group, "-");
    replace(group, 0, "a", "", "a");
    group_expect(group, "aa");
    ck_assert_int_eq(group_session(group, FB_TRY_FAILED), 'a');
    group_expect(group, "aa");
    group_close(&group);
}
END_TEST

/* Memory with a failing allocation after a number of pieces. */
struct scarce {
    struct memory memory;
    unsigned left;
};

static void *scarce_alloc(const struct memory *memory, size_t n)
{
    struct scarce *scarce = container_of(memory, struct scarce, memory);

    return scarce->left-- == 0 ? NULL : malloc(n);
}

static void scarce_release(const struct memory *memory, void *p)
{
    (void)memory;
    free(p);
}

START_TEST(want_of_memory_leaves_the_list)
{
    struct scarce scarce = { { .alloc = scarce_alloc, .release = scarce_release }, UINT_MAX };
    struct group *group = create_group();
    struct resolve_found addresses[] = { address_of("127.0.0.9:97", false),
        address_of("127.0.0.9:98", true), address_of("127.0.0.9:99", false) };
    struct peers *peers = group->upstream.peers;
    unsigned tries = 0;

    replace(group, 1, "ab", "b", "0a2b3");
    group->upstreams.memory = &scarce.memory;
    for (scarce.left = 0; peers_replace(peers, &group->servers[1], addresses, 3) == -1; tries++) {
        ck_assert_uint_eq(peers->n, 5);
        ck_assert(!group_peer(group, 1)->is_kept);
        scarce.left = tries + 1;
    }
    ck_assert_uint_eq(tries, 3);
    ck_assert_uint_eq(peers->n, 6);
    group->upstreams.memory = &memory_plain;
    group_close(&group);
}
END_TEST

static void peers_tests(TCase *tcase)
{
    tcase_add_test(tcase, list_has_the_order_of_the_configuration);
    tcase_add_test(tcase, peer_that_stays_keeps_its_state);
    tcase_add_test(tcase, peer_that_goes_lasts_until_its_try_ends);
    tcase_add_test(tcase, what_was_tried_survives_a_replacement);
    tcase_add_test(tcase, more_servers_than_bits_of_a_word_are_tried_once_each);
    tcase_add_test(tcase, group_without_addresses_has_no_server);
    tcase_add_test(tcase, want_of_memory_leaves_the_list);
}

TEST_MAIN("peers", peers_tests)
