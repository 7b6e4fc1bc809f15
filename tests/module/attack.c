/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds descriptors by trying all, and uses them at random; memory is attack_memory.c's. Every step
 * may fault: then the next step follows. */
#include "module/attack_private.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define PASSED_MOST 4
#define FLOOD 3000
#define LAST_MS 3000 /* longer calls are abandoned */

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif
#ifndef F_SETSIG
#define F_SETSIG 10
#endif

/* Random numbers */

uint64_t attack_draw(struct attack *attack)
{
    uint64_t z = attack->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned attack_draw_below(struct attack *attack, size_t n)
{
    return (unsigned)(attack_draw(attack) % n);
}

void attack_draw_bytes(struct attack *attack, void *to, size_t n)
{
    unsigned char *p = to;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)attack_draw(attack);
}

static int draw_descriptor(struct attack *attack)
{
    return attack->fds[attack_draw_below(attack, attack->fd_n)];
}

void attack_add_descriptor(struct attack *attack, int fd)
{
    if (fd != -1 && attack->fd_n < ATTACK_DESCRIPTORS_MAX)
        attack->fds[attack->fd_n++] = fd;
}

/* Faults of the attack itself */

static const int caught[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGPIPE, SIGALRM };
#define CAUGHT (sizeof(caught) / sizeof(caught[0]))

static sigjmp_buf step_begins;
static volatile sig_atomic_t stepping_thread; /* 0: no step runs */

static void leave_step(int number)
{
    if (gettid() == stepping_thread)
        siglongjmp(step_begins, 1);
    signal(number, SIG_DFL); /* the instruction faults again, by itself */
}

static void set_deadline(int ms)
{
    struct itimerval timer = { .it_value = { .tv_sec = ms / 1000 }, .it_interval.tv_sec = 1 };

    if (ms == 0)
        timer.it_interval.tv_sec = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void try_step(struct attack *attack, void (*step)(struct attack *attack))
{
    set_deadline(LAST_MS);
    if (sigsetjmp(step_begins, 1) == 0) {
        stepping_thread = gettid();
        step(attack);
    }
    stepping_thread = 0;
    set_deadline(0);
}

static bool has_peer(int fd, const struct sockaddr_storage *peer)
{
    const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)peer;
    struct sockaddr_in b;
    socklen_t length = sizeof(b);

    return peer->ss_family == AF_INET && getpeername(fd, (struct sockaddr *)&b, &length) == 0 &&
           b.sin_family == AF_INET && a->sin_port == b.sin_port;
}

static void find_descriptors(struct attack *attack, const struct sockaddr_storage *own)
{
    for (int fd = 0; fd < ATTACK_DESCRIPTOR_END; fd++) {
        if (fcntl(fd, F_GETFD) == -1)
            continue;
        attack_add_descriptor(attack, fd);
        if (has_peer(fd, own))
            attack->own = fd;
        if (attack_is_memory(fd))
            attack_map_descriptor(attack, fd);
    }
}

/* Descriptors */

static void change_flags(struct attack *attack, int fd)
{
    static const int flags[] = { 0, O_NONBLOCK, O_ASYNC, O_APPEND, O_ASYNC | O_NONBLOCK,
        O_DIRECT | O_NONBLOCK, O_NOATIME };
    static const int signals[] = { 0, SIGKILL, SIGSTOP, SIGTERM, SIGALRM };

    switch (attack_draw_below(attack, 8)) {
    case 0:
        fcntl(fd, F_SETOWN, getppid());
        break;
    case 1:
        fcntl(fd, F_SETSIG, signals[attack_draw_below(attack, 5)]);
        break;
    case 2:
        fcntl(fd, F_SETPIPE_SZ, 4096 << attack_draw_below(attack, 9));
        break;
    case 3:
        fcntl(fd, F_ADD_SEALS, (int)attack_draw_below(attack, 64));
        break;
    case 4:
        fcntl(fd, F_SETLK,
            &(struct flock) {
                .l_type = (short)attack_draw_below(attack, 3), .l_whence = SEEK_SET });
        break;
    case 5:
        ioctl(fd, FIONBIO, &(int) { (int)attack_draw_below(attack, 2) });
        break;
    default:
        fcntl(fd, F_SETFL, flags[attack_draw_below(attack, sizeof(flags) / sizeof(flags[0]))]);
        break;
    }
}

static void change_size(struct attack *attack, int fd)
{
    char bytes[ATTACK_RUN_MOST];
    off_t at = (off_t)attack_draw_below(attack, 1 << 20);

    if (!attack_is_memory(fd))
        return;
    switch (attack_draw_below(attack, 4)) {
    case 0:
        if (ftruncate(fd, at) == -1)
            return;
        break;
    case 1:
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at & ~4095, 65536);
        break;
    default:
        attack_draw_bytes(attack, bytes, sizeof(bytes));
        if (pwrite(fd, bytes, sizeof(bytes), at) == -1)
            return;
        break;
    }
}

/* The attacker's own connection: unread bytes, and a close waiting for the bytes. */
static void make_linger(int fd)
{
    static const struct linger linger = { .l_onoff = 1, .l_linger = 60 };
    static char bytes[65536];

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
}

static int make_descriptor(struct attack *attack)
{
    int ends[2] = { -1, -1 };

    switch (attack_draw_below(attack, 6)) {
    case 0:
        if (attack->own != -1)
            make_linger(attack->own);
        return attack->own != -1 ? dup(attack->own) : -1;
    case 1:
        return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? ends[0] : -1;
    case 2:
        return pipe(ends) == 0 ? ends[attack_draw_below(attack, 2)] : -1;
    case 3:
        return open("/dev/null", O_RDWR);
    default:
        return dup(draw_descriptor(attack));
    }
}

