/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the error log: form, levels, targets, and the escapes of bytes hidden from terminals. */
#include "base/log.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TARGET_MAX 3

/* Targets that write into unlinked files. */
struct fixture {
    struct log log;
    struct log_target targets[TARGET_MAX];
    char text[8192];
};

static int temporary_file(void)
{
    char path[] = "/tmp/log_write.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(unlink(path), 0);
    return fd;
}

static void set_up(struct fixture *fixture, unsigned n, enum log_level level)
{
    for (unsigned i = 0; i < n; i++)
        fixture->targets[i] = (struct log_target) { .fd = temporary_file(), .level = level };
    log_init(&fixture->log, fixture->targets, n);
    fixture->log.pid = 123;
}

static void tear_down(struct fixture *fixture)
{
    for (unsigned i = 0; i < fixture->log.target_n; i++)
        if (fixture->targets[i].fd != -1)
            close(fixture->targets[i].fd);
}

/* Returns the target's text. */
static const char *text_of(struct fixture *fixture, unsigned target)
{
    ssize_t n = pread(fixture->targets[target].fd, fixture->text, sizeof(fixture->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    fixture->text[n] = '\0';
    return fixture->text;
}

static void PRINTF_FORMAT(3, 4)
    write_line(struct log *log, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vput(log, line, format, args);
    va_end(args);
}

/* The line behind its date; the shape of the date is checked. */
static const char *undated(const char *line)
{
    static const char shape[] = "dddd/dd/dd dd:dd:dd ";

    ck_assert_uint_ge(strlen(line), sizeof(shape) - 1);
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        if (shape[i] == 'd')
            ck_assert_msg(line[i] >= '0' && line[i] <= '9', "no date: %s", line);
        else
            ck_assert_msg(line[i] == shape[i], "no date: %s", line);
    }
    return line + sizeof(shape) - 1;
}

START_TEST(a_line_has_the_shape_of_nginx)
{
    struct fixture f;

    set_up(&f, 1, LEVEL_INFO);
    log_write(&f.log, LEVEL_ERROR, 0, "message %d", 7);
    ck_assert_str_eq(undated(text_of(&f, 0)), "[error] 123#0: message 7\n");
    tear_down(&f);
}
END_TEST

START_TEST(a_line_names_connection_error_and_context)
{
    const struct log_line line = {
        .level = LEVEL_INFO,
        .error = ECONNREFUSED,
        .connection = 5,
        .client = "127.0.0.1",
    };
    struct fixture f;
    char expected[256];

    snprintf(expected, sizeof(expected),
        "[info] 123#0: *5 connect() failed (%d: %s), client: 127.0.0.1\n", ECONNREFUSED,
        strerror(ECONNREFUSED));
    set_up(&f, 1, LEVEL_INFO);
    write_line(&f.log, &line, "%s failed", "connect()");
    ck_assert_str_eq(undated(text_of(&f, 0)), expected);
    tear_down(&f);
}
END_TEST

START_TEST(a_line_names_its_place_in_the_configuration)
{
    const struct log_place place = { .file = "/x.conf", .line = 12, .column = 4 };
    struct fixture f;
    char expected[256];

    snprintf(expected, sizeof(expected), "[emerg] 123#0: bind() failed (%d: %s) in /x.conf:12:4\n",
        EADDRINUSE, strerror(EADDRINUSE));
    set_up(&f, 1, LEVEL_INFO);
    f.log.place = &place;
    log_write(&f.log, LEVEL_EMERG, EADDRINUSE, "bind() failed");
    ck_assert_str_eq(undated(text_of(&f, 0)), expected);
    tear_down(&f);
}
END_TEST

START_TEST(the_date_is_now)
{
    struct fixture f;
    struct tm tm = { .tm_isdst = -1 };
    time_t before = time(NULL), logged;

    set_up(&f, 1, LEVEL_INFO);
    log_write(&f.log, LEVEL_INFO, 0, "now");
    ck_assert_ptr_nonnull(strptime(text_of(&f, 0), "%Y/%m/%d %H:%M:%S", &tm));
    logged = mktime(&tm);
    ck_assert_int_ge(logged, before);
    ck_assert_int_le(logged, test_second());

    /* the text that is kept for a second is not kept for longer */
    f.log.stamp.second -= 10;
    memcpy(f.log.stamp.date, "1999", 4);
    log_write(&f.log, LEVEL_INFO, 0, "again");
    ck_assert_ptr_null(strstr(text_of(&f, 0), "1999"));
    tear_down(&f);
}
END_TEST

START_TEST(a_plain_line_has_a_name_and_no_date)
{
    struct fixture f;

    log_init_plain(&f.log, &f.targets[0], "forkbeard");
    ck_assert_int_eq(f.targets[0].fd, STDERR_FILENO);
    f.targets[0].fd = temporary_file();
    log_write(&f.log, LEVEL_NOTICE, 0, "started");
    log_write(&f.log, LEVEL_INFO, 0, "not shown");
    ck_assert_str_eq(text_of(&f, 0), "forkbeard: [notice] started\n");
    tear_down(&f);
}
END_TEST

START_TEST(errno_is_kept)
{
    struct fixture f;

    set_up(&f, 2, LEVEL_INFO);
    close(f.targets[1].fd); /* writing to it fails with EBADF */
    errno = ENOENT;
    log_write(&f.log, LEVEL_ERROR, EPERM, "message");
    ck_assert_int_eq(errno, ENOENT);
    f.targets[1].fd = -1;
    ck_assert_str_eq(
        undated(text_of(&f, 0)), "[error] 123#0: message (1: Operation not permitted)\n");
    tear_down(&f);
}
END_TEST

START_TEST(bytes_that_control_a_terminal_are_escaped)
{
    struct fixture f;

    set_up(&f, 1, LEVEL_INFO);
    log_write(&f.log, LEVEL_INFO, 0, "%s", "a\nb\r\tc\x1b[31m\x7f\x01 \xc3\xa9");
    ck_assert_str_eq(
        undated(text_of(&f, 0)), "[info] 123#0: a\\x0ab\\x0d\\x09c\\x1b[31m\\x7f\\x01 \xc3\xa9\n");
    tear_down(&f);
}
END_TEST

START_TEST(each_target_takes_its_levels)
{
    struct fixture f;
    int counts[TARGET_MAX] = { 0 };

    set_up(&f, 3, LEVEL_WARN);
    f.targets[1].level = LEVEL_EMERG;
    f.targets[2].level = LEVEL_DEBUG;
    log_update(&f.log);
    ck_assert_int_eq(f.log.level, LEVEL_DEBUG);
    for (int level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++)
        log_write(&f.log, (enum log_level)level, 0, "message");
    for (unsigned i = 0; i < 3; i++)
        for (const char *p = text_of(&f, i); (p = strchr(p, '\n')) != NULL; p++)
            counts[i]++;
    ck_assert_int_eq(counts[0], 5);
    ck_assert_int_eq(counts[1], 1);
    ck_assert_int_eq(counts[2], 8);
    tear_down(&f);
}
END_TEST

START_TEST(a_level_that_no_target_takes_is_not_formatted)
{
    struct fixture f;
    int evaluated = 0;

    set_up(&f, 1, LEVEL_WARN);
    log_write(&f.log, LEVEL_NOTICE, 0, "%d", ++evaluated);
    ck_assert_int_eq(evaluated, 0);
    ck_assert_str_eq(text_of(&f, 0), "");
    tear_down(&f);
}
END_TEST

START_TEST(a_forced_line_goes_to_every_target)
{
    const struct log_line line = { .level = LEVEL_DEBUG, .force = true };
    struct fixture f;

    set_up(&f, 2, LEVEL_EMERG);
    write_line(&f.log, &line, "forced");
    ck_assert_str_eq(undated(text_of(&f, 0)), "[debug] 123#0: forced\n");
    ck_assert_str_eq(undated(text_of(&f, 1)), "[debug] 123#0: forced\n");
    tear_down(&f);
}
END_TEST

/* A log with a target of level warn, and a route to a target of level error. */
struct routed {
    struct fixture fixture;
    struct log_route *route;
};

static void set_up_routed(struct routed *routed)
{
    set_up(&routed->fixture, 2, LEVEL_WARN);
    routed->fixture.log.target_n = 1; /* the second is the route's */
    routed->route = malloc(sizeof(*routed->route) + sizeof(routed->route->targets[0]));
    ck_assert_ptr_nonnull(routed->route);
    routed->route->level = routed->route->targets[0].level = LEVEL_ERROR;
    routed->route->targets[0].target = &routed->fixture.targets[1];
    routed->route->n = 1;
    routed->fixture.log.routed = LEVEL_ERROR;
    log_update(&routed->fixture.log);
}

static void tear_down_routed(struct routed *routed)
{
    free(routed->route);
    routed->fixture.log.target_n = 2;
    tear_down(&routed->fixture);
}

/* Writes a line of each level to the first target and to the route; returns the written levels. */
static unsigned write_levels(struct routed *routed)
{
    struct fixture *f = &routed->fixture;
    unsigned taken = 0;

    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(ftruncate(f->targets[i].fd, 0), 0);
        ck_assert_int_eq(lseek(f->targets[i].fd, 0, SEEK_SET), 0);
    }
    for (enum log_level level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++)
        for (unsigned i = 0; i < 2; i++)
            if (level <= f->log.level)
                write_line(&f->log,
                    &(struct log_line) { .level = level, .route = i == 1 ? routed->route : NULL },
                    "<%d>", level);
    for (unsigned i = 0; i < 2; i++) {
        const char *text = text_of(f, i);

        for (unsigned level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++) {
            char line[8];

            snprintf(line, sizeof(line), "<%u>", level);
            taken |= (unsigned)(strstr(text, line) != NULL) << (8 * i + level);
        }
    }
    return taken;
}

