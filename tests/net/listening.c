/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/listening.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEADLINE_MS 10000

const struct listener_options every_option = {
    .backlog = 511,
    .rcvbuf = 16384,
    .sndbuf = 32768,
    .fastopen = 5,
    .deferred = true,
    .ipv6only = true,
    .tcp_nodelay = true,
    .keepalive = LISTENER_KEEPALIVE_ON,
    .keepidle = 77,
    .keepintvl = 7,
    .keepcnt = 3,
};

unsigned count_fds(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            n++;
    return n;
}

struct fixture *set_up(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    ck_assert_ptr_nonnull(fixture);
    fixture->fd_n = count_fds();
    fixture->arena = arena_create();
    ck_assert_ptr_nonnull(fixture->arena);
    fixture->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(fixture->target.fd, -1);
    fixture->target.level = LEVEL_INFO;
    log_init(&fixture->log, &fixture->target, 1);
    fixture->log.plain = "t";
    return fixture;
}

const char *logged(struct fixture *fixture)
{
    ssize_t n = pread(fixture->target.fd, fixture->text, sizeof(fixture->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    fixture->text[n] = '\0';
    ck_assert_int_eq(ftruncate(fixture->target.fd, 0), 0);
    ck_assert_int_eq(lseek(fixture->target.fd, 0, SEEK_SET), 0);
    return fixture->text;
}

void tear_down(struct fixture *fixture)
{
    ck_assert_str_eq(logged(fixture), "");
    close(fixture->target.fd);
    arena_destroy(&fixture->arena);
    ck_assert_uint_eq(count_fds(), fixture->fd_n);
    free(fixture);
}

struct listener *create(
    struct fixture *fixture, const char *text, const struct listener_options *options)
{
    struct address address;
    const char *wrong = address_parse(text, 0, &address);
    struct listener *listener;

    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    listener =
        listener_create(fixture->arena, &address, options != NULL ? options : &listener_defaults);
    ck_assert_ptr_nonnull(listener);
    return listener;
}

struct listener *opened(struct fixture *fixture, const char *text,
    const struct listener_options *options, const struct listener *from, unsigned slots)
{
    struct listener *listener = create(fixture, text, options);
    int rc = listener_open(listener, from, slots, &fixture->log);

    ck_assert_msg(rc == 0, "%s", logged(fixture));
    return listener;
}

void commit(struct fixture *fixture, struct listener *listener)
{
    int rc = listener_commit(listener, &fixture->log);

    ck_assert_msg(rc == 0, "%s", logged(fixture));
    ck_assert_str_eq(logged(fixture), "");
}

int try_connect(const struct address *address)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    ck_assert_int_ne(fd, -1);
    if (connect(fd, &address->any, address->length) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

unsigned accept_next(const struct listener *listener, int *fd)
{
    struct pollfd polls[SLOTS];

    ck_assert_uint_le(listener->fd_n, SLOTS);
    for (unsigned i = 0; i < listener->fd_n; i++)
        polls[i] = (struct pollfd) { .fd = listener->fds[i], .events = POLLIN };
    ck_assert_int_gt(poll(polls, listener->fd_n, DEADLINE_MS), 0);
    for (unsigned i = 0; i < listener->fd_n; i++) {
        if ((polls[i].revents & POLLIN) == 0)
            continue;
        *fd = accept4(listener->fds[i], NULL, NULL, SOCK_CLOEXEC);
        ck_assert_int_ne(*fd, -1);
        return i;
    }
    ck_abort_msg("an event that is not a connection");
}

unsigned slot_of_a_client(const struct listener *listener)
{
    int client = try_connect(&listener->address), server;
    unsigned slot;

    ck_assert_msg(client != -1, "%s: %s", listener->text, strerror(errno));
    slot = accept_next(listener, &server);
    close(client);
    close(server);
    return slot;
}

int option_of(int fd, int level, int option)
{
    int value;
    socklen_t length = sizeof(value);

    ck_assert_int_eq(getsockopt(fd, level, option, &value, &length), 0);
    return value;
}
