/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of access logs: bytes and buffers, and files of paths with variables. */
#include "features/access_log/access_log.h"
#include "session/conn.h"
#include "support/directory.h"
#include "support/fixture.h"
#include "support/server_defaults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESS "192.0.2.1"

/* ---- Escaping ---- */

static const char *escape(enum log_escape escape, const char *s, size_t n)
{
    static char text[2048];
    char *end = log_escape_write(escape, text, text + sizeof(text) - 1, s, n);

    ck_assert_ptr_nonnull(end);
    *end = '\0';
    return text;
}

/* Makes what nginx 1.22 writes for a byte. */
static void expect_byte(enum log_escape mode, unsigned char c, char expected[8])
{
    static const char json[][3] = { ['\b'] = "\\b",
        ['\t'] = "\\t",
        ['\n'] = "\\n",
        ['\f'] = "\\f",
        ['\r'] = "\\r",
        ['"'] = "\\\"",
        ['\\'] = "\\\\" };
    bool special = c < 0x20 || c == '"' || c == '\\';

    snprintf(expected, 8, "%c", c);
    if (mode == LOG_ESCAPE_DEFAULT && (special || c > 0x7e))
        snprintf(expected, 8, "\\x%02X", c);
    else if (mode == LOG_ESCAPE_JSON && special && c < sizeof(json) / 3 && json[c][0] != '\0')
        strcpy(expected, json[c]);
    else if (mode == LOG_ESCAPE_JSON && special)
        snprintf(expected, 8, "\\u%04X", c);
    else if (mode == LOG_ESCAPE_PATH && (c < 0x20 || c == '/' || c == 0x7f))
        strcpy(expected, "_");
}

START_TEST(each_byte)
{
    for (unsigned c = 0; c < 256; c++) {
        char value[4] = { 'a', (char)c, 'z', '\0' }, expected[8], whole[16];

        if (c == 0 && _i == LOG_ESCAPE_NONE)
            continue;
        expect_byte((enum log_escape)_i, (unsigned char)c, expected);
        snprintf(whole, sizeof(whole), "a%sz", expected);
        ck_assert_str_eq(escape((enum log_escape)_i, value, 3), whole);
    }
}
END_TEST

/* Neither writes beyond the end, possibly within an escaped byte. */
START_TEST(no_room)
{
    char text[16], *end = text + 9;

    memset(text, '!', sizeof(text));
    ck_assert_ptr_eq(log_escape_write(LOG_ESCAPE_DEFAULT, text, end, "a\n\n", 3), end);
    for (; end > text; end--)
        ck_assert_ptr_null(log_escape_write(LOG_ESCAPE_DEFAULT, text, end - 1, "a\n\n", 3));
    ck_assert_int_eq(text[9], '!');
    ck_assert_ptr_eq(log_escape_write(LOG_ESCAPE_JSON, text, text, "\n", 0), text);
}
END_TEST

/* ---- Paths ---- */

static const struct {
    const char *path, *cleaned;
} paths[] = {
    { "/logs/a", "/logs/a" },
    { "/logs/", "/logs/_" },
    { "/logs/.", "/logs/_" },
    { "/logs/..", "/logs/__" },
    { "/logs/../..", "/logs/__/__" },
    { "/logs/...", "/logs/..." },
    { "/logs/..a/.b", "/logs/..a/.b" },
    { "/logs//a", "/logs/_/a" },
    { "/logs/a/", "/logs/a/_" },
};

START_TEST(names_are_names)
{
    char out[PATH_MAX];

    ck_assert_int_eq(access_path_clean(paths[_i].path, strlen("/logs/"), out), 0);
    ck_assert_str_eq(out, paths[_i].cleaned);
}
END_TEST

