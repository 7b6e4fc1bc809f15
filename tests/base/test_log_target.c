/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines as datagrams, for a syslog server and for the journal, and the handling of refused
 * lines. */
#include "base/logged.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const struct sockaddr_un nowhere = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };

static const struct syslog_server server = {
    .address = (const struct sockaddr *)&nowhere,
    .address_n = sizeof(nowhere),
    .name = "unix:/nowhere",
    .host = "host ",
    .tag = "tag",
    .facility = 23,
};

static void begin_syslog(struct logged *logged)
{
    logged_begin_socket(logged, LEVEL_INFO);
    logged->target.syslog = &server;
}

/* Writes lines up to a refused one; returns the number of taken lines. */
static unsigned fill_queue(struct logged *logged)
{
    unsigned n = 0;

    for (; logged->target.lost == 0; n++) {
        ck_assert_uint_lt(n, 100000);
        log_write(&logged->log, LEVEL_INFO, 0, "fill");
    }
    return n - 1;
}

/* Counts the datagrams with the text. */
static unsigned drain_queue(struct logged *logged, const char *text)
{
    unsigned n = 0;

    while (*logged_datagram(logged) != '\0')
        n += strstr(logged->text, text) != NULL;
    return n;
}

START_TEST(a_syslog_line_has_its_head)
{
    struct logged logged;
    const char *text, *rest;
    struct tm tm;

    begin_syslog(&logged);
    log_write(&logged.log, LEVEL_ERROR, EPERM, "me\nssage");
    text = logged_datagram(&logged);
    ck_assert_int_eq(strncmp(text, "<187>", 5), 0);
    rest = strptime(text + 5, "%b %d %H:%M:%S", &tm);
    ck_assert_ptr_eq(rest, text + strlen("<187>Nov 21 09:30:00"));
    ck_assert_int_eq(strncmp(rest, " host tag: ", 11), 0);
    ck_assert_ptr_nonnull(strptime(rest + 11, "%Y/%m/%d %H:%M:%S [", &tm));
    ck_assert_str_eq(strchr(text, '['), "[error] 123#0: me\\x0assage (1: Operation not permitted)");
    logged_end(&logged);
}
END_TEST

START_TEST(a_syslog_line_has_its_severity)
{
    struct syslog_server own = server;
    struct logged logged;

    own.facility = (unsigned)_i;
    own.host = "";
    logged_begin_socket(&logged, LEVEL_DEBUG);
    logged.target.syslog = &own;
    for (int level = LEVEL_EMERG; level <= LEVEL_DEBUG; level++) {
        char head[16];

        snprintf(head, sizeof(head), "<%d>", _i * 8 + level);
        log_write(&logged.log, (enum log_level)level, 0, "line");
        ck_assert_int_eq(strncmp(logged_datagram(&logged), head, strlen(head)), 0);
        ck_assert_ptr_nonnull(strstr(logged.text, " tag: "));
        ck_assert_ptr_null(strstr(logged.text, "host"));
    }
    logged_end(&logged);
}
END_TEST

/* The offset of the time zone is that of the present time, as strftime() has it. */
START_TEST(a_line_of_rfc5424)
{
    struct syslog_server own = server;
    struct logged logged;
    const char *text, *rest;
    char expected[128], zone[8];
    time_t now = time(NULL);
    struct tm tm;

    own.format = SYSLOG_RFC5424;
    own.host = _i == 0 ? "host " : "";
    begin_syslog(&logged);
    logged.target.syslog = &own;
    log_write(&logged.log, LEVEL_ERROR, 0, "message");
    text = logged_datagram(&logged);
    ck_assert_int_eq(strncmp(text, "<187>1 ", 7), 0);
    rest = strptime(text + 7, "%Y-%m-%dT%H:%M:%S.", &tm);
    ck_assert_ptr_eq(rest, text + strlen("<187>1 2026-11-21T09:30:00."));
    ck_assert_uint_eq(strspn(rest, "0123456789"), 6);
    localtime_r(&now, &tm);
    strftime(zone, sizeof(zone), "%z", &tm);
    snprintf(expected, sizeof(expected), "%.3s:%s %s tag %d error - ", zone, zone + 3,
        _i == 0 ? "host" : "-", (int)getpid());
    ck_assert_int_eq(strncmp(rest + 6, expected, strlen(expected)), 0);
    ck_assert_ptr_nonnull(strstr(rest, " 123#0: message"));
    logged_end(&logged);
}
END_TEST

