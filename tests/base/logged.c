/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a log on a file without a name or on a pair of datagram sockets, and reads back what came
 * out of it. */
#include "base/logged.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void begin_log(struct logged *logged, enum log_level level, int fd, int reader)
{
    logged->target = (struct log_target) { .fd = fd, .level = level, .journal_fd = -1 };
    logged->reader = reader;
    log_init(&logged->log, &logged->target, 1);
    logged->log.pid = 123;
}

void logged_begin(struct logged *logged, enum log_level level)
{
    char path[] = "/tmp/log_write.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(unlink(path), 0);
    begin_log(logged, level, fd, fd);
}

void logged_begin_socket(struct logged *logged, enum log_level level)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    begin_log(logged, level, ends[0], ends[1]);
}

void logged_clear(struct logged *logged)
{
    ck_assert_int_eq(ftruncate(logged->target.fd, 0), 0);
    ck_assert_int_eq(lseek(logged->target.fd, 0, SEEK_SET), 0);
}

void logged_end(struct logged *logged)
{
    close(logged->target.fd);
    if (logged->reader != logged->target.fd && logged->reader != -1)
        close(logged->reader);
}

const char *logged_text(struct logged *logged)
{
    ssize_t n = pread(logged->reader, logged->text, sizeof(logged->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    logged->text[n] = '\0';
    return logged->text;
}

const char *logged_datagram(struct logged *logged)
{
    ssize_t n = recv(logged->reader, logged->text, sizeof(logged->text) - 1, MSG_DONTWAIT);

    logged->text[n == -1 ? 0 : n] = '\0';
    return logged->text;
}

void logged_line(struct logged *logged, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vput(&logged->log, line, format, args);
    va_end(args);
}
