/* SPDX-License-Identifier: BSD-2-Clause */
/* Landlock's rules of a worker: paths to open, ports to bind and to connect to, processes to
 * signal. The C library has no calls for Landlock, and its headers may be older than the kernel. */
#include "sandbox/confine.h"

#include "process/sanitized.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same numbers on all architectures. */
#define CALL_CREATE_RULESET 444
#define CALL_ADD_RULE 445
#define CALL_RESTRICT_SELF 446

/* Constants that linux/landlock.h calls LANDLOCK_... */
#define CREATE_RULESET_VERSION 1u
enum { RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2 };
#define FS(bit) (UINT64_C(1) << (bit))
enum {
    EXECUTE,
    WRITE_FILE,
    READ_FILE,
    READ_DIR,
    REMOVE_DIR,
    REMOVE_FILE,
    MAKE_CHAR,
    MAKE_DIR,
    MAKE_REG,
    MAKE_SOCK,
    MAKE_FIFO,
    MAKE_BLOCK,
    MAKE_SYM,
    REFER,     /* since ABI 2 */
    TRUNCATE,  /* 3 */
    IOCTL_DEV, /* 5 */
};
#define BIND_TCP UINT64_C(1)              /* 4 */
#define CONNECT_TCP UINT64_C(2)           /* 4 */
#define SCOPE_ABSTRACT_SOCKET UINT64_C(1) /* 6 */
#define SCOPE_SIGNAL UINT64_C(2)          /* 6 */