START_TEST(long_names_are_cut)
{
    char path[PATH_MAX], out[PATH_MAX];

    memset(path, 'x', sizeof(path));
    memcpy(path, "/l/", 3);
    path[1000] = '\0';
    ck_assert_int_eq(access_path_clean(path, 3, out), 0);
    ck_assert_uint_eq(strlen(out), 3 + NAME_MAX);
    for (size_t i = 4; i < sizeof(path); i += 2)
        path[i] = '/';
    path[PATH_MAX - 1] = '\0';
    ck_assert_int_eq(access_path_clean(path, 3, out), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
}
END_TEST

/* ---- Logs of a server ---- */

static struct access_log_test {
    struct fixture *fixture;
    struct arena *arena;
    struct variables variables;
    struct access_log_conf conf;
    void *features[FEATURES];
    struct cycle cycle;
    struct template_part parts[3];
    struct line_format format;
    struct log_target target;
    struct access_file file;
    struct access_log log;
    struct phase_handler handler;
    char text[512]; /* a file's */
} test;

/* Lines are "x192.0.2.1" of eleven bytes, with the newline. */
#define LINE "x" ADDRESS "\n"

static void begin(size_t buffer, int64_t flush)
{
    struct variable *variable;
    struct server *server;

    memset(&test, 0, sizeof(test));
    test.arena = arena_create();
    ck_assert_ptr_nonnull(test.arena);
    RB_INIT(&test.variables.all);
    test.variables.tables = variable_tables();
    variable = variables_add(&test.variables, test.arena, "remote_addr", strlen("remote_addr"));
    ck_assert_ptr_nonnull(variable);
    variables_use(&test.variables, variable, NULL);
    test.parts[0].text = value_found("x", 1);
    test.parts[1].variable = variable;
    test.format = (struct line_format) { .name = "x", .part_n = 2, .parts = test.parts };
    test.target =
        (struct log_target) { .fd = -1, .path = arena_printf(test.arena, "%s/log", directory) };
    unlink(test.target.path);
    ck_assert_int_eq(log_target_open(&test.target), 0);
    test.file = (struct access_file) { .target = &test.target, .buffer = buffer, .flush = flush };
    test.log = (struct access_log) { .file = &test.file, .format = &test.format };
    test.conf.files = &test.file;
    test.conf.file_n = 1;
    test.features[FEATURE_ACCESS_LOG] = &test.conf;
    test.cycle.stream.features = test.features;
    test.handler =
        (struct phase_handler) { .phase = PHASE_LOG, .run = access_log_run, .arg = &test.log };
    test.fixture = fixture_start_stream(2);
    server = &test.fixture->server.server;
    server->variables = &test.variables;
    server->after = &test.handler;
    ck_assert_int_eq(access_log_open(test.fixture->stream, &test.cycle, test.fixture->slot), 0);
}

static void end(void)
{
    access_log_close(test.fixture->stream, &test.cycle);
    fixture_stop(test.fixture);
    if (test.target.fd != -1)
        close(test.target.fd);
    arena_destroy(&test.arena);
}

static void run_session(void)
{
    scripted_connect(test.fixture);
    scripted_end_sessions(test.fixture);
}

static const char *read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? 0 : read(fd, test.text, sizeof(test.text) - 1);

    ck_assert_int_ge(n, 0);
    test.text[n] = '\0';
    if (fd != -1)
        close(fd);
    return test.text;
}

START_TEST(a_line_at_once)
{
    begin(0, 0);
    run_session();
    ck_assert_str_eq(read_file(test.target.path), LINE);
    run_session();
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    end();
}
END_TEST

START_TEST(a_buffer_is_written_when_it_is_full)
{
    begin(2 * strlen(LINE), 0);
    run_session();
    run_session();
    ck_assert_str_eq(read_file(test.target.path), "");
    run_session();
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    fixture_pass(test.fixture, 86400000);
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    access_log_flush_to(test.fixture->stream, NULL);
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    access_log_flush_to(test.fixture->stream, &test.target);
    ck_assert_str_eq(read_file(test.target.path), LINE LINE LINE);
    run_session();
    end();
    ck_assert_str_eq(read_file(test.target.path), LINE LINE LINE LINE);
}
END_TEST

START_TEST(a_buffer_is_written_in_time)
{
    begin(1024, 500);
    run_session();
    fixture_pass(test.fixture, 400);
    run_session();
    ck_assert_str_eq(read_file(test.target.path), "");
    fixture_pass(test.fixture, 101);
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    fixture_pass(test.fixture, 1000);
    run_session();
    fixture_pass(test.fixture, 400);
    ck_assert_str_eq(read_file(test.target.path), LINE LINE);
    end();
}
END_TEST

