/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol's configuration as a whole: inheritance from the stream, values of the protocol's own
 * kind, and the protocol's final check. */
#include "settings/loading.h"
#include "support/test.h"

#include "net/address_parse.h"
#include "settings/calls.h"
#include "shm/metrics.h"

#include <string.h>

struct pair {
    int64_t sum;
    const char *last;
};

struct values {
    const char *text;
    int64_t number, mode;
    const fb_target *target;
    struct pair pair;
    const char *note;
};

/* Arguments of conf_done, in the order of the calls. */
static struct {
    unsigned n;
    const struct values *own[4], *parent[4];
    int (*answer)(fb_conf *conf, const struct values *own, const struct values *parent);
    struct fb_map *map[4];
} done;

static int remember_call(fb_conf *conf, void *own, const void *parent)
{
    unsigned n = done.n++;

    ck_assert_uint_lt(n, countof(done.own));
    done.own[n] = own;
    done.parent[n] = parent;
    return done.answer == NULL ? 0 : done.answer(conf, own, parent);
}

static int set_pair(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct pair *pair = value;

    pair->sum = 0;
    for (uint32_t i = 0; i < n; i++)
        pair->sum += atoi(args[i]);
    pair->last = args[n - 1];
    ck_assert_ptr_null(args[n]);
    if (pair->sum == 13)
        return fb_conf_errorf(conf, "own_number", "13 is unlucky");
    return pair->sum == 14 ? -1 : 0;
}

static const char *const modes[] = { "fast", "careful", "lazy", NULL };

#define AT(member) .offset = offsetof(struct values, member)

static const fb_directive directives[] = {
    { .name = "own", .value = FB_VALUE_STRING, .flags = FB_DIRECTIVE_HANDLER, AT(text) },
    { .name = "own_number", .value = FB_VALUE_NUMBER, AT(number), .initial = "5" },
    { .name = "own_mode", .value = FB_VALUE_NAME, AT(mode), .names = modes, .initial = "careful" },
    { .name = "own_target", .value = FB_VALUE_TARGET, AT(target) },
    { .name = "own_pair",
        .value = FB_VALUE_CUSTOM,
        AT(pair),
        .room = sizeof(struct pair),
        .initial = "1 \"2\"",
        .set = set_pair,
        .args_least = 2,
        .args_most = 3 },
    { .name = "own_note", .value = FB_VALUE_STRING, AT(note) },
};
static const fb_metric metrics[] = { { "hits", FB_COUNTER, 0 }, { "open", FB_GAUGE, 0 } };
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol own = {
    FB_PROTOCOL_HEADER,
    .name = "own",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conf_state = sizeof(struct values),
    .ops = &ops,
    .conf_done = remember_call,
};

