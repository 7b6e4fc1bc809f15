/* SPDX-License-Identifier: BSD-2-Clause */
/* Balancers by a key: the servers chosen by nginx 1.22 for equal keys, and the fate of keys with an
 * unusable server. */
#include "upstream/groups.h"

/* A session per letter, with a unique address as the key. */
#define SESSIONS 40

static const struct {
    const char *name;
    bool consistent;
    uint32_t weights[6]; /* up to a 0 */
    const char *down;    /* letters of servers */
    const char *chosen;  /* by nginx */
} known[] = {
    { "equal", false, { 1, 1, 1 }, "", "ccaacccabbcaabacccbacacabccccbccabaabbaa" },
    { "weights", false, { 5, 2, 1 }, "", "abaaaacabbaabbaaaaaabaaaaabaabaaacbaaaaa" },
    { "down", false, { 1, 1, 1, 1, 1 }, "bd", "acaeaaaceaaaeecaacecaaceccaeacacaaccccce" },
    { "most is down", false, { 1, 5, 1 }, "b", "cacaaaccccacaccaaaccccccaacaccaaacacaaca" },
    { "equal", true, { 1, 1, 1 }, "", "aababbaabcbbbbbbcbcbacbacbcbacbabccaccbc" },
    { "weights", true, { 5, 2, 1 }, "", "bababbaabcabaabbabcbbbabaacbacbaaccaaabc" },
    { "down", true, { 1, 1, 1, 1, 1 }, "bd", "eaeeeeaaeccceeccceceeceaccceeccaeccacccc" },
    { "most is down", true, { 1, 5, 1 }, "b", "aaaaaaaaacccccccccccaccaccccaccaaccacccc" },
};

static struct group *create_hashed(const uint32_t *weights, bool consistent)
{
    struct group *group = group_create();

    group->upstream.balance.balancer = balancer_find("hash");
    group->upstream.balance.consistent = consistent;
    ck_assert_ptr_nonnull(group->upstream.balance.balancer);
    while (*weights != 0)
        group_add(group, *weights++);
    return group;
}

static void set_key(struct choice *choice, const char *key)
{
    static struct choice_more more; /* sessions have it one after the other */

    more = (struct choice_more) { .key = { (const uint8_t *)key, strlen(key) } };
    choice->more = &more;
}

/* Begins a session with the number's key. */
static void begin_numbered(struct group *group, struct choice *choice, unsigned n, char key[24])
{
    snprintf(key, 24, "127.40.%u.%u", n, n * 7 % 250 + 1);
    group_begin(group, choice);
    set_key(choice, key);
}

/* Checks the servers of all sessions, while the servers of the letters `dead` fail. */
static void expect_keys(struct group *group, const char *dead, const char *letters)
{
    char seen[SESSIONS + 1] = "", key[24];
    struct choice choice;

    for (unsigned i = 0; i < SESSIONS; i++) {
        begin_numbered(group, &choice, i, key);
        while (strchr(dead, seen[i] = group_next(group, &choice)) != NULL)
            choice_end(&choice, FB_TRY_FAILED);
        if (choice.peer != NULL)
            choice_end(&choice, FB_TRY_SERVED);
    }
    ck_assert_str_eq(seen, letters);
}

START_TEST(known_choices)
{
    struct group *group = create_hashed(known[_i].weights, known[_i].consistent);

    for (const char *p = known[_i].down; *p != '\0'; p++)
        group->servers[*p - 'a'].down = true;
    group_open(group);
    expect_keys(group, "", known[_i].chosen);
    group_close(&group);
}
END_TEST

/* A failing server moves the key to the server used while it is down. */
START_TEST(failures_lead_on)
{
    struct group *group = create_hashed(known[_i].weights, known[_i].consistent);

    for (unsigned i = 0; i < group->upstream.server_n; i++)
        group->servers[i].max_fails = 0;
    group_open(group);
    expect_keys(group, known[_i].down, known[_i].chosen);
    group_close(&group);
}
END_TEST

START_TEST(empty_key_goes_round)
{
    struct group *group = create_hashed((const uint32_t[]) { 1, 1, 1, 0 }, _i == 1);

    group_open(group);
    group_expect(group, "abcabcabc");
    group_close(&group);
}
END_TEST

/* However often the key is hashed: each server is tried, the backups at the end. */
START_TEST(all_are_tried)
{
    struct group *group = create_hashed((const uint32_t[]) { 1000, 1, 1, 1, 0 }, _i == 1);
    char seen[8] = "";
    struct choice choice;

    group->servers[3].backup = true;
    group_open(group);
    group_begin(group, &choice);
    set_key(&choice, "a key");
    for (unsigned i = 0; i < 4; i++) {
        seen[i] = group_next(group, &choice);
        choice_end(&choice, FB_TRY_FAILED);
    }
    ck_assert_int_eq(group_next(group, &choice), '-');
    ck_assert_int_eq(seen[0], 'a');
    ck_assert_ptr_nonnull(strchr(seen, 'b'));
    ck_assert_ptr_nonnull(strchr(seen, 'c'));
    ck_assert_int_eq(seen[3], 'd');
    group_close(&group);
}
END_TEST

START_TEST(no_server_has_an_address)
{
    struct group *group = create_hashed((const uint32_t[]) { 1, 1, 0 }, _i == 1);
    struct choice choice;

    group->servers[0].target = group->servers[1].target = NULL;
    group_open(group);
    group_begin(group, &choice);
    set_key(&choice, "a key");
    ck_assert_int_eq(group_next(group, &choice), '-');
    group_close(&group);
}
END_TEST