struct ruleset {
    uint64_t fs, net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

struct port_rule {
    uint64_t allowed, port;
};

#define OF_FILES (FS(EXECUTE) | FS(WRITE_FILE) | FS(READ_FILE) | FS(TRUNCATE) | FS(IOCTL_DEV))
#define READING (FS(READ_FILE) | FS(READ_DIR))
#define WRITING                                                                                    \
    (READING | FS(WRITE_FILE) | FS(TRUNCATE) | FS(IOCTL_DEV) | FS(REMOVE_DIR) | FS(REMOVE_FILE) |  \
        FS(MAKE_DIR) | FS(MAKE_REG) | FS(MAKE_SOCK) | FS(MAKE_FIFO) | FS(MAKE_SYM) | FS(REFER))
#define APPENDING (FS(MAKE_REG) | FS(WRITE_FILE))
#define CORES (FS(MAKE_REG) | FS(WRITE_FILE) | FS(TRUNCATE))

/* Rules that are being made. */
struct rules {
    int fd;
    uint64_t fs; /* the rights that this kernel knows */
    struct log *log;
};

/* Paths to open where present: always, by a need, or without `strict`. */
static const struct {
    uint64_t need; /* FB_NEEDS_..., or 0 */
    bool unless_strict;
    uint64_t allowed;
    const char *paths[12];
} lists[] = {
    { 0, false, READING,
        { "/usr/share/zoneinfo", "/etc/localtime", "/dev/urandom", "/dev/random", "/dev/zero" } },
    { 0, false, READING | FS(WRITE_FILE), { "/dev/null", "/dev/full" } },
    /* files without secrets that the C library may read at any time */
    { 0, true, READING,
        { "/usr", "/lib", "/lib32", "/lib64", "/etc/localtime", "/etc/ld.so.cache", "/proc",
            "/sys/devices/system/cpu" } },
    { FB_NEEDS_EXEC, false, READING | FS(EXECUTE),
        { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc/ld.so.cache" } },
    /* places where names are looked up: directories, because files of /etc are replaced */
    { FB_NEEDS_NAMES, false, READING,
        { "/etc", "/usr", "/lib", "/lib32", "/lib64", "/run/systemd/resolve", "/run/NetworkManager",
            "/run/resolvconf", "/run/nscd", "/var/lib/sss" } },
    /* files that c-ares reads, unless the configuration names the servers to ask */
    { FB_NEEDS_RESOLVER, false, READING,
        { "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf" } },
};

static int abi_of_kernel(void)
{
    return (int)syscall(CALL_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
}

const char *sandbox_landlock_lacks(int *error)
{
    *error = 0;
    if (abi_of_kernel() > 0)
        return NULL;
    *error = errno;
    switch (*error) {
    case EOPNOTSUPP:
        return "Landlock is not enabled: add \"landlock\" to the kernel's \"lsm=\" parameter";
    case ENOSYS:
        return "the kernel does not have Landlock";
    default:
        return "the system calls landlock_* are not allowed, by a container engine for example";
    }
}

/* An ABI includes the rights of all older ABIs. */
static uint64_t rights_of(int abi)
{
    unsigned last = abi >= 5 ? IOCTL_DEV : abi >= 3 ? TRUNCATE : abi == 2 ? REFER : MAKE_SYM;

    assert(abi > 0);
    return (UINT64_C(2) << last) - 1;
}

static struct ruleset handled_rights(const struct cycle *cycle, int abi)
{
    const struct needs *needs = &cycle->needs;
    struct ruleset handled = { .fs = rights_of(abi) };

    if (abi >= 4 && !(needs->rights & (FB_NEEDS_LISTEN | FB_NEEDS_BIND)))
        handled.net = BIND_TCP;
    if (abi >= 4 && cycle->core.sandbox == SANDBOX_STRICT &&
        !(needs->rights & (FB_NEEDS_CONNECT | FB_NEEDS_NAMES | FB_NEEDS_EXEC)))
        handled.net |= CONNECT_TCP;
    if (abi >= 6)
        handled.scoped = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL;
    return handled;
}

bool sandbox_landlock_holds_ports(const struct cycle *cycle)
{
    int abi = abi_of_kernel();

    return abi > 0 && (handled_rights(cycle, abi).net & CONNECT_TCP) != 0;
}

/* -1 with errno: a path that is not there cannot be opened either. */
static int allow_path(const struct rules *rules, const char *path, uint64_t allowed)
{
    int fd = open(path, O_PATH | O_CLOEXEC), status = -1, error;
    struct path_rule rule = { .allowed = allowed & rules->fs, .parent = fd };
    struct stat st;

    assert(rules->fd != -1 && allowed != 0);
    if (fd == -1)
        return -1;
    if (fstat(fd, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            rule.allowed &= OF_FILES;
        status = (int)syscall(CALL_ADD_RULE, rules->fd, RULE_PATH_BENEATH, &rule, 0);
    }
    error = errno;
    close(fd);
    errno = error;
    return status;
}

static void allow_needed(const struct rules *rules, const struct needs *needs)
{
    static const uint64_t rights[] = {
        [NEEDS_TO_READ] = READING, [NEEDS_TO_WRITE] = WRITING, [NEEDS_TO_APPEND] = APPENDING
    };
    uint64_t also = needs->rights & FB_NEEDS_EXEC ? FS(EXECUTE) : 0;
    const struct needs_path *needed;

    STAILQ_FOREACH (needed, &needs->paths, link) {
        assert(needed->path != NULL && needed->path[0] != '\0');
        if (allow_path(rules, needed->path, also | rights[needed->access]) == -1)
            log_write(rules->log, LEVEL_WARN, errno, "sandbox: this worker cannot open \"%s\"",
                needed->path);
    }
}

/* A directory that is not there yet cannot be opened until the next keeper starts. */
static void allow_directories(const struct rules *rules, const struct tls_profiles *profiles)
{
    for (unsigned i = 0; i < profiles->directory_n; i++)
        if (allow_path(rules, profiles->directories[i], FS(READ_FILE)) == -1)
            log_write(rules->log, LEVEL_WARN, errno,
                "sandbox: this keeper cannot open files beneath \"%s\"", profiles->directories[i]);
}

/* The kernel makes the file as the worker would. */
static void allow_cores(const struct rules *rules, const struct core_settings *core)
{
    FILE *file = core->rlimit_core > 0 ? fopen("/proc/sys/kernel/core_pattern", "re") : NULL;
    char pattern[256] = "";
    char *slash;

    if (file == NULL)
        return;
    if (fgets(pattern, sizeof(pattern), file) == NULL)
        pattern[0] = '\0';
    fclose(file);
    slash = strrchr(pattern, '/');
    if (pattern[0] == '/') {
        slash[slash == pattern] = '\0';
        allow_path(rules, pattern, CORES);
    } else if (pattern[0] != '|' && core->working_directory != NULL) {
        allow_path(rules, ".", CORES);
    }
}

static void allow_build_paths(const struct rules *rules)
{
    const char *path;

    for (unsigned i = 0; (path = sanitized_path(i, false)) != NULL; i++)
        allow_path(rules, path, READING);
    for (unsigned i = 0; (path = sanitized_path(i, true)) != NULL; i++)
        allow_path(rules, path, WRITING);
}

static void allow_paths(const struct rules *rules, const struct cycle *cycle)
{
    for (size_t i = 0; i < countof(lists); i++)
        if ((lists[i].need == 0 || (cycle->needs.rights & lists[i].need)) &&
            (!lists[i].unless_strict || cycle->core.sandbox == SANDBOX_ON))
            for (const char *const *path = lists[i].paths; *path != NULL; path++)
                allow_path(rules, *path, lists[i].allowed);
    allow_needed(rules, &cycle->needs);
    if (cycle->needs.rights & NEEDS_FILES)
        allow_directories(rules, &cycle->tls);
    allow_cores(rules, &cycle->core);
    allow_build_paths(rules);
}

static int allow_port(const struct rules *rules, uint64_t port, uint64_t allowed)
{
    struct port_rule rule = { .allowed = allowed, .port = port };

    return (int)syscall(CALL_ADD_RULE, rules->fd, RULE_NET_PORT, &rule, 0);
}

/* A client's socket bound to an address without a port is harmless. */
static int allow_ports(const struct rules *rules, const struct needs *needs, uint64_t handled)
{
    const struct needs_port *needed;

    if ((handled & BIND_TCP) && allow_port(rules, 0, BIND_TCP) == -1)
        return -1;
    if (handled & CONNECT_TCP)
        STAILQ_FOREACH (needed, &needs->ports, link)
            if (allow_port(rules, needed->port, CONNECT_TCP) == -1)
                return -1;
    return 0;
}

int sandbox_landlock_enter(const struct cycle *cycle, struct log *log)
{
    struct ruleset ruleset = handled_rights(cycle, abi_of_kernel());
    struct rules rules = { .fs = ruleset.fs, .log = log };
    int status = 0, error;

    assert(cycle->core.sandbox != SANDBOX_OFF);
    if (cycle->needs.unknown != NULL && cycle->core.sandbox == SANDBOX_ON)
        return 0;
    rules.fd = (int)syscall(CALL_CREATE_RULESET, &ruleset, sizeof(ruleset), 0);
    if (rules.fd == -1)
        return -1;
    allow_paths(&rules, cycle);
    status = allow_ports(&rules, &cycle->needs, ruleset.net);
    if (status == 0)
        status = (int)syscall(CALL_RESTRICT_SELF, rules.fd, 0);
    error = errno;
    close(rules.fd);
    errno = error;
    return status;
}
