/* SPDX-License-Identifier: BSD-2-Clause */
/* Kills workers within updates of a shared map, and compares the map with the replies to
 * clients. */
#include "daemon/soak_map.h"

#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define WORKERS 4
#define WRITERS 8
#define KEYS 16 /* keys of a writer; one batch sets all, and counts */
#define VALUE_MOST 900
#define LOOK_EVERY 50
#define ANSWER_S 20

/* The keys written by one client alone. */
struct writer {
    int fd;                                  /* -1: the worker has died */
    uint64_t sent[KEYS], acknowledged[KEYS]; /* numbers of the values */
    uint64_t increments, counted;
    char replies[4096]; /* received and not yet parsed */
    size_t reply_n;
    unsigned answered; /* replies to this batch */
};

struct house {
    struct daemon *daemon;
    struct writer writers[WRITERS];
    unsigned losses;
};

/* Long enough to be torn, and distinct by place and number. */
static int make_value(char *text, uint64_t number)
{
    int n = snprintf(text, 32, "%020" PRIu64, number);
    int most = 24 + (int)(number * 37 % (VALUE_MOST - 24));

    for (; n < most; n++)
        text[n] = (char)('a' + (number + (uint64_t)n) % 26);
    return n;
}

static int open_client(const struct daemon *daemon)
{
    struct timeval most = { .tv_sec = ANSWER_S };
    int fd = client_open(daemon->ports[0]);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
    return fd;
}

static void lose_client(struct house *house, struct writer *writer)
{
    close(writer->fd);
    writer->fd = -1;
    writer->reply_n = 0;
    house->losses++;
}