static const fb_directive bare_directives[] = {
    { .name = "bare", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static int bare_done(fb_conf *conf, void *conf_state, const void *parent)
{
    (void)conf;
    ck_assert_ptr_null(conf_state);
    ck_assert_ptr_null(parent);
    return 0;
}

static const fb_protocol bare = {
    FB_PROTOCOL_HEADER,
    .name = "bare",
    FB_PROTOCOL_DIRECTIVES(bare_directives),
    .ops = &ops,
    .conf_done = bare_done,
};
static const fb_protocol *const protocols[] = { &bare, &own, NULL };

static void begin_loading(struct loading *loading)
{
    memset(&done, 0, sizeof(done));
    loading_begin(loading);
    loading->options.protocols = protocols;
}

static void expect_error(const struct values *values, int64_t number, int64_t mode, int64_t sum)
{
    ck_assert_int_eq(values->number, number);
    ck_assert_int_eq(values->mode, mode);
    ck_assert_int_eq(values->pair.sum, sum);
}

START_TEST(a_server_has_what_its_stream_has)
{
    static const char *const texts[] = {
        "events { } stream { own_number 7; own_mode lazy; own_pair 3 4; own_note n;"
        " server { listen 1; own a; } server { listen 2; own b; own_number 8; own_pair 5 6 7; } }",
        "stream { server { own a; listen 1; } server { own_number 8; own b; listen 2;"
        " own_pair 5 6 7; } own_pair 3 4; own_number 7; own_note n; own_mode lazy; } events { }",
    };
    struct loading loading;

    begin_loading(&loading);
    for (size_t i = 0; i < countof(texts); i++) {
        done.n = 0;
        accept_text(&loading, texts[i], "");
        ck_assert_uint_eq(done.n, 2);
        expect_error(done.own[0], 7, 2, 7);
        expect_error(done.own[1], 8, 2, 18);
        ck_assert_str_eq(done.own[0]->text, "a");
        ck_assert_str_eq(done.own[1]->text, "b");
        ck_assert_str_eq(done.own[0]->pair.last, "4");
        ck_assert_str_eq(done.own[1]->pair.last, "7");
        ck_assert_str_eq(done.own[1]->note, "n");
        ck_assert_ptr_ne(done.own[0], done.own[1]);
        ck_assert_ptr_eq(done.parent[0], done.parent[1]);
        expect_error(done.parent[0], 7, 2, 7);
        ck_assert_ptr_null(done.parent[0]->text);
        ck_assert_ptr_null(done.parent[0]->target);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(what_neither_has_is_initial)
{
    struct loading loading;

    begin_loading(&loading);
    accept_text(&loading,
        "events { } stream { server { listen 1; own a; own_number 6; } server { listen 2; bare; } "
        "}",
        "");
    ck_assert_uint_eq(done.n, 1);
    expect_error(done.own[0], 6, 1, 3);
    ck_assert_str_eq(done.own[0]->pair.last, "2");
    ck_assert_ptr_null(done.own[0]->note);
    expect_error(done.parent[0], 5, 1, 3);
    ck_assert_uint_eq(STAILQ_FIRST(&loading.cycle->stream.servers)->protocol_index, 1);
    loading_end(&loading);
}
END_TEST

START_TEST(a_stream_s_value_needs_no_server)
{
    struct loading loading;

    begin_loading(&loading);
    accept_text(&loading, "events { } stream { own_number 7; server { listen 1; } }", "");
    accept_text(&loading, "events { } stream { own_number 7; server { listen 1; bare; } }", "");
    ck_assert_uint_eq(done.n, 0);
    refuse_text(&loading,
        "events { } stream { own_number 1; own_number 2; server { listen 1; own a;"
        " own_number 1; own_number 3; } }",
        "\"own_number\" directive is duplicate: first set in /main:1 in "
        "/main:1:35\n"
        "\"own_number\" directive is duplicate: first set in /main:1 in "
        "/main:1:89\n");
    loading_end(&loading);
}
END_TEST

static int find_wrong(fb_conf *conf, const struct values *values, const struct values *parent)
{
    (void)parent;
    if (values->number == 40)
        return fb_conf_errorf(conf, "own_number", "number %d is taken", 40);
    if (values->number == 41)
        return fb_conf_errorf(conf, NULL, "something is wrong");
    if (values->number == 42)
        fb_conf_errorf(conf, "own_mode", "this mode needs another number");
    if (values->number == 43)
        return -1;
    return 0;
}

/* The column of a word in a text, as messages show it. */
static unsigned column(const char *text, const char *word)
{
    return (unsigned)(strstr(text, word) - text) + 1;
}

START_TEST(a_mistake_is_told_where_it_was_written)
{
    static const struct {
        const char *text, *message, *at;
    } cases[] = {
        { "events { } stream { server { listen 1; own a; own_number 40; } }", "number 40 is taken",
            "own_number" },
        { "events { } stream { own_number 40; server { listen 1; own a; } }", "number 40 is taken",
            "own_number" },
        { "events { } stream { server { listen 1; own a; own_number 41; } }", "something is wrong",
            "server" },
        { "events { } stream { own_number 42; server { listen 1; own a; } }",
            "this mode needs another number", "server" },
        { "events { } stream { own_mode fast; server { listen 1; own_number 42; own a; } }",
            "this mode needs another number", "own_mode" },
        { "events { } stream { server { listen 1; own a; own_number 43; } }",
            "protocol \"own\" refuses this server without a message", "server" },
        /* found in two servers, and one mistake */
        { "events { } stream { own_number 40; server { listen 1; own a; }"
          " server { listen 2; own b; } }",
            "number 40 is taken", "own_number" },
        { "events { } stream { server { listen 1; own a; own_pair 6 7; } }", "13 is unlucky",
            "own_pair" },
        { "events { } stream { own_pair 6 8; server { listen 1; own a; } }",
            "invalid \"own_pair\" directive: protocol \"own\" refuses it without a message",
            "own_pair" },
    };
    struct loading loading;
    char expected[256];

    begin_loading(&loading);
    done.answer = find_wrong;
    for (size_t i = 0; i < countof(cases); i++) {
        snprintf(expected, sizeof(expected), "%s in /main:1:%u\n", cases[i].message,
            column(cases[i].text, cases[i].at));
        done.n = 0;
        refuse_text(&loading, cases[i].text, expected);
    }
    loading_end(&loading);
}
END_TEST

/* A call of conf_done would only report consequences of the mistake. */
START_TEST(a_server_with_mistakes_is_not_judged)
{
    static const char *const texts[] = {
        "events { } stream { server { listen 1; own a; own_number x; } }",
        "events { } stream { own_number x; server { listen 1; own a; } }",
        "events { } stream { server { listen 1; own a; bogus; } }",
        "events { } stream { server { listen 1; own a; idle_timeout x; } }",
        "events { } stream { server { listen 1; own a; own_pair 6 7; } }",
        "events { } stream { own_pair 6 8; server { listen 1; own a; } }",
        "events { } stream { server { listen 1; own_number 1; } }",
        "events { } stream { server { listen 1; own a; } server { ; ",
    };
    struct loading loading;

    begin_loading(&loading);
    for (size_t i = 0; i < countof(texts); i++) {
        load(&loading, texts[i]);
        ck_assert_ptr_null(loading.cycle);
        ck_assert_uint_eq(done.n, 0);
    }
    /* another server's mistake hides nothing */
    done.answer = find_wrong;
    refuse_text(&loading,
        "events { } stream { server { listen 1; own a; own_number x; }"
        " server { listen 2; own b; own_number 41; } }",
        "invalid value \"x\" in \"own_number\" directive: expected a number in /main:1:58\n"
        "something is wrong in /main:1:63\n");
    loading_end(&loading);
}
END_TEST

START_TEST(names_and_arguments_are_checked)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading,
        "events { } stream { server { listen 1; own a; own_mode carefull; own_pair 1; } }",
        "invalid value \"carefull\" in \"own_mode\" directive: expected \"fast\", \"careful\" or "
        "\"lazy\", did you mean \"careful\"? in /main:1:56\n"
        "invalid number of arguments in \"own_pair\" directive: expected 2 to 3, found 1 "
        "in /main:1:66\n");
    refuse_text(&loading, "events { } stream { own_mode \"\"; server { listen 1; } }",
        "invalid value \"\" in \"own_mode\" directive: expected \"fast\", \"careful\" or "
        "\"lazy\" in /main:1:30\n");
    loading_end(&loading);
}
END_TEST

START_TEST(targets_are_addresses)
{
    struct loading loading;
    const struct fb_target *target;

    begin_loading(&loading);
    accept_text(&loading,
        "events { } stream { own_target unix:/run/x; server { listen 1; own a; own_target"
        " [::1]:81; } server { listen 2; own b; } }",
        "");
    target = done.own[0]->target;
    ck_assert_str_eq(target->text, "[::1]:81");
    ck_assert_int_eq(target->address.any.sa_family, AF_INET6);
    ck_assert_uint_eq(address_port(&target->address), 81);
    target = done.own[1]->target;
    ck_assert_str_eq(target->text, "unix:/run/x");
    ck_assert_ptr_eq(target, done.parent[1]->target);
    refuse_text(&loading, "events { } stream { own_target 127.0.0.1; server { listen 1; } }",
        "invalid value \"127.0.0.1\" in \"own_target\" directive: expected a port in "
        "/main:1:32\n");
    loading_end(&loading);
}
END_TEST

static int ask_for_memory(fb_conf *conf, const struct values *values, const struct values *parent)
{
    const char *zeroed = fb_conf_alloc(conf, 64);
    const struct fb_target *target = fb_conf_target(conf, "own_note", values->note);

    (void)parent;
    ck_assert_ptr_nonnull(zeroed);
    ck_assert_int_eq(zeroed[0] | zeroed[63], 0);
    if (target == NULL)
        return -1;
    ck_assert_str_eq(target->text, "127.0.0.1:81");
    return 0;
}

START_TEST(a_protocol_asks_for_memory_and_targets)
{
    struct loading loading;

    begin_loading(&loading);
    done.answer = ask_for_memory;
    accept_text(
        &loading, "events { } stream { own_note 127.0.0.1:81; server { listen 1; own a; } }", "");
    ck_assert_uint_eq(done.n, 1);
    refuse_text(&loading, "events { } stream { own_note 127.1:81; server { listen 1; own a; } }",
        "invalid address \"127.1:81\": invalid IPv4 address in /main:1:21\n");
    loading_end(&loading);
}
END_TEST

static fb_map_options map_options = {
    .size = sizeof(map_options),
    .name = "keys",
    .version = 3,
    .capacity = 100,
    .key_max = 32,
    .value_max = 64,
};

static int ask_for_map(fb_conf *conf, const struct values *values, const struct values *parent)
{
    fb_map_options options = map_options;

    (void)parent;
    options.capacity = (uint32_t)values->number;
    done.map[done.n - 1] = fb_conf_map(conf, &options);
    return done.map[done.n - 1] == NULL ? -1 : 0;
}

START_TEST(servers_that_name_a_map_share_it)
{
    struct loading loading;
    const struct zone *zone;

    begin_loading(&loading);
    done.answer = ask_for_map;
    accept_text(&loading,
        "events { } stream { server { listen 1; own a; } server { listen 2; own b; } }", "");
    ck_assert_ptr_nonnull(done.map[0]);
    ck_assert_ptr_eq(done.map[0], done.map[1]);
    zone = zones_find(&loading.cycle->zones, "own.keys");
    ck_assert_ptr_eq(zone, done.map[0]->zone);
    ck_assert_ptr_eq(zone->kind, &shm_map_kind);
    ck_assert_uint_eq(zone->version, 3);
    ck_assert_uint_eq(done.map[0]->shape.capacity, 5);
    ck_assert_uint_eq(done.map[0]->shape.key_max, 32);
    ck_assert_uint_eq(done.map[0]->shape.value_max, 64);

    done.n = 0;
    refuse_text(&loading,
        "events { } stream { server { listen 1; own a; } server { listen 2; own b;"
        " own_number 6; } }",
        "map \"own.keys\" is declared with version 3, 6 entries, keys of 32 and values of 64 "
        "bytes, "
        "but another server declares the map with 3, 5, 32 and 64: use the same values in "
        "/main:1:49\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_map_has_bounds)
{
    static const struct {
        fb_map_options options;
        const char *wrong;
    } cases[] = {
        { { 0, "keys", 1, 5, 1, 1, 0 }, "the options begin with .size = sizeof(fb_map_options)" },
        { { sizeof(fb_map_options), NULL, 1, 5, 1, 1, 0 },
            "the name has 1 to 31 letters, digits and \"_\"" },
        { { sizeof(fb_map_options), "a.b", 1, 5, 1, 1, 0 },
            "the name has 1 to 31 letters, digits and \"_\"" },
        { { sizeof(fb_map_options), "a123456789b123456789c123456789d1", 1, 5, 1, 1, 0 },
            "the name has 1 to 31 letters, digits and \"_\"" },
        { { sizeof(fb_map_options), "keys", 1, 5, 0, 1, 0 }, "the key_max is 1 to 65535 bytes" },
        { { sizeof(fb_map_options), "keys", 1, 5, 65536, 1, 0 },
            "the key_max is 1 to 65535 bytes" },
        { { sizeof(fb_map_options), "keys", 1, 5, 1, 0, 0 },
            "the value_max is 1 to 16777216 bytes" },
        { { sizeof(fb_map_options), "keys", 1, 5, 32, 64, 100 },
            "the memory is too little for a key and a value" },
        { { sizeof(fb_map_options), "keys", 1, 5, 1, 1, UINT64_MAX },
            "the memory is 16 TiB at most" },
    };
    fb_map_options before = map_options;
    struct loading loading;
    char expected[256];

    begin_loading(&loading);
    done.answer = ask_for_map;
    for (size_t i = 0; i < countof(cases); i++) {
        map_options = cases[i].options;
        done.n = 0;
        snprintf(expected, sizeof(expected), "invalid map of protocol \"own\": %s in /main:1:21\n",
            cases[i].wrong);
        refuse_text(&loading, "events { } stream { server { listen 1; own a; } }", expected);
    }
    map_options = before;
    done.n = 0;
    refuse_text(&loading, "events { } stream { server { listen 1; own a; own_number 0; } }",
        "invalid map of protocol \"own\": the capacity is 1 to 1073741824 entries in "
        "/main:1:21\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_protocol_s_metrics_are_one_zone)
{
    struct loading loading;
    const struct server *server;
    const struct shm_metrics_shape *shape;
    const struct zone *zone;

    begin_loading(&loading);
    accept_text(&loading,
        "events { } stream { server { listen 1; own a; } server { listen 2; bare; }"
        " server { listen 3; own b; } server { listen 4; } }",
        "");
    zone = zones_find(&loading.cycle->zones, "own");
    ck_assert_ptr_nonnull(zone);
    ck_assert_ptr_null(zones_find(&loading.cycle->zones, "bare"));
    shape = zone->shape;
    ck_assert_uint_eq(shape->n, 2);
    ck_assert_uint_eq(shape->kinds[0], SHM_COUNTER);
    ck_assert_uint_eq(shape->kinds[1], SHM_GAUGE);
    server = STAILQ_FIRST(&loading.cycle->stream.servers);
    ck_assert_ptr_eq(server->metrics, zone);
    server = STAILQ_NEXT(server, link);
    ck_assert_ptr_null(server->metrics);
    server = STAILQ_NEXT(server, link);
    ck_assert_ptr_eq(server->metrics, zone);
    accept_text(&loading, "events { } stream { own_number 1; server { listen 1; bare; } }", "");
    ck_assert_ptr_null(zones_find(&loading.cycle->zones, "own"));
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_server_has_what_its_stream_has);
    tcase_add_test(tcase, what_neither_has_is_initial);
    tcase_add_test(tcase, a_stream_s_value_needs_no_server);
    tcase_add_test(tcase, a_mistake_is_told_where_it_was_written);
    tcase_add_test(tcase, a_server_with_mistakes_is_not_judged);
    tcase_add_test(tcase, names_and_arguments_are_checked);
    tcase_add_test(tcase, targets_are_addresses);
    tcase_add_test(tcase, a_protocol_asks_for_memory_and_targets);
    tcase_add_test(tcase, servers_that_name_a_map_share_it);
    tcase_add_test(tcase, a_map_has_bounds);
    tcase_add_test(tcase, a_protocol_s_metrics_are_one_zone);
}

TEST_MAIN("protocol configuration", add_tests)
