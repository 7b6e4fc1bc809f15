/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares listeners and the control socket with sockets in use, and finds holders by the inode, as
 * far as the system shows processes to this user. Never warns of a socket that may be ours: the
 * running daemon's, or the service manager's store. */
#include "configuration/config_check.h"

#include "base/number.h"
#include "conf/report.h"
#include "net/in_use.h"
#include "os/proc.h"
#include "pidfile/pidfile.h"
#include "process/process_ops.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FIRST_ROOM 64u

/* The master process of our pid file, and in an upgrade the old one. */
enum { MASTER, OLD_MASTER, MASTERS };

struct socket_held {
    unsigned long inode;
    pid_t pid;
};

struct checking {
    struct conf_report report;
    struct in_use in_use;
    pid_t masters[MASTERS]; /* not positive: none */
    bool by_manager;        /* the service manager has started this process */

    /* sockets of the masters, and behind them of all processes, each part read when first needed */
    struct socket_held *held;
    size_t held_n, room, of_masters;
    pid_t reading; /* the process whose sockets are being added */
    bool masters_read, all_read;
    bool unknown; /* a master's sockets are hidden from this user */
};

static int add_held_socket(void *arg, unsigned long inode)
{
    struct checking *checking = arg;

    assert(checking->held_n <= checking->room);
    if (checking->held_n == checking->room) {
        size_t room = checking->room > 0 ? 2 * checking->room : FIRST_ROOM;
        struct socket_held *larger = realloc(checking->held, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        checking->held = larger;
        checking->room = room;
    }
    checking->held[checking->held_n++] = (struct socket_held) { inode, checking->reading };
    return 0;
}

/* Adds all sockets of the process; -1 when hidden from this user, or without memory. */
static int read_sockets(struct checking *checking, pid_t pid)
{
    checking->reading = pid;
    return os_proc_visit_sockets(pid, add_held_socket, checking);
}

static void read_process(void *arg, pid_t pid)
{
    read_sockets(arg, pid);
}

/* Returns the process that has the socket, among the first `n` that were added; 0: none has. */
static pid_t find_socket(const struct checking *checking, size_t n, unsigned long inode)
{
    for (size_t i = 0; i < n; i++)
        if (checking->held[i].inode == inode)
            return checking->held[i].pid;
    return 0;
}

/* Reads the pid in a file; not positive: there is none. */
static pid_t read_master(const char *path, const char *suffix)
{
    char name[PATH_MAX];

    return pidfile_append(name, path, suffix) == 0 ? pidfile_peek_pid(name) : -1;
}

/* Whether this process was started by systemd, so cannot see the holders of sockets. */
static bool is_started_by_manager(void)
{
    const char *value = getenv("SYSTEMD_EXEC_PID");
    int64_t pid;

    return value != NULL && number_parse(value, 1, INT_MAX, &pid) == NUMBER_OK &&
           pid == process_ops->self();
}

static bool is_masters_socket(struct checking *checking, unsigned long inode)
{
    for (int i = 0; i < MASTERS && !checking->masters_read; i++)
        if (checking->masters[i] > 0 && read_sockets(checking, checking->masters[i]) == -1)
            checking->unknown = true;
    if (!checking->masters_read)
        checking->of_masters = checking->held_n;
    checking->masters_read = true;
    return checking->unknown || find_socket(checking, checking->of_masters, inode) != 0;
}

static pid_t find_holder(struct checking *checking, unsigned long inode)
{
    if (!checking->all_read)
        os_proc_visit(read_process, checking);
    checking->all_read = true;
    return find_socket(checking, checking->held_n, inode);
}

/* Whether the service manager may store a socket without a visible holder for us. */
static bool may_be_passed(const struct checking *checking, const struct in_use_socket *held)
{
    if (checking->by_manager)
        return true;
    return geteuid() != 0 && (held->uid == geteuid() || held->uid == (uid_t)-1);
}

/* Warns that `what` would fail, unless the socket is ours. Returns whether it has warned. */
static bool warn_of_socket(struct checking *checking, const struct listener *listener,
    const struct in_use_socket *held, bool sure, const char *what)
{
    const struct address *wanted = &listener->address;
    bool has_zone = wanted->any.sa_family == AF_INET6 && wanted->in6.sin6_scope_id != 0;
    const char *unless = sure       ? ""
                         : has_zone ? ", unless the socket is at a different network interface"
                                    : ", unless the socket has IPV6_V6ONLY";
    char text[ADDRESS_TEXT], name[32], who[64] = "a process hidden from this user";
    pid_t holder;

    if (is_masters_socket(checking, held->inode))
        return false;
    if ((holder = find_holder(checking, held->inode)) != 0) {
        os_proc_name(holder, name);
        snprintf(who, sizeof(who), "process %d (%s)", (int)holder, name);
        if (holder == 1 || strcmp(name, "systemd") == 0)
            unless = ", unless it passes the socket";
    } else if (may_be_passed(checking, held)) {
        return false;
    }
    report_warn(&checking->report, listener->word, "%s: %s is in use by %s%s", what,
        address_format(&held->address, true, text), who, unless);
    return true;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Warns of the first socket in the way: further sockets are mostly of the same process. */
static void check_address(
    struct checking *checking, const struct listener *listener, const char *what)
{
    const struct in_use_socket *held = NULL;
    bool sure;

    do
        held = in_use_find(&checking->in_use, held, listener, &sure);
    while (held != NULL && !warn_of_socket(checking, listener, held, sure, what));
}

static void check_listening(struct checking *checking, const struct listener *listener)
{
    char what[ADDRESS_TEXT + 32];

    if (listener->address.any.sa_family == AF_UNIX && !is_socket(listener->address.un.sun_path))
        return; /* the path is free, whatever socket was made there */
    snprintf(what, sizeof(what), "bind() to %s would fail", listener->text);
    check_address(checking, listener, what);
}

/* The kernel knows a control socket by the name under which it was made (control/socket.c). */
static void check_control(struct checking *checking, const char *path)
{
    static const char *const suffixes[] = { ".new", "" };
    struct listener listener = { .address.length = sizeof(struct sockaddr_un) };
    struct sockaddr_un *address = &listener.address.un;

    if (path == NULL || !is_socket(path))
        return;
    address->sun_family = AF_UNIX;
    for (size_t i = 0; i < countof(suffixes); i++) {
        snprintf(address->sun_path, sizeof(address->sun_path), "%s%s", path, suffixes[i]);
        check_address(checking, &listener, "the control socket could not be made");
    }
}

void config_check_addresses(const struct cycle *cycle, struct log *log, int excerpts)
{
    struct checking checking = {
        .masters[MASTER] = read_master(cycle->core.pid, ""),
        .masters[OLD_MASTER] = read_master(cycle->core.pid, PIDFILE_OLD_SUFFIX),
        .by_manager = is_started_by_manager(),
    };
    const struct listener *listener;

    if (in_use_read(&checking.in_use, "") == -1)
        return;
    report_init(&checking.report, cycle->arena);
    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        check_listening(&checking, listener);
    if (cycle->core.master_process) {
        check_control(&checking, cycle->core.control.path);
        check_control(&checking, cycle->core.control_read.path);
    }
    report_show(&checking.report, log, excerpts);
    in_use_done(&checking.in_use);
    free(checking.held);
}