/* The levels up to `level`, as bits. */
#define UP_TO(level) ((2u << (level)) - 1)

START_TEST(an_override_is_the_level_of_targets_and_routes)
{
    struct routed routed;
    const unsigned own = UP_TO(LEVEL_WARN) | UP_TO(LEVEL_ERROR) << 8;

    set_up_routed(&routed);
    ck_assert_uint_eq(write_levels(&routed), own);
    for (enum log_level level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++) {
        log_set_override(&routed.fixture.log, LOG_OVERRIDE(level));
        ck_assert_int_eq(routed.fixture.log.level, level);
        ck_assert_uint_eq(write_levels(&routed), UP_TO(level) | UP_TO(level) << 8);
        log_set_override(&routed.fixture.log, 0);
        ck_assert_int_eq(routed.fixture.log.level, LEVEL_WARN);
        ck_assert_uint_eq(write_levels(&routed), own);
    }
    tear_down_routed(&routed);
}
END_TEST

START_TEST(an_override_is_none_of_a_second_log)
{
    struct fixture f, second;

    set_up(&f, 1, LEVEL_ERROR);
    set_up(&second, 1, LEVEL_NOTICE);
    f.log.also = &second.log;
    log_set_override(&f.log, LOG_OVERRIDE(LEVEL_ALERT));
    ck_assert_int_eq(f.log.level, LEVEL_NOTICE);
    log_write(&f.log, LEVEL_ERROR, 0, "line");
    ck_assert_str_eq(text_of(&f, 0), "");
    ck_assert_str_eq(undated(text_of(&second, 0)), "[error] 123#0: line\n");
    tear_down(&f);
    tear_down(&second);
}
END_TEST

