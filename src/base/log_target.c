/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and connects targets, and writes lines to them. No function here logs, so that a failure
 * cannot cause another line. */
#include "base/log_target.h"

#include "base/log_form.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FIELD_MIN 64 /* a name, at least, and its newline */

/* Duplicates standard output or error if the path leads to the same file: /dev/stderr cannot be
 * opened where it is a socket, or a pipe that another user made. Returns -1 and leaves errno
 * unchanged on failure. */
static int dup_standard(const char *path)
{
    struct stat named, standard;
    int error = errno, copy = -1;

    if (stat(path, &named) == 0)
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && copy == -1; fd++)
            if (fstat(fd, &standard) == 0 && standard.st_dev == named.st_dev &&
                standard.st_ino == named.st_ino)
                copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    errno = error;
    return copy;
}

int log_target_open(struct log_target *target)
{
    int fd;

    assert(target->path != NULL && target->syslog == NULL);
    fd = open(target->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (fd == -1 && (errno == ENXIO || errno == EACCES))
        fd = dup_standard(target->path);
    if (fd == -1)
        return -1;
    if (target->fd != -1)
        close(target->fd);
    target->fd = fd;
    return 0;
}

int log_target_make_socket(struct log_target *target)
{
    int family = target->syslog->address->sa_family;

    target->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return target->fd == -1 ? -1 : 0;
}

int log_target_connect(struct log_target *target)
{
    const struct syslog_server *syslog = target->syslog;
    struct sockaddr none = { .sa_family = AF_UNSPEC };

    /* a UDP socket would keep the address that it has sent from */
    if (syslog->address->sa_family != AF_UNIX && connect(target->fd, &none, sizeof(none)) == -1)
        return -1;
    return connect(target->fd, syslog->address, syslog->address_n);
}

static bool send_parts(int fd, struct iovec *parts, size_t n)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = n };

    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != -1;
}

/* Whether the receiver's buffer is full. Every other error means that the receiver has gone. */
static bool is_full(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EMSGSIZE;
}

static void count_lost(struct log_target *target)
{
    target->lost++;
    if (!is_full(errno))
        target->broken = true;
}

static void send_syslog(struct log_target *target, const struct log_entry *entry, struct iovec line)
{
    const struct syslog_server *syslog = target->syslog;
    struct iovec parts[2] = { { .iov_base = NULL }, line };
    char head[400];

    log_stamp_update(entry->stamp);
    snprintf(head, sizeof(head),
        "<%u>%s %s%s: ", syslog->facility * 8 + (unsigned)entry->line->level, entry->stamp->syslog,
        syslog->host, syslog->tag);
    parts[0] = (struct iovec) { .iov_base = head, .iov_len = strlen(head) };
    if (send_parts(target->fd, parts, 2))
        return;
    if (errno == ECONNREFUSED && syslog->address->sa_family != AF_UNIX) {
        target->lost++; /* an earlier line was refused, and this one was not sent */
        if (send_parts(target->fd, parts, 2))
            return;
    }
    count_lost(target);
}

static void add_field(struct log_text *fields, const char *name, const char *value)
{
    if (value == NULL || sizeof(fields->bytes) - fields->n < FIELD_MIN)
        return;
    log_text_add(fields, name);
    log_text_add(fields, value);
    fields->bytes[fields->n++] = '\n';
}

/* systemd's "native protocol": lines NAME=value. */
static bool send_journal(struct log_target *target, struct log_entry *entry)
{
    const struct log_line *line = entry->line;
    struct log_text fields;
    char head[80], number[24];
    struct iovec parts[3];

    fields.n = 0;
    snprintf(
        head, sizeof(head), "PRIORITY=%d\nSYSLOG_IDENTIFIER=forkbeard\nMESSAGE=", (int)line->level);
    if (line->error != 0) {
        snprintf(number, sizeof(number), "%d", line->error);
        add_field(&fields, "ERRNO=", number);
    }
    if (line->connection != 0) {
        snprintf(number, sizeof(number), "%llu", (unsigned long long)line->connection);
        add_field(&fields, "FORKBEARD_CONNECTION=", number);
    }
    add_field(&fields, "FORKBEARD_CLIENT=", line->client);
    add_field(&fields, "FORKBEARD_SERVER=", line->server);
    add_field(&fields, "FORKBEARD_UPSTREAM=", line->upstream);
    add_field(&fields, "FORKBEARD_PROTOCOL=", line->protocol);
    parts[0] = (struct iovec) { .iov_base = head, .iov_len = strlen(head) };
    parts[1] = (struct iovec) { .iov_base = entry->text.bytes + entry->head,
        .iov_len = entry->text.n - entry->head };
    parts[2] = (struct iovec) { .iov_base = fields.bytes, .iov_len = fields.n };
    return send_parts(target->journal_fd, parts, 3);
}

/* Writes to standard error instead of the journal's socket; the journal reads both. */
static void send_prefixed(struct log_target *target, enum log_level level, struct iovec line)
{
    char head[8];
    struct iovec parts[2] = { { .iov_base = head }, line };

    parts[0].iov_len = (size_t)snprintf(head, sizeof(head), "<%d>", (int)level);
    if (send_parts(target->fd, parts, 2))
        return;
    if (errno != ENOTSOCK)
        target->lost++;
    else if (writev(target->fd, parts, 2) == -1)
        return;
}

static void to_journal(struct log_target *target, struct log_entry *entry)
{
    struct iovec line = { .iov_base = entry->text.bytes, .iov_len = entry->text.n };

    if (target->journal_fd != -1) {
        if (send_journal(target, entry))
            return;
        target->broken = target->broken || !is_full(errno);
    }
    send_prefixed(target, entry->line->level, line);
}

void log_target_write(struct log_target *target, struct log_entry *entry)
{
    bool is_json = target->format == LOG_FORMAT_JSON;
    const struct log_text *form = is_json ? log_json_make(entry) : log_text_make(entry);
    struct iovec line = { .iov_base = (char *)form->bytes, .iov_len = form->n };

    assert(target->fd != -1 && form->n > 0);
    if (target->syslog != NULL) {
        line.iov_len--; /* a datagram ends by itself */
        send_syslog(target, entry, line);
    } else if (target->journal && !is_json) {
        to_journal(target, entry);
    } else if (write(target->fd, form->bytes, form->n) == -1) {
        return; /* a log that cannot be written cannot report this either */
    }
}
