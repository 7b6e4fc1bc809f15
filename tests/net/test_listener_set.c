/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of listeners: found by address among very many, and compared with a search through all. */
#include "net/address_parse.h"
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listener_set.h"
#include "support/random.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <stdio.h>

/* With a linear search for each, the test would take minutes. */
#define MANY 100000

static int fd_of_all[] = { 0 }; /* never used */

static struct listener *add(struct arena *arena, struct listeners *all, const char *text)
{
    struct listener *listener;
    struct address address;

    ck_assert_ptr_null(address_parse(text, 0, &address));
    listener = listener_create(arena, &address, &listener_defaults);
    ck_assert_ptr_nonnull(listener);
    if (all != NULL)
        listener_set_add(all, listener);
    return listener;
}

static void make_open(struct listener *listener, bool open)
{
    listener->fds = fd_of_all;
    listener->fd_n = open;
}

static struct listener *add_number(struct arena *arena, struct listeners *all, unsigned i)
{
    struct address address = { .length = sizeof(address.in) };
    struct listener *listener;

    address.in.sin_family = AF_INET;
    address.in.sin_port = htons(7000);
    address.in.sin_addr.s_addr = htonl(0x0a000000 + i * 7919 % MANY);
    listener = listener_create(arena, &address, &listener_defaults);
    ck_assert_ptr_nonnull(listener);
    make_open(listener, true);
    listener_set_add(all, listener);
    return listener;
}

START_TEST(hundreds_of_thousands_are_found)
{
    struct arena *arena = arena_create();
    struct listeners old, new;
    struct listener *listener;
    unsigned found = 0;

    listener_set_init(&old);
    listener_set_init(&new);
    for (unsigned i = 0; i < MANY; i++)
        add_number(arena, &old, i);
    for (unsigned i = 0; i < MANY; i++)
        add_number(arena, &new, MANY - 1 - i);
    STAILQ_FOREACH (listener, &new.list, link)
        found += listener_set_find(&old, listener) != NULL;
    ck_assert_uint_eq(found, MANY);
    arena_destroy(&arena);
}
END_TEST

START_TEST(a_wildcard_among_them_is_allowed)
{
    struct arena *arena = arena_create();
    struct listeners all;
    struct listener *wildcard, *listener;
    unsigned beside = 0;

    listener_set_init(&all);
    for (unsigned i = 0; i < MANY; i++)
        add_number(arena, &all, i)->fd_n = 0;
    wildcard = add(arena, &all, "0.0.0.0:7000");
    add(arena, &all, "0.0.0.0:7001");
    listener_set_allow_all(&all, NULL, NULL, true);
    STAILQ_FOREACH (listener, &all.list, link)
        beside += listener->beside;
    ck_assert_uint_eq(beside, MANY + 1);
    ck_assert(wildcard->beside);
    arena_destroy(&arena);
}
END_TEST

START_TEST(a_closed_listener_is_not_found)
{
    struct arena *arena = arena_create();
    struct listeners all;
    struct listener *first, *second, *wanted = add(arena, NULL, "127.0.0.1:7000");

    listener_set_init(&all);
    first = add(arena, &all, "127.0.0.1:7000");
    ck_assert_ptr_null(listener_set_find(&all, wanted));
    ck_assert_ptr_eq(listener_set_at(&all, &wanted->address), first);
    second = add(arena, &all, "127.0.0.1:7001");
    make_open(second, true);
    ck_assert_ptr_null(listener_set_find(&all, wanted));
    listener_set_move(second, &wanted->address);
    ck_assert_ptr_eq(listener_set_find(&all, wanted), second);
    make_open(first, true);
    make_open(second, false);
    ck_assert_ptr_eq(listener_set_find(&all, wanted), first);
    listener_set_move(first, &add(arena, NULL, "unix:/a")->address);
    ck_assert_ptr_null(listener_set_find(&all, wanted));
    ck_assert_ptr_eq(listener_set_at(&all, &wanted->address), second);
    arena_destroy(&arena);
}
END_TEST

static struct listener *add_random(struct arena *arena, struct listeners *all, uint64_t *seed)
{
    static const char *const hosts[] = { "0.0.0.0", "127.0.0.1", "127.0.0.2", "[::]", "[::1]" };
    char text[64];

    if (random_below(seed, 8) == 0)
        snprintf(text, sizeof(text), "unix:/%u", random_below(seed, 20));
    else
        snprintf(text, sizeof(text), "%s:%u", hosts[random_below(seed, countof(hosts))],
            1 + random_below(seed, 8));
    return add(arena, all, text);
}

/* Looks for a listener with and without the tree. */
static void compare_searches(const struct listeners *all, const struct listener *listener)
{
    const struct listener *other, *found = NULL;
    unsigned n = 0, overlaps = 0, same = 0, open = 0;

    STAILQ_FOREACH (other, &all->list, link) {
        bool equal = address_equal(&other->address, &listener->address);

        n += listener_set_overlaps(listener, other);
        same += equal;
        open += equal && listener_is_open(other);
    }
    while ((found = listener_set_overlap(all, listener, found)) != NULL) {
        ck_assert(listener_set_overlaps(listener, found));
        ck_assert_uint_le(++overlaps, n);
    }
    ck_assert_uint_eq(overlaps, n);
    ck_assert_int_eq(listener_set_at(all, &listener->address) != NULL, same > 0);
    found = listener_set_find(all, listener);
    ck_assert_int_eq(found != NULL, open > 0);
    ck_assert(found == NULL ||
              (listener_is_open(found) && address_equal(&found->address, &listener->address)));
}

START_TEST(a_search_through_all_finds_the_same)
{
    struct arena *arena = arena_create();
    uint64_t seed = (uint64_t)_i + 1;
    struct listener *listener;
    struct listeners all;

    listener_set_init(&all);
    for (unsigned i = 0; i < 60; i++) {
        listener = add_random(arena, &all, &seed);
        make_open(listener, random_below(&seed, 2) == 0);
        if (random_below(&seed, 4) == 0)
            listener_set_move(listener, &add_random(arena, NULL, &seed)->address);
        STAILQ_FOREACH (listener, &all.list, link)
            compare_searches(&all, listener);
        compare_searches(&all, add_random(arena, NULL, &seed));
    }
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, hundreds_of_thousands_are_found);
    tcase_add_test(tcase, a_wildcard_among_them_is_allowed);
    tcase_add_test(tcase, a_closed_listener_is_not_found);
    tcase_add_loop_test(tcase, a_search_through_all_finds_the_same, 0, 20);
}

TEST_MAIN("listener_set", add_tests)