START_TEST(a_long_message_is_clipped_to_one_line)
{
    static const char *const fills[] = { "x", "\n" }; /* unchanged, and four bytes for one */
    struct fixture f;
    char message[6000];

    for (size_t i = 0; i < countof(fills); i++) {
        const char *line;
        size_t n;

        memset(message, *fills[i], sizeof(message) - 1);
        message[sizeof(message) - 1] = '\0';
        set_up(&f, 1, LEVEL_INFO);
        log_write(&f.log, LEVEL_INFO, EPERM, "%s", message);
        line = text_of(&f, 0);
        n = strlen(line);
        ck_assert_uint_gt(n, 4000);
        ck_assert_uint_le(n, 4096);
        ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
        tear_down(&f);
    }
}
END_TEST

START_TEST(a_target_is_reopened_at_its_path)
{
    char directory[] = "/tmp/log_write.XXXXXX", path[64], moved[64];
    struct fixture f;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    snprintf(moved, sizeof(moved), "%s/log.1", directory);
    f.targets[0] = (struct log_target) { .fd = -1, .level = LEVEL_INFO, .path = path };
    log_init(&f.log, f.targets, 1);
    log_write(&f.log, LEVEL_INFO, 0, "nowhere");

    ck_assert_int_eq(log_target_open(&f.targets[0]), 0);
    log_write(&f.log, LEVEL_INFO, 0, "first");
    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert_int_eq(log_target_open(&f.targets[0]), 0);
    log_write(&f.log, LEVEL_INFO, 0, "second");
    close(f.targets[0].fd);

    f.targets[0].fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_ptr_nonnull(strstr(text_of(&f, 0), ": second\n"));
    ck_assert_ptr_null(strstr(text_of(&f, 0), "first"));
    tear_down(&f);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(unlink(moved), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(a_target_that_cannot_be_opened_keeps_its_descriptor)
{
    struct fixture f;
    int fd;

    set_up(&f, 1, LEVEL_INFO);
    fd = f.targets[0].fd;
    f.targets[0].path = "/nonexistent/log";
    ck_assert_int_eq(log_target_open(&f.targets[0]), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(f.targets[0].fd, fd);
    log_write(&f.log, LEVEL_INFO, 0, "still here");
    ck_assert_ptr_nonnull(strstr(text_of(&f, 0), "still here"));
    tear_down(&f);
}
END_TEST

/* A path that cannot be opened may lead to a standard descriptor: to systemd's journal, a socket,
 * or to a container's pipe of another user. */
START_TEST(a_standard_descriptor_is_found_by_its_path)
{
    static const char *const paths[] = { "/dev/stdout", "/dev/stderr", "/proc/self/fd/1",
        "/dev/fd/2" };
    const char *path = paths[_i];
    int standard = strchr(path, '1') != NULL || strstr(path, "out") != NULL ? 1 : 2, ends[2];
    struct log_target target = { .fd = -1, .level = LEVEL_ERROR, .path = path };
    int saved = fcntl(standard, F_DUPFD_CLOEXEC, 10);
    char text[8];

    ck_assert_int_ne(saved, -1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(dup2(ends[1], standard), standard);
    ck_assert_int_eq(log_target_open(&target), 0);
    ck_assert_int_eq(dup2(saved, standard), standard);
    ck_assert_int_gt(target.fd, 2);
    ck_assert_int_eq(fcntl(target.fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(write(target.fd, "a line", 6), 6);
    ck_assert_int_eq(read(ends[0], text, sizeof(text)), 6);
    close(target.fd);
    close(saved);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(a_socket_of_another_is_not_opened)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct log_target target = { .fd = -1, .level = LEVEL_ERROR, .path = address.sun_path };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/log_write.%d", (int)getpid());
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(log_target_open(&target), -1);
    ck_assert_int_eq(errno, ENXIO);
    ck_assert_int_eq(target.fd, -1);
    ck_assert_int_eq(unlink(address.sun_path), 0);
    close(fd);
}
END_TEST

START_TEST(levels_have_names)
{
    for (int level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++)
        ck_assert_int_eq(log_level_parse(log_level_name((enum log_level)level)), level);
    ck_assert_str_eq(log_level_name(LEVEL_CRIT), "crit");
    ck_assert_int_eq(log_level_parse("warning"), -1);
    ck_assert_int_eq(log_level_parse(""), -1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_line_has_the_shape_of_nginx);
    tcase_add_test(tcase, a_line_names_connection_error_and_context);
    tcase_add_test(tcase, a_line_names_its_place_in_the_configuration);
    tcase_add_test(tcase, the_date_is_now);
    tcase_add_test(tcase, a_plain_line_has_a_name_and_no_date);
    tcase_add_test(tcase, errno_is_kept);
    tcase_add_test(tcase, bytes_that_control_a_terminal_are_escaped);
    tcase_add_test(tcase, each_target_takes_its_levels);
    tcase_add_test(tcase, a_level_that_no_target_takes_is_not_formatted);
    tcase_add_test(tcase, a_forced_line_goes_to_every_target);
    tcase_add_test(tcase, an_override_is_the_level_of_targets_and_routes);
    tcase_add_test(tcase, an_override_is_none_of_a_second_log);
    tcase_add_test(tcase, a_long_message_is_clipped_to_one_line);
    tcase_add_test(tcase, a_target_is_reopened_at_its_path);
    tcase_add_test(tcase, a_target_that_cannot_be_opened_keeps_its_descriptor);
    tcase_add_loop_test(tcase, a_standard_descriptor_is_found_by_its_path, 0, 4);
    tcase_add_test(tcase, a_socket_of_another_is_not_opened);
    tcase_add_test(tcase, levels_have_names);
}

TEST_MAIN("log", add_tests)
