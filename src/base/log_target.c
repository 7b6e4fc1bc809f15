/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and connects targets, and writes lines. Never logs, so that a failure cannot cause another
 * line, and never asks whether a write would wait: other processes write in between. */
#include "base/log_target.h"

#include "base/compiler.h"
#include "base/log_line.h"
#include "os/descriptor.h"
#include "os/files.h"
#include "os/log_file.h"
#include "os/sockets.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Kinds of syslog messages, for the filters of a server. */
#define SYSLOG_ERROR "error"
#define SYSLOG_ACCESS "access"
/* When a server is given up that acknowledges nothing, where the system can. */
#define UNHEARD_MS 30000
#define FIELD_MIN 64 /* a name, at least, and its newline */

/* Duplicates standard output or error if the path leads to the same file: /dev/stderr can be a
 * socket or foreign pipe, which cannot be opened. -1 on failure, with errno unchanged. */
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
    fd = log_file_open(target->path);
    if (fd == -1 && (errno == ENXIO || errno == EACCES))
        fd = dup_standard(target->path);
    if (fd == -1)
        return -1;
    if (target->fd != -1)
        close(target->fd);
    target->fd = fd;
    log_target_find_way(target);
    return 0;
}

static enum log_way way_of(int fd, const struct stat *st)
{
    if (S_ISSOCK(st->st_mode))
        return LOG_WAY_SEND;
    if ((!S_ISFIFO(st->st_mode) && !S_ISCHR(st->st_mode)) || (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0)
        return LOG_WAY_WRITE;
    if (S_ISCHR(st->st_mode))
        return isatty(fd) ? LOG_WAY_WAIT : LOG_WAY_WRITE;
    return os_nowait_is_known(st) ? LOG_WAY_NOWAIT : LOG_WAY_WAIT;
}

void log_target_find_way(struct log_target *target)
{
    int error = errno;
    struct stat st;
    bool known = fstat(target->fd, &st) == 0;

    target->is_pipe = known && S_ISFIFO(st.st_mode);
    target->way = known ? way_of(target->fd, &st) : LOG_WAY_WRITE;
    target->torn = false;
    errno = error;
}

bool log_target_is_same(const struct log_target *a, const struct log_target *b)
{
    if (a->path != NULL || b->path != NULL)
        return a->path != NULL && b->path != NULL && strcmp(a->path, b->path) == 0;
    if (a->syslog != NULL || b->syslog != NULL)
        return a->syslog != NULL && b->syslog != NULL &&
               strcmp(a->syslog->name, b->syslog->name) == 0;
    return true;
}

const char *log_target_name(const struct log_target *target, char name[LOG_TARGET_NAME])
{
    if (target->syslog != NULL)
        snprintf(name, LOG_TARGET_NAME, "syslog server %s", target->syslog->name);
    else if (target->path != NULL)
        snprintf(name, LOG_TARGET_NAME, "\"%.*s\"", LOG_TARGET_NAME - 4, target->path);
    else
        snprintf(name, LOG_TARGET_NAME, target->journal ? "the journal" : "standard error");
    return name;
}

int log_target_make_socket(struct log_target *target)
{
    const struct syslog_server *syslog = target->syslog;
    int family = syslog->address->sa_family;

    if (syslog->by_tcp) {
        target->stream = log_stream_create();
        if (target->stream == NULL)
            return -1;
    }
    target->fd = descriptor_socket(family, syslog->by_tcp ? SOCK_STREAM : SOCK_DGRAM, O_NONBLOCK);
    if (target->fd == -1)
        log_stream_destroy(&target->stream);
    return target->fd == -1 ? -1 : 0;
}

int log_target_dial(const struct log_target *target)
{
    static const int on = 1;
    const struct syslog_server *syslog = target->syslog;
    int fd = descriptor_socket(syslog->address->sa_family, SOCK_STREAM, O_NONBLOCK);

    assert(syslog->by_tcp);
    if (fd == -1)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    os_socket_give_up_in(fd, UNHEARD_MS);
    if (connect(fd, syslog->address, syslog->address_n) == 0 || errno == EINPROGRESS)
        return fd;
    descriptor_close(fd);
    return -1;
}

/* Gives the number of the target's descriptor to another socket; -1 with errno. */
static int replace_socket(struct log_target *target, int fd)
{
    int place = fd == -1 ? -1 : descriptor_replace(fd, target->fd);

    descriptor_close(fd);
    return place == -1 ? -1 : 0;
}

static int connect_stream(struct log_target *target)
{
    if (replace_socket(target, log_target_dial(target)) == -1)
        return -1;
    log_stream_open(target->stream);
    return 0;
}

int log_target_connect(struct log_target *target)
{
    const struct syslog_server *syslog = target->syslog;
    struct sockaddr none = { .sa_family = AF_UNSPEC };

    if (target->stream != NULL)
        return connect_stream(target);
    /* a UDP socket would keep the address that it has sent from */
    if (syslog->address->sa_family != AF_UNIX && connect(target->fd, &none, sizeof(none)) == -1)
        return -1;
    return connect(target->fd, syslog->address, syslog->address_n);
}

void log_target_separate(struct log_target *target, bool connects)
{
    int family;

    if (target->stream == NULL || !log_stream_separate(target->stream))
        return;
    target->broken = target->down = false; /* the other process's */
    family = target->syslog->address->sa_family;
    if (!connects || connect_stream(target) == -1) /* not even its end is to be late */
        replace_socket(target, descriptor_socket(family, SOCK_STREAM, O_NONBLOCK));
}

void log_target_close(struct log_target *target)
{
    descriptor_close(target->fd);
    target->fd = -1;
    log_stream_destroy(&target->stream);
}

static ssize_t send_parts(int fd, struct iovec *parts, size_t n)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = n };

    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Whether the receiver's buffer is full. At any other error the receiver has gone. */