START_TEST(a_syslog_line_may_be_json)
{
    struct logged logged;
    size_t n;

    begin_syslog(&logged);
    logged.target.format = LOG_FORMAT_JSON;
    log_write(&logged.log, LEVEL_ERROR, 0, "message");
    n = strlen(logged_datagram(&logged));
    ck_assert_ptr_nonnull(strstr(logged.text, " host tag: {\"time\":\""));
    ck_assert_str_eq(logged.text + n - 19, "message\":\"message\"}");
    logged_end(&logged);
}
END_TEST

/* Neither does a receiver that does not keep up have us wait. */
START_TEST(lines_that_are_not_taken_are_counted)
{
    _Atomic uint64_t lost = 0;
    struct logged logged;
    unsigned n;

    begin_syslog(&logged);
    logged.log.lost = &lost;
    n = fill_queue(&logged);
    errno = EDOM;
    for (int i = 0; i < 9; i++)
        log_write(&logged.log, LEVEL_INFO, 0, "more");
    ck_assert_int_eq(errno, EDOM);
    ck_assert_uint_eq(logged.target.lost, 10);
    ck_assert(!logged.target.broken);
    ck_assert_uint_eq(drain_queue(&logged, "fill"), n);

    log_write(&logged.log, LEVEL_INFO, 0, "again");
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "again"));
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged),
        "[alert] 123#0: 10 lines were not accepted by syslog server unix:/nowhere"));
    ck_assert_uint_eq(logged.target.lost, 0);
    log_write(&logged.log, LEVEL_INFO, 0, "again");
    ck_assert_uint_eq(drain_queue(&logged, "again"), 1);
    ck_assert_uint_eq(lost, 10); /* also after the report */
    logged_end(&logged);
}
END_TEST

/* no line at all, not even the report of the loss */
START_TEST(a_count_that_is_not_taken_counts_too)
{
    struct logged logged;

    begin_syslog(&logged);
    fill_queue(&logged);
    logged_datagram(&logged); /* room for one */
    log_write(&logged.log, LEVEL_INFO, 0, "one");
    ck_assert_uint_eq(logged.target.lost, 2);
    drain_queue(&logged, "");
    log_write(&logged.log, LEVEL_INFO, 0, "two");
    ck_assert_uint_eq(drain_queue(&logged, "2 lines were not accepted"), 1);
    logged_end(&logged);
}
END_TEST

static int receiver_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* A socket connected again is connected in every process that has the socket. */
START_TEST(a_receiver_that_has_gone_is_reached_again)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct syslog_server own = server;
    char directory[] = "/tmp/log_write.XXXXXX";
    struct logged logged = { .target = { .fd = -1, .level = LEVEL_INFO, .syslog = &own } };
    int inherited;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/log", directory);
    own.address = (struct sockaddr *)&address;
    log_init(&logged.log, &logged.target, 1);
    ck_assert_int_eq(log_target_make_socket(&logged.target), 0);
    inherited = dup(logged.target.fd);
    ck_assert_int_eq(log_target_connect(&logged.target), -1);
    ck_assert_int_eq(errno, ENOENT);
    log_write(&logged.log, LEVEL_INFO, 0, "nobody");
    ck_assert(logged.target.broken && logged.log.broken);

    for (int i = 0; i < 2; i++) {
        logged.reader = receiver_at(address.sun_path);
        ck_assert_int_eq(log_target_connect(&logged.target), 0);
        logged.target.broken = logged.log.broken = false;
        log_write(&logged.log, LEVEL_INFO, 0, "somebody");
        ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "somebody"));
        ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "1 line was not accepted"));
        ck_assert(!logged.target.broken);
        ck_assert_int_eq(send(inherited, "x", 1, 0), 1);
        ck_assert_str_eq(logged_datagram(&logged), "x");
        close(logged.reader);
        ck_assert_int_eq(unlink(address.sun_path), 0);
        log_write(&logged.log, LEVEL_INFO, 0, "nobody");
        ck_assert(logged.target.broken && logged.log.broken);
        ck_assert_uint_eq(logged.target.lost, 1);
    }
    close(inherited);
    logged.reader = -1;
    logged_end(&logged);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* UDP reports a refused line only with a later line, which is sent nevertheless. */
