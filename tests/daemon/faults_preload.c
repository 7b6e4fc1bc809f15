/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded into the daemon under test: functions of the C library that fail when the plan says
 * so. */
#include "daemon/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 5
#define PATIENCE_MS 10000

#define LOUD __attribute__((visibility("default")))

static struct fault_plan *plan;
static unsigned process; /* 0: the master; else the number of the child in the round */
static uint32_t round_of;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("FB_FAULTS");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *shared;

    if (fd == -1)
        return;
    shared =
        (void *)syscall(SYS_mmap, NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    close(fd);
    if (shared != MAP_FAILED)
        plan = shared;
}

/* Waits until some clients have come. */
static void await_clients(void)
{
    unsigned from = atomic_load(&plan->clients);

    for (int ms = 0; ms < PATIENCE_MS && atomic_load(&plan->clients) - from < CLIENTS; ms++)
        nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void act(void)
{
    switch (plan->kind) {
    case FAULT_FAILS_LATE:
        await_clients();
        break;
    case FAULT_EXITS:
        _exit(7);
    case FAULT_ABORTS: /* no handler of a sanitizer's */
        signal(SIGABRT, SIG_DFL);
        raise(SIGABRT);
        _exit(8);
    case FAULT_HANGS:
        for (;;)
            pause();
    case FAULT_IS_SIGNALED:
        kill(getpid(), plan->error);
        break;
    default:
        break;
    }
}

/* Whether the current call is to fail, with errno. */
static bool strikes(const char *call)
{
    unsigned n;

    if (plan == NULL || atomic_load(&plan->armed) == 0 || strcmp(plan->call, call) != 0)
        return false;
    if (plan->process == FAULT_ANY_PROCESS) {
        atomic_fetch_add(&plan->hits, 1);
        act();
        errno = plan->error;
        return true;
    }
    if (process != plan->process || (process != 0 && round_of != plan->round))
        return false;
    n = atomic_fetch_add(&plan->calls, 1) + 1;
    if (n != plan->nth && !(plan->kind == FAULT_GOES_ON_FAILING && n > plan->nth))
        return false;
    atomic_fetch_add(&plan->hits, 1);
    act();
    errno = plan->error;
    return plan->kind != FAULT_IS_SIGNALED;
}

static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL)
        abort();
    return function;
}

LOUD pid_t fork(void)
{
    unsigned number = 0;
    pid_t pid;

    if (strikes("fork"))
        return -1;
    if (plan != NULL && process == 0)
        number = atomic_fetch_add(&plan->forks, 1) + 1;
    pid = ((pid_t(*)(void))next("fork"))();
    if (pid == 0 && number != 0) {
        process = number;
        round_of = plan->round;
    }
    return pid;
}

LOUD int waitid(idtype_t what, id_t id, siginfo_t *info, int options)
{
    return strikes("waitid") ? -1 : (int)syscall(SYS_waitid, what, id, info, options, NULL);
}

LOUD int socket(int domain, int type, int protocol)
{
    return strikes("socket") ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

LOUD int socketpair(int domain, int type, int protocol, int ends[2])
{
    return strikes("socketpair") ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, ends);
}

LOUD int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    return strikes("bind") ? -1 : (int)syscall(SYS_bind, fd, address, length);
}

LOUD int listen(int fd, int backlog)
{
    return strikes("listen") ? -1 : (int)syscall(SYS_listen, fd, backlog);
}

LOUD int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    /* options put back a moment after a death, such as SO_LINGER, may come at any time */
    bool opens = level == SOL_SOCKET && name == SO_REUSEPORT;

    return opens && strikes("setsockopt")
               ? -1
               : (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}

LOUD int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    return strikes("getsockname") ? -1 : (int)syscall(SYS_getsockname, fd, address, length);
}

LOUD ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return strikes("sendmsg") ? -1 : (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
}