static bool is_full(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EMSGSIZE;
}

/* A process that was forked and not separated yet, as a configuration check, is separated now. */
static bool send_by_tcp(struct log_target *target, const struct iovec parts[2])
{
    bool taken;

    log_target_separate(target, true);
    taken = log_stream_put(target->stream, target->fd, parts, 2);
    target->lost += !taken;
    target->broken = target->broken || log_stream_phase(target->stream) == LOG_STREAM_DOWN;
    return taken;
}

/* Sends a message of this kind; see syslog_server_head(). */
static bool send_syslog(struct log_target *target, struct log_stamp *stamp, enum log_level level,
    const char *kind, struct iovec line)
{
    const struct syslog_server *syslog = target->syslog;
    char head[SYSLOG_HEAD_MAX];
    struct iovec parts[2] = { { .iov_base = head }, line };

    parts[0].iov_len = syslog_server_head(syslog, stamp, level, kind, head);
    if (target->stream != NULL)
        return send_by_tcp(target, parts);
    if (send_parts(target->fd, parts, 2) != -1)
        return true;
    if (errno == ECONNREFUSED && syslog->address->sa_family != AF_UNIX) {
        target->lost++; /* an earlier line was refused, and this line was not sent */
        if (send_parts(target->fd, parts, 2) != -1)
            return true;
    }
    target->lost++;
    target->broken = target->broken || !is_full(errno);
    return false;
}

static void add_field(struct log_text *fields, const char *name, const char *value)
{
    if (value == NULL || sizeof(fields->bytes) - fields->n < FIELD_MIN)
        return;
    log_text_add(fields, name);
    log_text_add(fields, value);
    fields->bytes[fields->n++] = '\n';
}

/* Writes in the target's way; a descriptor that is no socket any more by write(). */
static ssize_t write_by(enum log_way way, int fd, struct iovec *parts, int n)
{
    if (way == LOG_WAY_NOWAIT)
        return os_nowait_write(fd, parts, n);
    if (way == LOG_WAY_SEND) {
        ssize_t sent = send_parts(fd, parts, (size_t)n);

        if (sent != -1 || errno != ENOTSOCK)
            return sent;
    }
    return writev(fd, parts, n);
}

/* Writes a line behind a head, perhaps empty, as a separate line: a terminal, or a disk that became
 * full, may have accepted a part of the previous line. */
static void write_line(
    struct log_target *target, enum log_way way, struct iovec head, struct iovec line)
{
    struct iovec newline = { .iov_base = (char[]) { '\n' }, .iov_len = target->torn };
    struct iovec parts[3] = { newline, head, line };
    size_t size = newline.iov_len + head.iov_len + line.iov_len;
    ssize_t n = write_by(way, target->fd, parts, 3);

    if (n == (ssize_t)size) {
        target->torn = false;
        return;
    }
    target->lost++;
    target->torn = target->torn || n > 0;
}

/* Sends fields to the journal's socket, or else the line to standard error, its second socket. */
static void write_journal(struct log_target *target, struct iovec *fields, size_t n,
    enum log_level level, struct iovec line)
{
    char text[8];
    struct iovec head = { .iov_base = text };

    if (target->journal_fd != -1) {
        if (send_parts(target->journal_fd, fields, n) != -1)
            return;
        target->broken = target->broken || !is_full(errno);
    }
    head.iov_len = (size_t)snprintf(text, sizeof(text), "<%d>", (int)level);
    write_line(target, LOG_WAY_SEND, head, line);
}

