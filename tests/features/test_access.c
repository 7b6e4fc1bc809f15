/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of access: the deciding rule, and equal decisions of merged ranges and of single rules. */
#include "features/access/access.h"
#include "net/address_parse.h"
#include "support/test.h"

#include "base/compiler.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct arena *arena;
static struct access_rules rules;

static void begin_rules(void)
{
    arena = arena_create();
    ck_assert_ptr_nonnull(arena);
    STAILQ_INIT(&rules);
}

static void add_rule(const char *text, bool allows)
{
    struct access_rule *rule = arena_alloc(arena, sizeof(*rule));
    bool low;

    rule->allows = allows;
    if (strcmp(text, "unix:") == 0)
        rule->block.address.any.sa_family = AF_UNIX;
    else if (strcmp(text, "all") != 0)
        ck_assert_ptr_null(address_cidr_parse(text, &rule->block, &low));
    STAILQ_INSERT_TAIL(&rules, rule, link);
}

/* Reads "allow A; deny B;". */
static void read_rules(const char *text)
{
    char verb[8], address[64];
    int n;

    for (; sscanf(text, " %7s %63[^;];%n", verb, address, &n) == 2; text += n)
        add_rule(address, strcmp(verb, "allow") == 0);
}

static const char *const clients[] = { "127.0.0.1:1", "[::ffff:127.0.0.1]:1", "[::1]:1",
    "unix:/x" };

/* The rules, and the decision of nginx 1.22 on a client of each kind. */
static const struct {
    const char *rules, *allowed; /* in the order of `clients`: + or - */
} cases[] = {
    { "allow all;", "++++" },
    { "deny all;", "----" },
    { "allow 127.0.0.1; deny all;", "++--" },
    { "deny 127.0.0.1;", "--++" },
    { "deny 127.0.0.0/8; allow all;", "--++" },
    { "allow 127.0.0.1;", "++++" },
    { "allow unix:; deny all;", "---+" },
    { "deny unix:;", "+++-" },
    { "allow ::1; deny all;", "--+-" },
    { "deny ::1;", "++-+" },
    { "allow ::ffff:127.0.0.1; deny all;", "----" },
    { "deny ::ffff:127.0.0.1;", "+-++" },
    { "deny ::ffff:127.0.0.0/104;", "+-++" },
    { "deny ::ffff:0:0/95;", "+-++" },
    { "deny ::/0;", "+--+" },
    { "deny 0.0.0.0/0;", "--++" },
    { "allow ::/0; deny all;", "--+-" },
    { "allow 0.0.0.0/0; deny all;", "++--" },
    { "allow 127.0.0.0/24; deny 127.0.0.0/8; allow all; deny all;", "++++" },
    { "deny 127.0.0.0/8; allow 127.0.0.0/24; allow all;", "--++" },
    { "deny all; allow 127.0.0.1;", "----" },
    { "deny 10.0.0.1; deny ::/0;", "++-+" },
    { "deny ::/0; deny 10.0.0.1;", "++-+" },
    { "allow ::ffff:127.0.0.1; deny 127.0.0.1;", "--++" },
    { "deny ::ffff:127.0.0.1; allow 127.0.0.1;", "++++" },
    { "allow 10.0.0.1; allow ::ffff:0:0/96; deny all;", "----" },
};

START_TEST(the_first_rule_decides)
{
    const struct access *access;
    struct address client;

    begin_rules();
    read_rules(cases[_i].rules);
    access = access_build(arena, &rules);
    ck_assert_ptr_nonnull(access);
    for (unsigned i = 0; i < countof(clients); i++) {
        ck_assert_ptr_null(address_parse(clients[i], 0, &client));
        ck_assert_msg(access_allows(access, &client.any) == (cases[_i].allowed[i] == '+'), "%s %s",
            cases[_i].rules, clients[i]);
    }
    arena_destroy(&arena);
}
END_TEST

static uint64_t state;

static uint32_t any_number(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

/* An address out of few, near the borders of blocks. */
static void any_address(bool in6, char text[64])
{
    static const unsigned parts[] = { 0, 1, 127, 128, 254, 255 };
    unsigned a = parts[any_number(6)], b = parts[any_number(6)], c = parts[any_number(6)];

    snprintf(text, 64, in6 ? "%x00:%x::%x" : "%u.%u.0.%u", a, b, c);
}

static bool first_rule_allows(const struct address *client)
{
    const struct access_rule *rule;

    STAILQ_FOREACH (rule, &rules, link)
        if (rule->block.address.any.sa_family == AF_UNSPEC ||
            address_block_matches(&rule->block, &client->any))
            return rule->allows;
    return true;
}

START_TEST(ranges_say_what_the_rules_say)
{
    bool in6 = _i % 2;
    char text[64], block[80];
    const struct access *access;
    struct address client;

    state = 88172645463325252u + (unsigned)_i;
    begin_rules();
    for (unsigned n = 1 + any_number(40); n > 0; n--) {
        any_address(in6, text);
        snprintf(block, sizeof(block), "%s/%u", text, any_number(in6 ? 129 : 33));
        add_rule(any_number(20) > 0 ? block : "all", any_number(2));
    }
    access = access_build(arena, &rules);
    for (unsigned i = 0; i < 500; i++) {
        any_address(in6, text);
        snprintf(block, sizeof(block), in6 ? "[%s]:1" : "%s:1", text);
        ck_assert_ptr_null(address_parse(block, 0, &client));
        ck_assert_msg(access_allows(access, &client.any) == first_rule_allows(&client), "%s", text);
    }
    arena_destroy(&arena);
}
END_TEST

/* A hundred thousand rules, and as many look-ups: their costs do not multiply. */
START_TEST(many_rules)
{
    const struct access *access;
    struct address client;
    char text[64];

    begin_rules();
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16, i >> 8 & 255, i & 255);
        add_rule(text, i % 2);
    }
    add_rule("all", false);
    access = access_build(arena, &rules);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(text, sizeof(text), "10.%u.%u.%u:1", i >> 16, i >> 8 & 255, i & 255);
        ck_assert_ptr_null(address_parse(text, 0, &client));
        test_require(access_allows(access, &client.any) == i % 2);
    }
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_first_rule_decides, 0, countof(cases));
    tcase_add_loop_test(tcase, ranges_say_what_the_rules_say, 0, 60);
    tcase_add_test(tcase, many_rules);
}

TEST_MAIN("stream_access", add_tests)