/* Servers with the same name share keys, as in nginx. */
START_TEST(one_name_twice)
{
    struct group *group = create_hashed((const uint32_t[]) { 1, 2, 3, 0 }, true);
    char key[24];
    struct choice choice;
    unsigned chosen[3] = { 0 };
    char letter;

    group->servers[2].name = group->servers[0].name;
    group_open(group);
    for (unsigned i = 0; i < SESSIONS; i++) {
        begin_numbered(group, &choice, i, key);
        letter = group_next(group, &choice);
        ck_assert_int_eq(letter == 'b', "bababbaabaabbbbbababbbabaaababbaaaaaaaba"[i] == 'b');
        chosen[letter - 'a']++;
        choice_end(&choice, FB_TRY_SERVED);
    }
    ck_assert_uint_ge(chosen[2], 2 * chosen[0]);
    ck_assert_uint_gt(chosen[0], 0);
    group_close(&group);
}
END_TEST

/* Chooses for a session of each key; writes the letters. */
static void choose_all(struct group *group, char letters[SESSIONS + 1], unsigned hosts[256])
{
    char key[24];
    struct choice choice;

    for (unsigned i = 0; i < SESSIONS; i++) {
        begin_numbered(group, &choice, i, key);
        letters[i] = group_next(group, &choice);
        hosts[ntohl(choice.peer->target.address.in.sin_addr.s_addr) & 255]++;
        choice_end(&choice, FB_TRY_SERVED);
    }
    letters[SESSIONS] = '\0';
}

START_TEST(addresses_of_a_name_share_its_keys)
{
    struct group *group = create_hashed((const uint32_t[]) { 1, 1, 0 }, true);
    char before[SESSIONS + 1], after[SESSIONS + 1], text[24];
    struct resolve_found addresses[3];
    struct fb_target target;
    unsigned hosts[256] = { 0 };

    memset(addresses, 0, sizeof(addresses));
    for (unsigned i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "127.0.0.%u:80", 2 + i);
        ck_assert_ptr_null(target_parse(text, false, &target));
        addresses[i].address = target.address;
    }
    group_open(group);
    choose_all(group, before, hosts);
    ck_assert_int_eq(peers_replace(group->upstream.peers, &group->servers[1], addresses, 3), 0);
    choose_all(group, after, hosts);
    ck_assert_str_eq(before, after);
    for (unsigned i = 2; i <= 4; i++)
        ck_assert_uint_ge(hosts[i], 5);
    group_close(&group);
}
END_TEST

START_TEST(great_weights_have_fewer_points)
{
    struct group *group =
        create_hashed((const uint32_t[]) { UINT32_MAX, UINT32_MAX, 1, 0 }, _i == 1);
    char letters[SESSIONS + 1];
    unsigned hosts[256] = { 0 }, a = 0, b = 0;

    group_open(group);
    choose_all(group, letters, hosts);
    for (unsigned i = 0; i < SESSIONS; i++) {
        a += letters[i] == 'a';
        b += letters[i] == 'b';
    }
    ck_assert_uint_eq(a + b, SESSIONS);
    ck_assert_uint_ge(a, _i == 1 ? SESSIONS / 4 : SESSIONS); /* hashes are less than such weights */
    group_close(&group);
}
END_TEST

static int allocs_left;

static void *alloc_a_few(const struct memory *memory, size_t n)
{
    (void)memory;
    if (allocs_left == 0)
        return NULL;
    allocs_left--;
    return malloc(n);
}

START_TEST(no_memory_for_points)
{
    const struct memory few = { .alloc = alloc_a_few, .release = memory_plain.release };
    struct group *group = create_hashed((const uint32_t[]) { 1, 1, 1, 0 }, true);
    char letters[SESSIONS + 1];
    unsigned hosts[256] = { 0 };

    group_open(group);
    group->upstreams.memory = &few;
    allocs_left = _i;
    choose_all(group, letters, hosts);
    letters[6] = '\0';
    ck_assert_str_eq(letters, "abcabc");
    group->upstreams.memory = &memory_plain;
    choose_all(group, letters, hosts);
    ck_assert_str_eq(letters, "aababbaabcbbbbbbcbcbacbacbcbacbabccaccbc");
    group_close(&group);
}
END_TEST

/* Names other than an address with a port, as hashed: nginx 1.22 has chosen equally. */
START_TEST(names_of_all_forms)
{
    struct group *group = create_hashed((const uint32_t[]) { 1, 1, 1, 1, 0 }, true);
    char letters[SESSIONS + 1];
    unsigned hosts[256] = { 0 };

    group->servers[0].name = "unix:/tmp/fb_a.sock";
    group->servers[1].name = "localhost:9001";
    group->servers[2].name = "[::1]:9002";
    group->servers[3].name = "[::1]:9003";
    group_open(group);
    choose_all(group, letters, hosts);
    ck_assert_str_eq(letters, "acacbbbbcbcbdbdabdbadaabacbcbaabcccaaddd");
    group_close(&group);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const int known_n = (int)(sizeof(known) / sizeof(known[0]));

    tcase_add_loop_test(tcase, known_choices, 0, known_n);
    tcase_add_loop_test(tcase, failures_lead_on, 0, known_n);
    tcase_add_loop_test(tcase, empty_key_goes_round, 0, 2);
    tcase_add_loop_test(tcase, all_are_tried, 0, 2);
    tcase_add_loop_test(tcase, no_server_has_an_address, 0, 2);
    tcase_add_test(tcase, one_name_twice);
    tcase_add_test(tcase, addresses_of_a_name_share_its_keys);
    tcase_add_loop_test(tcase, great_weights_have_fewer_points, 0, 2);
    tcase_add_loop_test(tcase, no_memory_for_points, 0, 2);
    tcase_add_test(tcase, names_of_all_forms);
}

TEST_MAIN("balancers", add_tests)