START_TEST(a_line_longer_than_the_buffer)
{
    begin(strlen(LINE) + 3, 0);
    run_session();
    test.parts[0].text = value_found("yyyyyyyy", 8);
    run_session();
    test.parts[0].text = value_found("x", 1);
    run_session();
    ck_assert_str_eq(read_file(test.target.path), LINE "yyyyyyyy" ADDRESS "\n");
    end();
    ck_assert_str_eq(read_file(test.target.path), LINE "yyyyyyyy" ADDRESS "\n" LINE);
}
END_TEST

START_TEST(a_line_that_is_very_long)
{
    static char text[100000];
    struct stat st;

    begin(0, 0);
    memset(text, 'x', sizeof(text));
    test.parts[0].text = value_found(text, sizeof(text));
    run_session();
    ck_assert_int_eq(stat(test.target.path, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)(sizeof(text) + strlen(ADDRESS) + 1));
    end();
}
END_TEST

static const struct {
    const char *text;
    bool logged;
} conditions[] = { { "", false }, { "0", false }, { "00", true }, { "1", true }, { " ", true } };

START_TEST(a_condition)
{
    struct template_part part = { .text = value_found(
                                      conditions[_i].text, strlen(conditions[_i].text)) };
    struct template condition = { .parts = &part, .part_n = 1 };

    begin(0, 0);
    test.log.condition = &condition;
    run_session();
    ck_assert_str_eq(read_file(test.target.path), conditions[_i].logged ? LINE : "");
    end();
}
END_TEST

/* Lines are lost without memory, and the session ends as it would. */
START_TEST(without_memory)
{
    begin(_i == 0 ? 0 : 1024, 0);
    scripted_connect(test.fixture);
    test.fixture->memory.until_failure = 0;
    scripted_end_sessions(test.fixture);
    test.fixture->memory.until_failure = UINT_MAX;
    run_session();
    end();
    ck_assert_ptr_nonnull(strstr(read_file(test.target.path), LINE));
}
END_TEST

/* ---- Paths with variables, and their files ---- */

static struct access_cache_setting caching;
static struct access_path path;

static void begin_path(const struct access_cache_setting *setting)
{
    struct access_log_values *values;

    begin(0, 0);
    values = server_feature(&test.fixture->server.server, FEATURE_ACCESS_LOG);
    access_log_close(test.fixture->stream, &test.cycle);
    path = (struct access_path) {
        .format = { .escape = LOG_ESCAPE_PATH, .parts = test.parts, .part_n = 2 },
        .directory = directory,
    };
    test.parts[0].text =
        value_found(arena_printf(test.arena, "%s/", directory), strlen(directory) + 1);
    test.file.path = &path;
    close(test.target.fd);
    test.target.fd = -1;
    test.conf.cache_n = 1;
    values->cache = setting;
    ck_assert_int_eq(access_log_open(test.fixture->stream, &test.cycle, test.fixture->slot), 0);
}

static const char *named(const char *name)
{
    static char text[PATH_MAX];

    snprintf(text, sizeof(text), "%s/%s", directory, name);
    return text;
}

START_TEST(a_path_of_the_session)
{
    begin_path(NULL);
    unlink(named(ADDRESS));
    run_session();
    run_session();
    snprintf(
        test.text, sizeof(test.text), "%s/" ADDRESS "\n%s/" ADDRESS "\n", directory, directory);
    ck_assert_uint_eq(
        strlen(read_file(named(ADDRESS))), 2 * (strlen(directory) + strlen(ADDRESS) + 2));
    end();
}
END_TEST

/* Whether the path's file is open: a session after the removal makes no second file. */
static bool is_open(void)
{
    ck_assert_int_eq(unlink(named(ADDRESS)), 0);
    run_session();
    return access(named(ADDRESS), F_OK) != 0;
}