static void begin_batch(struct house *house, struct writer *writer, int index)
{
    static char text[KEYS * (VALUE_MOST + 128)];
    char value[VALUE_MOST];
    size_t n = 0;

    if (writer->fd == -1)
        writer->fd = open_client(house->daemon);
    writer->answered = 0;
    for (int i = 0; i < KEYS; i++) {
        int length = make_value(value, ++writer->sent[i]);

        n += (size_t)sprintf(text + n, "*3\r\n$3\r\nSET\r\n$6\r\nk%02d:%02d\r\n$%d\r\n%.*s\r\n",
            index, i, length, length, value);
    }
    writer->increments++;
    n += (size_t)sprintf(text + n, "*2\r\n$4\r\nINCR\r\n$3\r\nc%02d\r\n", index);
    if (send(writer->fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
        lose_client(house, writer);
}

/* Takes a reply's line from the front; false when it is not whole. */
static bool take_reply(struct writer *writer)
{
    char *end = memmem(writer->replies, writer->reply_n, "\r\n", 2);
    size_t length;

    if (end == NULL)
        return false;
    *end = '\0';
    if (writer->answered < KEYS) {
        ck_assert_str_eq(writer->replies, "+OK");
        writer->acknowledged[writer->answered] = writer->sent[writer->answered];
    } else {
        uint64_t now;

        ck_assert_int_eq(sscanf(writer->replies, ":%" SCNu64, &now), 1);
        /* an increment whose answer was lost may have been made or not */
        ck_assert_uint_gt(now, writer->counted);
        ck_assert_uint_le(now, writer->increments);
        writer->counted = now;
    }
    writer->answered++;
    length = (size_t)(end + 2 - writer->replies);
    memmove(writer->replies, end + 2, writer->reply_n - length);
    writer->reply_n -= length;
    return true;
}

static void end_batch(struct house *house, struct writer *writer)
{
    while (writer->fd != -1 && writer->answered < KEYS + 1) {
        ssize_t n;

        if (take_reply(writer))
            continue;
        n = recv(writer->fd, writer->replies + writer->reply_n,
            sizeof(writer->replies) - writer->reply_n, 0);
        ck_assert_msg(n != -1 || (errno != EAGAIN && errno != EWOULDBLOCK),
            "no answer for %d s: somebody waits for a dead worker", ANSWER_S);
        if (n <= 0)
            lose_client(house, writer);
        else
            writer->reply_n += (size_t)n;
    }
}

static void read_exactly(int fd, char *p, size_t n)
{
    while (n > 0) {
        ssize_t part = recv(fd, p, n, 0);

        ck_assert_int_gt(part, 0);
        p += part;
        n -= (size_t)part;
    }
}

static size_t read_length(int fd)
{
    char line[32];
    size_t n = 0;

    do
        read_exactly(fd, &line[n++], 1);
    while (line[n - 1] != '\n' && n < sizeof(line));
    ck_assert_int_eq(line[0], '$');
    return line[1] == '-' ? 0 : strtoul(line + 1, NULL, 10);
}

/* The value was sent before, and is not older than the last acknowledged value. */
static void check_key(int fd, const struct writer *writer, int index, int i)
{
    char got[VALUE_MOST + 2], expected[VALUE_MOST], text[64];
    uint64_t number;
    size_t n;

    snprintf(text, sizeof(text), "*2\r\n$3\r\nGET\r\n$6\r\nk%02d:%02d\r\n", index, i);
    client_send(fd, text);
    n = read_length(fd);
    if (n == 0) {
        ck_assert_uint_eq(writer->acknowledged[i], 0);
        return;
    }
    ck_assert_uint_le(n, VALUE_MOST);
    read_exactly(fd, got, n + 2);
    ck_assert_int_eq(sscanf(got, "%20" SCNu64, &number), 1);
    ck_assert_uint_ge(number, writer->acknowledged[i]);
    ck_assert_uint_le(number, writer->sent[i]);
    ck_assert_uint_eq((size_t)make_value(expected, number), n);
    ck_assert_mem_eq(got, expected, n);
}

static void check_keys(struct house *house)
{
    int fd = open_client(house->daemon);

    for (int w = 0; w < WRITERS; w++)
        for (int i = 0; i < KEYS; i++)
            check_key(fd, &house->writers[w], w, i);
    close(fd);
}

static void kill_one(struct house *house, unsigned turn)
{
    pid_t workers[WORKERS * 2];
    unsigned n = proc_children(house->daemon->pid, workers, WORKERS * 2);

    if (n > 0)
        kill(workers[turn % n], SIGKILL);
}

void soak_map_kills(unsigned n)
{
    static struct house house;

    memset(&house, 0, sizeof(house));
    for (int w = 0; w < WRITERS; w++)
        house.writers[w].fd = -1;
    house.daemon = daemon_create(1);
    daemon_expects(house.daemon, "exited on signal 9");
    daemon_expects(house.daemon, " about worker "); /* lines that were held back */
    daemon_configure(house.daemon,
        "load_module %s/resp/.libs/resp.so; worker_processes %d;\n"
        "events { multi_accept on; }\n"
        "stream { server { listen 127.0.0.1:$0; resp; resp_keys %d; resp_value_max 1k; } }\n",
        EXAMPLES_PATH, WORKERS, WRITERS * (KEYS + 1));
    daemon_start(house.daemon);
    for (unsigned i = 0; i < n; i++) {
        for (int w = 0; w < WRITERS; w++)
            begin_batch(&house, &house.writers[w], w);
        kill_one(&house, i);
        for (int w = 0; w < WRITERS; w++)
            end_batch(&house, &house.writers[w]);
        if (i % LOOK_EVERY == LOOK_EVERY - 1)
            check_keys(&house);
    }
    check_keys(&house);
    for (int w = 0; w < WRITERS; w++)
        if (house.writers[w].fd != -1)
            close(house.writers[w].fd);
    daemon_stop(house.daemon, SIGQUIT);
    daemon_finish(house.daemon);
    printf("map: %u workers killed, %u sessions lost, every acknowledged key is there\n", n,
        house.losses);
}