/* Sends bytes, and descriptors with them. */
static void pass_descriptors(struct attack *attack, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PASSED_MOST * sizeof(int))];
    } control = { .header = { 0 } };
    unsigned char bytes[64];
    unsigned n = 1 + attack_draw_below(attack, PASSED_MOST);
    struct iovec piece = { bytes, 1 + attack_draw_below(attack, sizeof(bytes)) };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control };
    int passed[PASSED_MOST];

    attack_draw_bytes(attack, bytes, sizeof(bytes));
    if (attack_draw_below(attack, 2) != 0) { /* nearly a message: small numbers */
        piece.iov_len = 8;
        memset(bytes, 0, 8);
        bytes[0] = (unsigned char)attack_draw_below(attack, 20);
        bytes[4] = (unsigned char)attack_draw_below(attack, 8);
    }
    for (unsigned i = 0; i < n; i++)
        if ((passed[i] = make_descriptor(attack)) == -1)
            return;
    message.msg_controllen = CMSG_SPACE(n * sizeof(int));
    control.header = (struct cmsghdr) {
        .cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
    };
    memcpy(CMSG_DATA(&control.header), passed, n * sizeof(int));
    sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (unsigned i = 0; i < n; i++)
        close(passed[i]);
}

static void send_bytes(struct attack *attack, int fd, unsigned times)
{
    unsigned char bytes[4096];
    size_t n = attack_draw_below(attack, 2) ? 8 : attack_draw_below(attack, sizeof(bytes));

    while (times-- > 0) {
        attack_draw_bytes(attack, bytes, n < 64 ? n : 64);
        if (n == 8 && attack_draw_below(attack, 2) != 0)
            memcpy(bytes, &(uint32_t) { attack_draw_below(attack, 20) }, 4);
        if (send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) == -1)
            return;
    }
}

static void use_unix(struct attack *attack, int fd)
{
    switch (attack_draw_below(attack, 16)) {
    case 0:
        shutdown(fd, (int)attack_draw_below(attack, 3));
        break;
    case 1:
        setsockopt(fd, SOL_SOCKET, attack_draw_below(attack, 2) ? SO_RCVBUF : SO_SNDBUF,
            &(int) { (int)attack_draw_below(attack, 1 << 20) }, sizeof(int));
        break;
    case 2:
        send_bytes(attack, fd, FLOOD);
        break;
    case 3:
        if (recv(fd, (char[64]) { 0 }, 64, MSG_DONTWAIT) == -1)
            break;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        pass_descriptors(attack, fd);
        break;
    default:
        send_bytes(attack, fd, 1 + attack_draw_below(attack, 64));
        break;
    }
}

static void use_listener(struct attack *attack, int fd)
{
    switch (attack_draw_below(attack, 4)) {
    case 0:
        shutdown(fd, (int)attack_draw_below(attack, 3));
        break;
    case 1:
        connect(fd, &(struct sockaddr) { .sa_family = AF_UNSPEC }, sizeof(struct sockaddr));
        break;
    case 2:
        listen(fd, (int)attack_draw_below(attack, 3));
        break;
    default:
        change_flags(attack, fd);
        break;
    }
}

static void use_socket(struct attack *attack, int fd)
{
    int listens = 0, domain = 0;
    socklen_t length = sizeof(int);

    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    if (listens)
        use_listener(attack, fd);
    else if (domain == AF_UNIX)
        use_unix(attack, fd);
    else if (fd == attack->own)
        send_bytes(attack, fd, 1);
}

/* Pipes, event descriptors, timers and whatever lacks a name. */
static void use_other(struct attack *attack, int fd)
{
    unsigned char bytes[ATTACK_RUN_MOST];
    int flags = fcntl(fd, F_GETFL);
    size_t n = attack_draw_below(attack, 2) ? 8 : attack_draw_below(attack, sizeof(bytes));

    attack_draw_bytes(attack, bytes, n);
    epoll_ctl(fd, EPOLL_CTL_DEL, draw_descriptor(attack), NULL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    if (attack_draw_below(attack, 2) ? write(fd, bytes, n) == -1 : read(fd, bytes, n) == -1)
        fcntl(fd, F_SETFL, flags);
}

static bool is_anothers_client(const struct attack *attack, int fd)
{
    struct sockaddr_in peer;
    socklen_t length = sizeof(peer);

    return fd != attack->own && getpeername(fd, (struct sockaddr *)&peer, &length) == 0 &&
           peer.sin_family == AF_INET;
}

static void use_descriptor(struct attack *attack)
{
    int fd = draw_descriptor(attack);
    unsigned what = attack_draw_below(attack, 64);
    struct stat st;

    if (fstat(fd, &st) == -1 || is_anothers_client(attack, fd))
        return;
    if (what == 0 && fd > STDERR_FILENO)
        close(fd);
    else if (what < 12)
        change_flags(attack, fd);
    else if (S_ISREG(st.st_mode))
        change_size(attack, fd);
    else if (S_ISSOCK(st.st_mode))
        use_socket(attack, fd);
    else
        use_other(attack, fd);
}

void attack_blindly(uint64_t seed, unsigned n, const struct sockaddr_storage *own)
{
    static struct attack attack;
    struct sigaction old[CAUGHT], action = { .sa_handler = leave_step };

    memset(&attack, 0, sizeof(attack));
    attack.state = seed;
    attack.own = -1;
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &old[i]);
    find_descriptors(&attack, own);
    attack_find_mappings(&attack);
    for (unsigned i = 0; i < n; i++) {
        if (attack.mapping_n > 0)
            try_step(&attack, attack_write_memory);
        if (attack.fd_n > 0)
            try_step(&attack, use_descriptor);
    }
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &old[i], NULL);
}