START_TEST(udp_lines_that_are_refused_are_counted)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(address);
    struct syslog_server own = server;
    struct logged logged = { .target = { .fd = -1, .level = LEVEL_INFO, .syslog = &own } };

    logged.reader = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(logged.reader, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(getsockname(logged.reader, (struct sockaddr *)&address, &n), 0);
    own.address = (struct sockaddr *)&address;
    own.address_n = n;
    log_init(&logged.log, &logged.target, 1);
    ck_assert_int_eq(log_target_make_socket(&logged.target), 0);
    ck_assert_int_eq(log_target_connect(&logged.target), 0);
    log_write(&logged.log, LEVEL_INFO, 0, "first");
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "first"));

    close(logged.reader);
    for (int i = 0; i < 5; i++)
        log_write(&logged.log, LEVEL_INFO, 0, "refused");
    ck_assert_uint_eq(logged.target.lost, 4);
    ck_assert(!logged.target.broken);
    logged.reader = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(logged.reader, (struct sockaddr *)&address, n), 0);
    log_write(&logged.log, LEVEL_INFO, 0, "back");
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "back"));
    log_write(&logged.log, LEVEL_INFO, 0, "next");
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "next"));
    ck_assert_ptr_nonnull(strstr(logged_datagram(&logged), "5 lines were not accepted"));
    ck_assert_int_eq(log_target_connect(&logged.target), 0); /* at a reopening */
    log_write(&logged.log, LEVEL_INFO, 0, "last");
    ck_assert_uint_eq(drain_queue(&logged, "last"), 1);
    logged_end(&logged);
}
END_TEST

/* Lines wait until the server is reached, and when it has gone. */
START_TEST(lines_by_tcp_wait_for_the_server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(address);
    struct syslog_server own = server;
    struct logged logged = { .target = { .fd = -1, .level = LEVEL_INFO, .syslog = &own } };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *message;
    size_t size;

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &n), 0);
    ck_assert_int_eq(listen(listener, 5), 0);
    own.address = (struct sockaddr *)&address;
    own.address_n = n;
    own.by_tcp = true;
    log_init(&logged.log, &logged.target, 1);
    ck_assert_int_eq(log_target_make_socket(&logged.target), 0);
    for (int i = 0; i < 2; i++) {
        log_write(&logged.log, LEVEL_INFO, 0, "line");
        ck_assert(log_target_waits(&logged.target) && logged.log.waiting);
        ck_assert(logged.target.broken && logged.log.broken);
        logged.target.broken = logged.log.broken = logged.log.waiting = false;
        ck_assert_int_eq(log_target_connect(&logged.target), 0);
        logged.reader = accept(listener, NULL, NULL);
        log_write(&logged.log, LEVEL_INFO, 0, "line"); /* behind the first */
        ck_assert(!log_target_waits(&logged.target) && !logged.log.broken);
        size = strtoul(logged_datagram(&logged), &message, 10);
        ck_assert_int_eq(strncmp(message, " <190>", 6), 0);
        ck_assert_uint_eq(strlen(logged.text), 2 * (strlen("12 ") + size));
        ck_assert_int_eq(strncmp(message + 1 + size, logged.text, 8), 0);
        close(logged.reader);
    }
    ck_assert_uint_eq(logged.target.lost, 0);
    log_target_close(&logged.target);
    ck_assert_ptr_null(logged.target.stream);
    close(listener);
}
END_TEST

/* The journal: `reader` is its socket, and `fd` a file in place of standard error. */
static void begin_journal(struct logged *logged, int *journal)
{
    struct logged file;

    logged_begin(&file, LEVEL_DEBUG);
    logged_begin_socket(logged, LEVEL_DEBUG);
    logged->target.journal = true;
    logged->target.journal_fd = logged->target.fd;
    logged->target.fd = file.target.fd;
    *journal = logged->target.journal_fd;
}

