/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the calls, and tells errno; never fails by itself. Runs in a worker that is confined, and
 * in a test. */
#include "sandbox/attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MULTIPATH 262        /* IPPROTO_MPTCP */
#define NOBODY INT_MAX       /* no process has this pid */
#define ABOVE_INT (1L << 32) /* the kernel takes nothing of it */

/* 0, or the errno of a call with the result -1. */
static int outcome(long status)
{
    return status == -1 ? errno : 0;
}

/* Returns the outcome of a call with a descriptor as the result. */
static int opened(long fd)
{
    int error = outcome(fd);

    if (fd != -1)
        close((int)fd);
    return error;
}

/* Whether the program has reported success; with SIGCHLD ignored its status is unknown. */
static int run_program(void)
{
    static char *const words[] = { "echo", "heard", NULL };
    posix_spawn_file_actions_t actions;
    int ends[2], error;
    char text[16];
    pid_t pid;

    if (pipe(ends) == -1)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    error = posix_spawn(&pid, "/bin/echo", &actions, NULL, words, NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error == 0) {
        if (read(ends[0], text, sizeof(text)) != 6 || memcmp(text, "heard\n", 6) != 0)
            error = ENOMSG;
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    return error;
}

static int call_fork(void)
{
    pid_t pid = fork();
    int error = outcome(pid);

    if (pid == 0)
        _exit(0);
    if (pid != -1)
        waitpid(pid, NULL, 0);
    return error;
}

static int call_clone_user(void)
{
    long pid = syscall(SYS_clone, (unsigned long)CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    int error = outcome(pid);

    if (pid == 0)
        _exit(0);
    if (pid != -1)
        waitpid((pid_t)pid, NULL, 0);
    return error;
}

static int limit_other(void)
{
    struct rlimit limit;

    return outcome(prlimit(NOBODY, RLIMIT_NOFILE, NULL, &limit));
}

static int call_kill_self(void)
{
    return outcome(kill(getpid(), 0));
}

static int call_tgkill_self(void)
{
    return outcome(syscall(SYS_tgkill, getpid(), gettid(), 0));
}

static int call_sigqueue(void)
{
    return outcome(sigqueue(NOBODY, 0, (union sigval) { .sival_int = 0 }));
}

/* SIGIO ends who does not expect it. */
static int send_sigio(void)
{
    int ends[2], error;

    if (pipe(ends) == -1)
        return errno;
    error = outcome(fcntl(ends[0], F_SETOWN, getpid()));
    close(ends[0]);
    close(ends[1]);
    return error;
}

static int call_listen(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), error;

    if (fd == -1)
        return errno;
    error = outcome(listen(fd, 1));
    close(fd);
    return error;
}

static int bind_to(in_port_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), error;

    if (fd == -1)
        return errno;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    error = outcome(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    close(fd);
    return error;
}

static int bind_anywhere(void)
{
    return bind_to(0);
}

static int call_setuid(void)
{
    return outcome(setuid(getuid()));
}

static int make_code(void)
{
    void *p = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return errno;
    munmap(p, 1);
    return 0;
}

static int turn_into_code(void)
{
    void *p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error;

    if (p == MAP_FAILED)
        return errno;
    error = outcome(mprotect(p, 1, PROT_READ | PROT_EXEC));
    munmap(p, 1);
    return error;
}

/* Memory of a file, but none of the file's bytes. */
static int make_zero_code(void)
{
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), error;
    void *p = mmap(NULL, 1, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0);

    error = p == MAP_FAILED ? errno : 0;
    if (p != MAP_FAILED)
        munmap(p, 1);
    if (fd != -1)
        close(fd);
    return error;
}

static int look_up(void)
{
    struct addrinfo *found = NULL, hints = { .ai_socktype = SOCK_STREAM };
    int error = getaddrinfo("localhost", NULL, &hints, &found) == 0 ? 0 : ENOENT;

    if (found != NULL)
        freeaddrinfo(found);
    return error;
}

/* Widens the mapping of a page of a file to the next page. */
static int widen_mapping(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *wide;
    int error = 0;

    if (p == MAP_FAILED)
        return errno;
    wide = mremap(p, page, 2 * page, MREMAP_MAYMOVE);
    if (wide == MAP_FAILED)
        error = errno;
    munmap(error == 0 ? wide : p, error == 0 ? 2 * page : page);
    return error;
}

static int set_flags(int flags)
{
    int ends[2], error;

    if (pipe(ends) == -1)
        return errno;
    error = outcome(fcntl(ends[1], F_SETFL, flags));
    close(ends[0]);
    close(ends[1]);
    return error;
}

static int stop_appending(void)
{
    return set_flags(O_NONBLOCK);
}

static int go_on_appending(void)
{
    return set_flags(O_NONBLOCK | O_APPEND);
}

static int begin_to_wait(void)
{
    return set_flags(O_APPEND);
}

/* A listener's flags are shared by all workers: accept4() would wait in each. */
static int have_others_wait(void)
{
    int ends[2], error, no = 0;

    if (pipe2(ends, O_NONBLOCK) == -1)
        return errno;
    error = outcome(ioctl(ends[0], FIONBIO, &no));
    close(ends[0]);
    close(ends[1]);
    return error;
}