LOUD int epoll_create1(int flags)
{
    return strikes("epoll_create1") ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

LOUD int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    return strikes("epoll_ctl") ? -1 : (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}

LOUD int memfd_create(const char *name, unsigned flags)
{
    return strikes("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

LOUD int ftruncate(int fd, off_t length)
{
    return strikes("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

LOUD void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (strikes("mmap"))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}

LOUD int open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return strikes("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

LOUD int fcntl(int fd, int command, ...)
{
    va_list args;
    long argument;

    va_start(args, command);
    argument = va_arg(args, long);
    va_end(args);
    return strikes(command == F_ADD_SEALS ? "seal" : "fcntl")
               ? -1
               : (int)syscall(SYS_fcntl, fd, command, argument);
}

LOUD int chmod(const char *path, mode_t mode)
{
    return strikes("chmod") ? -1 : (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

LOUD int fchmod(int fd, mode_t mode)
{
    return strikes("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

LOUD int unlink(const char *path)
{
    return strikes("unlink") ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

LOUD int rename(const char *from, const char *to)
{
    return strikes("rename") ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

LOUD int chdir(const char *path)
{
    return strikes("chdir") ? -1 : (int)syscall(SYS_chdir, path);
}

LOUD int mkostemp(char *template, int flags)
{
    return strikes("mkostemp") ? -1 : ((int (*)(char *, int))next("mkostemp"))(template, flags);
}

#undef dprintf /* a macro, with clang and _FORTIFY_SOURCE */

LOUD int dprintf(int fd, const char *format, ...)
{
    va_list args;
    int n;

    if (strikes("dprintf"))
        return -1;
    va_start(args, format);
    n = vdprintf(fd, format, args);
    va_end(args);
    return n;
}

/* The same in a build with _FORTIFY_SOURCE. */
LOUD int __dprintf_chk(int fd, int flag, const char *format, ...);

LOUD int __dprintf_chk(int fd, int flag, const char *format, ...)
{
    va_list args;
    int n;

    (void)flag;
    if (strikes("dprintf"))
        return -1;
    va_start(args, format);
    n = vdprintf(fd, format, args);
    va_end(args);
    return n;
}

LOUD int setgid(gid_t gid)
{
    return strikes("setgid") ? -1 : ((int (*)(gid_t))next("setgid"))(gid);
}

LOUD int setuid(uid_t uid)
{
    return strikes("setuid") ? -1 : ((int (*)(uid_t))next("setuid"))(uid);
}

LOUD int setgroups(size_t n, const gid_t *groups)
{
    return strikes("setgroups") ? -1
                                : ((int (*)(size_t, const gid_t *))next("setgroups"))(n, groups);
}

/* Questions to name services are a single call with the name below, because any may be asked. */
#define NAME_SERVICE "name service"

LOUD int initgroups(const char *user, gid_t group)
{
    if (strikes(NAME_SERVICE))
        return -1;
    return ((int (*)(const char *, gid_t))next("initgroups"))(user, group);
}

LOUD int getgrouplist(const char *user, gid_t group, gid_t *groups, int *n)
{
    if (strikes(NAME_SERVICE))
        return -1;
    return ((int (*)(const char *, gid_t, gid_t *, int *))next("getgrouplist"))(
        user, group, groups, n);
}

LOUD struct passwd *getpwnam(const char *name)
{
    return strikes(NAME_SERVICE) ? NULL
                                 : ((struct passwd * (*)(const char *)) next("getpwnam"))(name);
}

LOUD struct group *getgrnam(const char *name)
{
    return strikes(NAME_SERVICE) ? NULL
                                 : ((struct group * (*)(const char *)) next("getgrnam"))(name);
}

LOUD int getaddrinfo(
    const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **all)
{
    if (strikes(NAME_SERVICE))
        return EAI_AGAIN;
    return ((int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))next(
        "getaddrinfo"))(name, service, hints, all);
}
