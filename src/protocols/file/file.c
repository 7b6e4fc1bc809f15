/* SPDX-License-Identifier: BSD-2-Clause */
/* file PATH: sends the file's content at the client's arrival, and closes. An incompletely sent
 * file ends as a reset, so that no client takes a part for all.
 *
 * Where threads read, they fill the page cache, and the kernel sends from there: only a byte is
 * held for a client that does not read. Bytes read past the page cache, by direct I/O, are held
 * until sent. The next piece is read when the latest has left. */
#include <errno.h>
#include <fcntl.h>
#include <forkbeard/forkbeard.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef O_DIRECT /* a system without direct I/O */
#define O_DIRECT 0
#endif

/* Bytes of a read. */
#define PIECE (32 * 1024)

struct file_conf {
    const char *path;
    int64_t directio; /* least bytes of a file for direct I/O; 0: never */
};

/* The end of the output, after which the next piece is read. */
struct tail {
    fb_conn *conn; /* NULL: it has ended */
    uint8_t bytes[];
};

struct file_conn {
    int fd; /* -1: none, or the connection's */
    int direct;
    uint64_t at, size;
    struct tail *tail; /* unsent; NULL: none */
};

/* Opens the path of a regular file; -1 with errno. */
static int open_regular(const char *path, int flags, uint64_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags), error;
    struct stat st;

    if (fd == -1)
        return -1;
    if (fstat(fd, &st) == 0) {
        if (S_ISREG(st.st_mode)) {
            *size = (uint64_t)st.st_size;
            return fd;
        }
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    }
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Reopens a large file, perhaps replaced, for direct I/O; false: the file system has none. */
static int make_direct(const struct file_conf *conf, int *fd, uint64_t *size)
{
    int direct = -1;

    if (conf->directio > 0 && *size >= (uint64_t)conf->directio)
        direct = open_regular(conf->path, O_DIRECT, size);
    if (direct == -1)
        return 0;
    close(*fd);
    *fd = direct;
    return 1;
}

static void fail_file(fb_conn *conn, const char *what, int error)
{
    const struct file_conf *conf = fb_conf_of(conn);

    fb_conn_logf(
        conn, FB_LOG_ERROR, "%s \"%s\" failed (%d: %s)", what, conf->path, error, strerror(error));
    fb_abort(conn);
}

static size_t next_piece(const struct file_conn *file)
{
    uint64_t left = file->size - file->at;

    return left < PIECE ? (size_t)left : PIECE;
}

static void piece_read(fb_conn *conn, void *state, const fb_file_read *read);

static void read_piece(fb_conn *conn, struct file_conn *file)
{
    if (fb_read_file(conn, file->fd, file->at, next_piece(file), piece_read) == -1)
        fail_file(conn, "reading", ENOMEM);
}

static void tail_sent(void *arg)
{
    struct tail *tail = arg;
    fb_conn *conn = tail->conn;
    struct file_conn *file;

    free(tail);
    if (conn == NULL)
        return;
    file = fb_state_of(conn);
    file->tail = NULL;
    if (file->at < file->size)
        read_piece(conn, file);
}

/* Returns 0, or an errno. */
static int send_tail(fb_conn *conn, struct file_conn *file, const uint8_t *p, size_t n)
{
    struct tail *tail = malloc(sizeof(*tail) + n);

    if (tail == NULL)
        return ENOMEM;
    tail->conn = conn;
    memcpy(tail->bytes, p, n);
    if (fb_write_ref(conn, tail->bytes, n, tail_sent, tail) == -1) {
        free(tail);
        return ENOMEM;
    }
    file->tail = tail;
    return 0;
}

/* Sends bytes from the page cache, without the last byte, the sign of a complete send. */
static int send_cached(fb_conn *conn, struct file_conn *file, fb_bytes bytes)
{
    size_t n = bytes.n - 1;
    int fd = n > 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (n > 0 && fd == -1)
        return errno;
    if (n > 0 && fb_send_file(conn, fd, file->at, n) == -1) {
        close(fd);
        return ENOMEM;
    }
    return send_tail(conn, file, bytes.p + n, 1);
}

static void piece_read(fb_conn *conn, void *state, const fb_file_read *read)
{
    struct file_conn *file = state;
    fb_bytes bytes = read->bytes;
    int error;

    if (read->error != 0 || bytes.n < next_piece(file)) { /* somebody has cut it short */
        fail_file(conn, "reading", read->error != 0 ? read->error : ENODATA);
        return;
    }
    error = file->direct ? send_tail(conn, file, bytes.p, bytes.n) : send_cached(conn, file, bytes);
    if (error != 0) {
        fail_file(conn, "sending", error);
        return;
    }
    file->at += bytes.n;
    if (file->at == file->size)
        fb_close(conn);
}

/* Leaves the whole file to the kernel to send. */
static void send_whole(fb_conn *conn, struct file_conn *file)
{
    if (fb_send_file(conn, file->fd, 0, file->size) == 0) {
        file->fd = -1;
        fb_close(conn);
    } else {
        fail_file(conn, "sending", ENOMEM);
    }
}

static int file_opened(fb_conn *conn, void *state)
{
    static const char *const ways[] = { "aio off", "aio threads", "aio on" };
    const struct file_conf *conf = fb_conf_of(conn);
    struct file_conn *file = state;
    fb_aio aio = fb_aio_of(conn);

    fb_count_request(conn);
    file->fd = open_regular(conf->path, 0, &file->size);
    if (file->fd == -1) {
        fail_file(conn, "open()", errno);
        return 0;
    }
    file->direct = make_direct(conf, &file->fd, &file->size);
    fb_conn_logf(conn, FB_LOG_INFO, "sends \"%s\", %" PRIu64 " bytes, by %s%s", conf->path,
        file->size, file->direct ? "direct I/O and " : "",
        file->direct || aio == FB_AIO_THREADS ? ways[aio] : "sendfile");
    if (file->size == 0)
        fb_close(conn);
    else if (file->direct || aio == FB_AIO_THREADS)
        read_piece(conn, file);
    else
        send_whole(conn, file);
    return 0;
}

/* A client reads on after the end of its half. */
static void file_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)conn;
    (void)state;
    (void)rest;
}

static void file_closed(fb_conn *conn, void *state, fb_reason reason)
{
    const struct file_conn *file = state;

    (void)conn;
    (void)reason;
    if (file->tail != NULL)
        file->tail->conn = NULL;
    if (file->fd != -1)
        close(file->fd);
}

static int file_conf_done(fb_conf *conf, void *own, const void *parent)
{
    const struct file_conf *file = own;

    (void)parent;
    if (file->path[0] == '\0')
        return fb_conf_errorf(conf, "file", "\"file\" needs the path of a file");
    return 0;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = file_opened,
    .eof = file_eof,
    .closed = file_closed,
};

static const fb_directive directives[] = {
    { .name = "file",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_HANDLER | FB_DIRECTIVE_READS | FB_DIRECTIVE_REPLACED,
        .offset = offsetof(struct file_conf, path) },
    { .name = "directio",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct file_conf, directio),
        .initial = "off" },
};

FB_PROTOCOL(file) = {
    FB_PROTOCOL_HEADER,
    .name = "file",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct file_conn),
    .conf_state = sizeof(struct file_conf),
    .ops = &ops,
    .conf_done = file_conf_done,
};