START_TEST(a_file_stays_open)
{
    caching =
        (struct access_cache_setting) { .max = 1, .inactive = 1000, .valid = 5000, .min_uses = 2 };
    begin_path(&caching);
    run_session(); /* the first use is too few */
    ck_assert(!is_open());
    ck_assert(is_open());
    run_session();
    ck_assert_int_ne(access(named(ADDRESS), F_OK), 0);
    access_log_reopen(test.fixture->stream);
    run_session();
    ck_assert_int_eq(access(named(ADDRESS), F_OK), 0);
    fixture_pass(test.fixture, 900);
    ck_assert(!is_open());
    ck_assert(is_open());
    fixture_pass(test.fixture, 1001);
    run_session();
    ck_assert_int_eq(access(named(ADDRESS), F_OK), 0);
    end();
}
END_TEST

START_TEST(a_file_is_looked_for)
{
    caching =
        (struct access_cache_setting) { .max = 1, .inactive = 9000, .valid = 2000, .min_uses = 1 };
    begin_path(&caching);
    run_session();
    ck_assert(is_open());
    fixture_pass(test.fixture, 1999);
    run_session();
    ck_assert_int_ne(access(named(ADDRESS), F_OK), 0);
    fixture_pass(test.fixture, 1);
    run_session();
    ck_assert_int_eq(access(named(ADDRESS), F_OK), 0);
    end();
}
END_TEST

START_TEST(few_files_are_open)
{
    struct access_cache_setting setting = { .max = 2, .inactive = 1000, .min_uses = 1 };
    struct access_cache *cache;
    char name[8];

    begin(0, 0);
    cache = access_cache_create(&setting, test.fixture->net->memory, test.fixture->loop);
    ck_assert_ptr_nonnull(cache);
    for (unsigned i = 0; i < 9; i++) {
        struct log_target *target;

        snprintf(name, sizeof(name), "f%u", i % 3);
        target = access_cache_open(cache, named(name));
        ck_assert_ptr_nonnull(target);
        ck_assert_str_eq(target->path, named(name));
        access_cache_give(cache, target);
        ck_assert_ptr_eq(access_cache_open(cache, named(name)), target);
        access_cache_give(cache, target);
    }
    ck_assert_ptr_null(access_cache_open(cache, named("none/f")));
    ck_assert_int_eq(errno, ENOENT);
    access_cache_destroy(&cache);
    end();
}
END_TEST

/* Runs a session, and leaves its lines. */
static const char *run_logged_session(void)
{
    struct sim_socket *client = scripted_connect(test.fixture);

    fixture_logged(test.fixture);
    sim_end(client);
    fixture_run(test.fixture);
    return fixture_logged(test.fixture);
}

START_TEST(what_cannot_be_opened)
{
    const char *lines;

    begin_path(NULL);
    test.parts[0].text = value_found(named("none/"), strlen(named("none/")));
    lines = run_logged_session();
    ck_assert_ptr_nonnull(strstr(lines, "[crit] open() \""));
    ck_assert_ptr_nonnull(strstr(lines, "[alert] 1 line was not accepted by \""));
    ck_assert_ptr_null(strstr(run_logged_session(), "open()"));
    fixture_pass(test.fixture, 60000);
    lines = run_logged_session();
    ck_assert_ptr_nonnull(strstr(lines, "[crit] open() \""));
    ck_assert_ptr_nonnull(strstr(lines, "[alert] 2 lines were not accepted by \""));
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_loop_test(tcase, each_byte, LOG_ESCAPE_DEFAULT, LOG_ESCAPE_PATH + 1);
    tcase_add_test(tcase, no_room);
    tcase_add_loop_test(tcase, names_are_names, 0, countof(paths));
    tcase_add_test(tcase, long_names_are_cut);
    tcase_add_test(tcase, a_line_at_once);
    tcase_add_test(tcase, a_buffer_is_written_when_it_is_full);
    tcase_add_test(tcase, a_buffer_is_written_in_time);
    tcase_add_test(tcase, a_line_longer_than_the_buffer);
    tcase_add_test(tcase, a_line_that_is_very_long);
    tcase_add_loop_test(tcase, a_condition, 0, countof(conditions));
    tcase_add_loop_test(tcase, without_memory, 0, 2);
    tcase_add_test(tcase, a_path_of_the_session);
    tcase_add_test(tcase, a_file_stays_open);
    tcase_add_test(tcase, a_file_is_looked_for);
    tcase_add_test(tcase, few_files_are_open);
    tcase_add_test(tcase, what_cannot_be_opened);
}

TEST_MAIN("access_log", add_tests)