static const char *written(struct logged *logged)
{
    ssize_t n = pread(logged->target.fd, logged->text, sizeof(logged->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    logged->text[n] = '\0';
    return logged->text;
}

START_TEST(the_journal_is_given_fields)
{
    const struct log_line line = {
        .level = LEVEL_ERROR,
        .error = ECONNREFUSED,
        .connection = 5,
        .client = "192.0.2.1",
        .server = "0.0.0.0:80",
        .upstream = "unix:/a\nb",
        .protocol = "relay",
    };
    struct logged logged;
    int journal;

    begin_journal(&logged, &journal);
    logged_line(&logged, &line, "connect()\nPRIORITY=0");
    ck_assert_str_eq(logged_datagram(&logged),
        "PRIORITY=3\nSYSLOG_IDENTIFIER=forkbeard\nMESSAGE=*5 connect()\\x0aPRIORITY=0 "
        "(111: Connection refused), client: 192.0.2.1, server: 0.0.0.0:80, "
        "upstream: \"unix:/a\\x0ab\"\nERRNO=111\nFORKBEARD_CONNECTION=5\n"
        "FORKBEARD_CLIENT=192.0.2.1\nFORKBEARD_SERVER=0.0.0.0:80\n"
        "FORKBEARD_UPSTREAM=unix:/a\\x0ab\nFORKBEARD_PROTOCOL=relay\n");
    log_write(&logged.log, LEVEL_DEBUG, 0, "plain");
    ck_assert_str_eq(
        logged_datagram(&logged), "PRIORITY=7\nSYSLOG_IDENTIFIER=forkbeard\nMESSAGE=plain\n");
    ck_assert_str_eq(written(&logged), "");
    close(journal);
    logged_end(&logged);
}
END_TEST

/* Every field is whole, for any line. */
START_TEST(long_fields_are_cut)
{
    char text[6000];
    const struct log_line line = {
        .level = LEVEL_ERROR, .client = text, .server = text, .upstream = text, .protocol = text
    };
    struct logged logged;
    int journal;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    begin_journal(&logged, &journal);
    for (size_t n = 0; n < sizeof(text) - 1; n += 13) {
        char *rest = logged.text, *field;

        text[n] = '\0';
        logged_line(&logged, &line, "%s", text);
        logged_datagram(&logged);
        ck_assert_int_eq(logged.text[strlen(logged.text) - 1], '\n');
        while ((field = strsep(&rest, "\n")) != NULL)
            ck_assert_msg(*field == '\0' || strchr(field, '=') != NULL, "%s", field);
        text[n] = 'x';
    }
    close(journal);
    logged_end(&logged);
}
END_TEST

START_TEST(what_the_journal_does_not_take_is_prefixed)
{
    struct logged logged;
    int journal;

    begin_journal(&logged, &journal);
    close(logged.reader);
    logged.reader = -1;
    errno = EDOM;
    log_write(&logged.log, LEVEL_WARN, 0, "gone");
    ck_assert_int_eq(strncmp(written(&logged), "<4>", 3), 0);
    ck_assert_str_eq(strchr(logged.text, '['), "[warn] 123#0: gone\n");
    ck_assert(logged.target.broken && logged.log.broken);
    logged.target.journal_fd = -1; /* pretends that no socket could be made */
    log_write(&logged.log, LEVEL_ERROR, 0, "none");
    ck_assert_ptr_nonnull(strstr(written(&logged), "\n<3>"));
    ck_assert_int_eq(errno, EDOM);
    ck_assert_uint_eq(logged.target.lost, 0);
    close(journal);
    logged_end(&logged);
}
END_TEST

START_TEST(a_slow_journal_makes_nobody_wait)
{
    struct logged logged;
    unsigned n;
    int journal, ends[2];

    begin_journal(&logged, &journal);
    close(logged.target.fd); /* a stream socket, as the journal's */
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    logged.target.fd = ends[0];
    n = fill_queue(&logged);
    ck_assert(!logged.target.broken);
    ck_assert_uint_gt(drain_queue(&logged, "MESSAGE=fill\n"), 0);
    ck_assert_uint_gt(n, 0);
    log_write(&logged.log, LEVEL_INFO, 0, "again");
    ck_assert_uint_eq(drain_queue(&logged, "MESSAGE=1 line was not accepted by the journal\n"), 1);
    close(journal);
    close(ends[1]);
    logged_end(&logged);
}
END_TEST

START_TEST(json_is_not_for_the_journal)
{
    struct logged logged;
    int journal;

    begin_journal(&logged, &journal);
    logged.target.format = LOG_FORMAT_JSON;
    log_write(&logged.log, LEVEL_WARN, 0, "line");
    ck_assert_str_eq(logged_datagram(&logged), "");
    ck_assert_int_eq(written(&logged)[0], '{');
    close(journal);
    logged_end(&logged);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_syslog_line_has_its_head);
    tcase_add_loop_test(tcase, a_syslog_line_has_its_severity, 0, 24);
    tcase_add_loop_test(tcase, a_line_of_rfc5424, 0, 2);
    tcase_add_test(tcase, a_syslog_line_may_be_json);
    tcase_add_test(tcase, lines_that_are_not_taken_are_counted);
    tcase_add_test(tcase, a_count_that_is_not_taken_counts_too);
    tcase_add_test(tcase, a_receiver_that_has_gone_is_reached_again);
    tcase_add_test(tcase, udp_lines_that_are_refused_are_counted);
    tcase_add_test(tcase, lines_by_tcp_wait_for_the_server);
    tcase_add_test(tcase, the_journal_is_given_fields);
    tcase_add_test(tcase, long_fields_are_cut);
    tcase_add_test(tcase, what_the_journal_does_not_take_is_prefixed);
    tcase_add_test(tcase, a_slow_journal_makes_nobody_wait);
    tcase_add_test(tcase, json_is_not_for_the_journal);
}

TEST_MAIN("log_target", add_tests)
