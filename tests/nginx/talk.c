/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients of tests/nginx.test: reads sessions from standard input, a line each, holds the
 * sessions one after the other with one server, and writes the answers. Knows nothing of the
 * answering daemon, so the same lines give the same output with another daemon.
 *
 *     talk NAME FROM TO [BYTES]   sends, and reads until the end
 *     echo NAME FROM TO BYTES     sends, reads as many bytes as there are behind a "\|", or all
 *     hold NAME FROM TO BYTES     does as "echo", and keeps the connection
 *     break NAME FROM TO BYTES    does as "echo", and breaks the connection
 *     end NAME                    ends a kept connection
 *     many NAME FROM TO NUMBER    talks from a number of consecutive addresses
 *     full TO                     listens on a port without ever answering
 *
 * FROM is an address, or "-" for any; TO is a port of the server's IPv4 address, "[::1]", or the
 * path of a unix socket. BYTES have the escapes \r, \n, \\, \xHH, and \| before the answer. */
#include <arpa/inet.h>
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define HELD_MAX 64

union end {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

struct held {
    char name[64];
    int fd;
};

struct talk {
    const char *address; /* the server's */
    uint16_t port6;      /* the server's, on ::1 */
    struct held held[HELD_MAX];
    unsigned held_n;
};

/* Replaces the escapes in place; returns how many bytes there are, *back of which come back. */
static size_t unescape(char *text, size_t *back)
{
    char *out = text, *from = text;

    for (const char *in = text; *in != '\0'; in++) {
        unsigned byte = (unsigned char)*in;

        if (*in == '\\' && in[1] == '|') {
            in++;
            from = out;
            continue;
        }
        if (*in == '\\' && in[1] == 'x' && sscanf(in + 2, "%2x", &byte) == 1)
            in += 3;
        else if (*in == '\\' && in[1] != '\0')
            byte = *++in == 'r' ? '\r' : *in == 'n' ? '\n' : (unsigned char)*in;
        *out++ = (char)byte;
    }
    *back = (size_t)(out - from);
    return (size_t)(out - text);
}

static void show(const char *name, const char *bytes, size_t n)
{
    printf("%s: ", name);
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)bytes[i];

        if (byte >= ' ' && byte < 0x7f && byte != '\\')
            putchar(byte);
        else
            printf("\\x%02x", byte);
    }
    putchar('\n');
}

static socklen_t target_of(const struct talk *talk, const char *to, union end *out)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(to, "[::1]") == 0) {
        out->in6.sin6_family = AF_INET6;
        out->in6.sin6_addr = in6addr_loopback;
        out->in6.sin6_port = htons(talk->port6);
        return sizeof(out->in6);
    }
    if (*to >= '0' && *to <= '9') {
        out->in.sin_family = AF_INET;
        if (inet_pton(AF_INET, talk->address, &out->in.sin_addr) != 1)
            errx(1, "%s is no address", talk->address);
        out->in.sin_port = htons((uint16_t)atoi(to));
        return sizeof(out->in);
    }
    out->un.sun_family = AF_UNIX;
    snprintf(out->un.sun_path, sizeof(out->un.sun_path), "%s", to);
    return sizeof(out->un);
}

static void bind_to(int fd, const char *from)
{
    struct sockaddr_in in = { .sin_family = AF_INET };

    if (strcmp(from, "-") == 0)
        return;
    if (inet_pton(AF_INET, from, &in.sin_addr) != 1)
        errx(1, "%s is no address", from);
    if (bind(fd, (struct sockaddr *)&in, sizeof(in)) == -1)
        err(1, "bind %s", from);
}