/* By systemd's "native protocol": lines NAME=value. */
static void write_to_journal(struct log_target *target, struct log_entry *entry)
{
    const struct log_line *line = entry->line;
    struct log_text fields;
    char head[80], number[24];
    struct iovec parts[3], text = { .iov_base = entry->text.bytes, .iov_len = entry->text.n };

    fields.n = 0; /* too large to be cleared for nothing */
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
    write_journal(target, parts, countof(parts), line->level, text);
}

void log_target_write(struct log_target *target, struct log_entry *entry)
{
    bool is_json = target->format == LOG_FORMAT_JSON;
    const struct log_text *form = is_json ? log_json_make(entry) : log_text_make(entry);
    struct iovec line = { .iov_base = (char *)form->bytes, .iov_len = form->n };

    assert(target->fd != -1 && form->n > 0);
    if (target->syslog != NULL) {
        line.iov_len--; /* a message ends by itself */
        send_syslog(target, entry->stamp, entry->line->level, SYSLOG_ERROR, line);
    } else if (target->journal && !is_json) {
        write_to_journal(target, entry);
    } else {
        write_line(target, target->way, (struct iovec) { .iov_base = NULL }, line);
    }
}

/* Writes bytes by one call; returns the number that the target has accepted. */
static size_t write_bytes(struct log_target *target, const char *bytes, size_t n, bool packed)
{
    bool begins = target->torn && !packed;
    struct iovec parts[2] = { { .iov_base = (char[]) { '\n' }, .iov_len = begins },
        { .iov_base = (char *)bytes, .iov_len = n } };
    ssize_t done = write_by(target->way, target->fd, parts, 2);

    if (done <= 0)
        return 0;
    done -= begins;
    target->torn = done > 0 && bytes[done - 1] != '\n' && !packed;
    if ((size_t)done < n)
        errno = 0;
    return (size_t)done;
}

/* Returns how many bytes a pipe takes whole: whole lines, or a line that is too long. */
static size_t pipe_piece(const char *bytes, size_t n)
{
    size_t most = PIPE_BUF - 1; /* with the newline behind a torn line */
    const char *end;

    if (n <= most)
        return n;
    for (size_t i = most; i > 0; i--)
        if (bytes[i - 1] == '\n')
            return i;
    end = memchr(bytes + most, '\n', n - most);
    return end == NULL ? n : (size_t)(end + 1 - bytes);
}

/* Counts the lines in the last n bytes, which were not accepted. */
static void count_lost_lines(struct log_target *target, const struct log_lines *lines, size_t n)
{
    unsigned lost = lines->packed || n == lines->n ? lines->count : 0;

    if (lost == 0)
        for (const char *p = lines->bytes + lines->n - n; n > 0; n--)
            lost += *p++ == '\n';
    target->lost += lost < lines->count ? lost : lines->count;
}

static bool put_file_lines(struct log_target *target, const struct log_lines *lines)
{
    const char *p = lines->bytes;
    size_t left = lines->n;

    while (left > 0) {
        size_t piece = target->is_pipe && !lines->packed ? pipe_piece(p, left) : left;
        size_t done = write_bytes(target, p, piece, lines->packed);

        p += done;
        left -= done;
        if (done < piece)
            break;
    }
    if (left == 0)
        return true;
    count_lost_lines(target, lines, left);
    return false;
}

/* A text with a newline, which a log without escaping may have, needs its length in front. */
static bool put_journal_line(struct log_target *target, struct iovec line)
{
    bool plain = memchr(line.iov_base, '\n', line.iov_len) == NULL;
    char head[] = "PRIORITY=6\nSYSLOG_IDENTIFIER=forkbeard\nMESSAGE=", newline[] = "\n";
    uint64_t n = htole64(line.iov_len);
    struct iovec parts[] = { { .iov_base = head, .iov_len = sizeof(head) - 1 },
        { .iov_base = &n, .iov_len = plain ? 0 : sizeof(n) }, line,
        { .iov_base = newline, .iov_len = 1 } };
    struct iovec whole = { .iov_base = line.iov_base, .iov_len = line.iov_len + 1 };
    uint64_t lost = target->lost;

    if (!plain)
        head[sizeof(head) - 2] = '\n';
    write_journal(target, parts, countof(parts), LEVEL_INFO, whole);
    return target->lost == lost;
}

bool log_target_put(
    struct log_target *target, const struct log_lines *lines, struct log_stamp *stamp)
{
    struct iovec line = { .iov_base = (char *)lines->bytes, .iov_len = lines->n - 1 };

    assert(target->fd != -1 && lines->n > 0 && lines->count > 0);
    if (target->syslog == NULL && !target->journal)
        return put_file_lines(target, lines);
    assert(lines->count == 1 && !lines->packed);
    if (target->journal)
        return put_journal_line(target, line);
    return send_syslog(target, stamp, target->syslog->severity, SYSLOG_ACCESS, line);
}