static int make_memory_file(void)
{
    return opened(memfd_create("prober", MFD_CLOEXEC));
}

static int set_own_priority(void)
{
    return outcome(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
}

static int set_own_affinity(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof(cpus), &cpus) == -1
               ? errno
               : outcome(sched_setaffinity(0, sizeof(cpus), &cpus));
}

static int set_other_affinity(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof(cpus), &cpus) == -1
               ? errno
               : outcome(sched_setaffinity(NOBODY, sizeof(cpus), &cpus));
}

/* Attempts that name something */

static int connect_to_port(const char *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), error;

    if (fd == -1)
        return errno;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    error = outcome(connect(fd, (struct sockaddr *)&address, sizeof(address)));
    close(fd);
    return error;
}

static int open_to_read(const char *path)
{
    return opened(open(path, O_RDONLY | O_CLOEXEC));
}

static int make_file(const char *path)
{
    int error = opened(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));

    if (error == 0)
        unlink(path);
    return error;
}

/* The level and the number of a socket option: if allowed, the error is a missing descriptor. */
static int set_option(const char *numbers)
{
    int level, option;

    if (sscanf(numbers, "%d %d", &level, &option) != 2)
        return -1;
    return outcome(setsockopt(-1, level, option, NULL, 0));
}

static int call_kill(const char *pid)
{
    return outcome(kill(atoi(pid), 0));
}

static int bind_to_port(const char *port)
{
    return bind_to((in_port_t)atoi(port));
}

/* Attempts of one call. */
static const struct {
    const char *name;
    long number, arguments[6];
} calls[] = {
    { "execve", SYS_execve, { (long)"/nonexistent", 0, 0 } },
    { "execveat", SYS_execveat, { -1, (long)"nonexistent", 0, 0, 0 } },
    { "clone3", SYS_clone3, { 0, 0 } },
    { "unshare", SYS_unshare, { CLONE_NEWUTS } },
    { "setns", SYS_setns, { -1, 0 } },
    { "ptrace", SYS_ptrace, { PTRACE_SEIZE, NOBODY, 0, 0 } },
    { "process_vm_readv", SYS_process_vm_readv, { NOBODY, 0, 0, 0, 0 } },
    { "process_vm_writev", SYS_process_vm_writev, { NOBODY, 0, 0, 0, 0 } },
    { "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
    { "pidfd_send_signal", SYS_pidfd_send_signal, { -1, 0, 0, 0 } },
    { "tgkill", SYS_tgkill, { NOBODY, NOBODY, 0 } },
    { "tkill", SYS_tkill, { NOBODY, 0 } },
    { "other_abi", 0x40000000 | SYS_getpid, { 0 } }, /* x32's */

    { "raw", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_ICMP } },
    { "hidden_raw", SYS_socket, { ABOVE_INT | AF_INET, ABOVE_INT | SOCK_RAW, IPPROTO_ICMP } },
    { "packet", SYS_socket, { AF_PACKET, SOCK_DGRAM, 0 } },
    { "hidden_packet", SYS_socket, { ABOVE_INT | AF_PACKET, SOCK_DGRAM, 0 } },
    { "netlink", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE } },
    { "netlink_diag", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG } },
    { "udp", SYS_socket, { AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0 } },
    { "tcp", SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0 } },
    { "unix", SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 } },
    { "mptcp", SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, MULTIPATH } },
    { "hidden_mptcp", SYS_socket, { AF_INET6, SOCK_STREAM, ABOVE_INT | MULTIPATH } },
    { "named_tcp", SYS_socket, { AF_INET, SOCK_STREAM, IPPROTO_TCP } },
    { "disconnect", SYS_connect, { -1, 0, sizeof(sa_family_t) } },
    { "connect_long", SYS_connect, { -1, 0, sizeof(struct sockaddr_in6) } },
    { "sendto", SYS_sendto, { -1, 0, 0, MSG_NOSIGNAL, 0, 0 } },
    { "fastopen", SYS_sendto, { -1, 0, 0, MSG_NOSIGNAL | MSG_FASTOPEN, 0, 0 } },
    { "fastopen_message", SYS_sendmsg, { -1, 0, MSG_FASTOPEN } },
    { "fastopen_messages", SYS_sendmmsg, { -1, 0, 0, ABOVE_INT | MSG_FASTOPEN } },

    { "mount", SYS_mount, { (long)"none", (long)"/nonexistent", (long)"tmpfs", 0, 0 } },
    { "umount", SYS_umount2, { (long)"/nonexistent", 0 } },
    { "fsopen", SYS_fsopen, { (long)"tmpfs", 0 } },
    { "chroot", SYS_chroot, { (long)"/nonexistent" } },
    { "pivot_root", SYS_pivot_root, { (long)"/nonexistent", (long)"/nonexistent" } },
    { "swapon", SYS_swapon, { (long)"/nonexistent", 0 } },
    { "quotactl", SYS_quotactl, { INT_MAX, (long)"/nonexistent", 0, 0 } },
    { "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 } },

    { "keyctl", SYS_keyctl, { INT_MAX } },
    { "add_key", SYS_add_key, { 0, 0, 0, 0, 0 } },
    { "request_key", SYS_request_key, { 0, 0, 0, 0 } },
    { "bpf", SYS_bpf, { INT_MAX, 0, 0 } },
    { "perf_event_open", SYS_perf_event_open, { 0, 0, 0, 0, 0 } },
    { "userfaultfd", SYS_userfaultfd, { INT_MAX } },
    { "io_uring", SYS_io_uring_setup, { 0, 0 } },
    { "io_uring_enter", SYS_io_uring_enter, { -1, 0, 0, 0, 0, 0 } },
    { "io_uring_register", SYS_io_uring_register, { -1, 0, 0, 0 } },
    { "finit_module", SYS_finit_module, { -1, (long)"", 0 } },
    { "init_module", SYS_init_module, { 0, 0, (long)"" } },
    { "delete_module", SYS_delete_module, { 0, 0 } },
    { "reboot", SYS_reboot, { 0, 0, 0, 0 } }, /* without the magic numbers */
    { "personality", SYS_personality, { 0 } },
    { "input", SYS_ioctl, { -1, TIOCSTI, (long)"" } },
    { "hidden_input", SYS_ioctl, { -1, ABOVE_INT | TIOCSTI, (long)"" } },
    { "remap_file_pages", SYS_remap_file_pages, { 0, 0, 0, 0, 0 } },
    { "memfd_secret", SYS_memfd_secret, { INT_MAX } },
    { "shmget", SYS_shmget, { IPC_PRIVATE, 0, 0 } },
    { "semget", SYS_semget, { IPC_PRIVATE, 0, 0 } },
    { "msgsnd", SYS_msgsnd, { -1, 0, 0, 0 } },
    { "mq_open", SYS_mq_open, { (long)"/prober", 0, 0, 0 } },
    { "pidfd_open", SYS_pidfd_open, { NOBODY, 0 } },
    { "setsid", SYS_setsid, { 0 } },
    { "sched_setattr", SYS_sched_setattr, { NOBODY, 0, 0 } },
    { "priority_other", SYS_setpriority, { PRIO_PROCESS, NOBODY, 0 } },
    { "priority_group", SYS_setpriority, { PRIO_PGRP, INT_MAX, 0 } },
    { "ioprio_other", SYS_ioprio_set, { 1, NOBODY, 0 } },
    { "cut", SYS_ftruncate, { -1, 0 } },
    { "cut_hole", SYS_fallocate, { -1, 0, 0, 1 } },
    { "overwrite", SYS_pwritev2, { -1, 0, 0, 0, 0, 0x20 } }, /* RWF_NOAPPEND */
    { "memory_map", SYS_prctl, { PR_SET_MM, INT_MAX, 0, 0, 0 } },
};