static int open_to(const struct talk *talk, const char *from, const char *to)
{
    static const struct timeval longest = { .tv_sec = 10 };
    union end end;
    socklen_t n = target_of(talk, to, &end);
    int fd = socket(end.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd == -1)
        err(1, "socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest)) == -1)
        err(1, "setsockopt");
    bind_to(fd, from);
    if (connect(fd, &end.any, n) == -1)
        err(1, "connect to %s from %s", to, from);
    return fd;
}

/* Sends, and shows the answer: all, or `wanted` bytes of it. A reset is an end. */
static void ask(const char *name, int fd, const char *bytes, size_t n, size_t wanted)
{
    char answer[65536];
    size_t got = 0;
    ssize_t more = 0;

    if (n > 0 && send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        warn("%s: send", name);
    while (got < wanted && got < sizeof(answer) &&
           (more = recv(fd, answer + got, sizeof(answer) - got, 0)) > 0)
        got += (size_t)more;
    show(name, answer, got);
}

static void ask_many(
    const struct talk *talk, const char *name, const char *from, const char *to, const char *number)
{
    struct in_addr address;
    char each[80], text[INET_ADDRSTRLEN];

    if (inet_pton(AF_INET, from, &address) != 1)
        errx(1, "%s is no address", from);
    for (int i = 0; i < atoi(number); i++) {
        int fd;

        inet_ntop(AF_INET, &address, text, sizeof(text));
        snprintf(each, sizeof(each), "%s %s", name, text);
        fd = open_to(talk, text, to);
        ask(each, fd, "", 0, SIZE_MAX);
        close(fd);
        address.s_addr = htonl(ntohl(address.s_addr) + 1);
    }
}

/* Closes it with a reset. */
static void break_off(int fd)
{
    static const struct linger at_once = { .l_onoff = 1 };

    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == -1)
        err(1, "setsockopt");
    close(fd);
}

static void keep(struct talk *talk, const char *name, int fd)
{
    struct held *held = &talk->held[talk->held_n++];

    if (talk->held_n > HELD_MAX)
        errx(1, "too many are held");
    snprintf(held->name, sizeof(held->name), "%s", name);
    held->fd = fd;
}

/* Makes a listener with a full queue: the kernel drops further connects. */
static void fill_port(struct talk *talk, const char *to)
{
    union end end;
    socklen_t n = target_of(talk, to, &end);
    int fd = socket(end.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd == -1 || bind(fd, &end.any, n) == -1 || listen(fd, 0) == -1)
        err(1, "listen on %s", to);
    keep(talk, "", fd);
    keep(talk, "", open_to(talk, "-", to));
}

static void end(struct talk *talk, const char *name)
{
    for (unsigned i = 0; i < talk->held_n; i++)
        if (strcmp(talk->held[i].name, name) == 0) {
            shutdown(talk->held[i].fd, SHUT_WR);
            ask(name, talk->held[i].fd, "", 0, SIZE_MAX);
            close(talk->held[i].fd);
            talk->held[i].name[0] = '\0';
            return;
        }
    errx(1, "%s is not held", name);
}

static void run(struct talk *talk, char *line)
{
    char verb[8] = "", name[64] = "", from[64] = "", to[64] = "";
    int at = 0;
    char *bytes;
    size_t n, back;
    int fd;

    if (sscanf(line, "%7s %63s %63s %63s %n", verb, name, from, to, &at) < 2)
        errx(1, "not understood: %s", line);
    if (strcmp(verb, "end") == 0) {
        end(talk, name);
        return;
    }
    if (strcmp(verb, "full") == 0) {
        fill_port(talk, name);
        return;
    }
    bytes = line + (at > 0 ? (size_t)at : strlen(line));
    if (strcmp(verb, "many") == 0) {
        ask_many(talk, name, from, to, bytes);
        return;
    }
    n = unescape(bytes, &back);
    fd = open_to(talk, from, to);
    ask(name, fd, bytes, n, strcmp(verb, "talk") == 0 ? SIZE_MAX : back);
    if (strcmp(verb, "hold") == 0)
        keep(talk, name, fd);
    else if (strcmp(verb, "break") == 0)
        break_off(fd);
    else
        close(fd);
}

int main(int argc, char **argv)
{
    struct talk talk = { .address = argv[1] };
    char line[LINE_MAX_BYTES];

    if (argc != 3)
        errx(1, "usage: talk ADDRESS PORT6 <SESSIONS");
    talk.port6 = (uint16_t)atoi(argv[2]);
    alarm(60);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#')
            run(&talk, line);
    }
    return 0;
}