static const struct {
    const char *name;
    int (*try)(void);
} attempts[] = {
    { "affinity_other", set_other_affinity },
    { "affinity_self", set_own_affinity },
    { "begin_to_wait", begin_to_wait },
    { "bind", bind_anywhere },
    { "clone_user", call_clone_user },
    { "code", make_code },
    { "fork", call_fork },
    { "go_on_appending", go_on_appending },
    { "have_others_wait", have_others_wait },
    { "kill_self", call_kill_self },
    { "limit_other", limit_other },
    { "listen", call_listen },
    { "look_up", look_up },
    { "memfd", make_memory_file },
    { "mprotect", turn_into_code },
    { "priority_self", set_own_priority },
    { "program", run_program },
    { "setuid", call_setuid },
    { "sigio", send_sigio },
    { "sigqueue", call_sigqueue },
    { "stop_appending", stop_appending },
    { "tgkill_self", call_tgkill_self },
    { "widen", widen_mapping },
    { "zero_code", make_zero_code },
};

static const struct {
    const char *name;
    int (*try)(const char *what);
} named_attempts[] = {
    { "bind ", bind_to_port },
    { "connect ", connect_to_port },
    { "kill ", call_kill },
    { "make ", make_file },
    { "open ", open_to_read },
    { "option ", set_option },
};

static int make_call(size_t i)
{
    const long *arguments = calls[i].arguments;
    long result = syscall(calls[i].number, arguments[0], arguments[1], arguments[2], arguments[3],
        arguments[4], arguments[5]);

    return calls[i].number == SYS_socket || calls[i].number == SYS_fsopen ? opened(result)
                                                                          : outcome(result);
}

int attempt(const char *words)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(words, calls[i].name) == 0)
            return make_call(i);
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
        if (strcmp(words, attempts[i].name) == 0)
            return attempts[i].try();
    for (size_t i = 0; i < sizeof(named_attempts) / sizeof(named_attempts[0]); i++) {
        size_t n = strlen(named_attempts[i].name);

        if (strncmp(words, named_attempts[i].name, n) == 0)
            return named_attempts[i].try(words + n);
    }
    return -1;
}
