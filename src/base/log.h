/* SPDX-License-Identifier: BSD-2-Clause */
/* The error log: nginx's levels and line shape, each line written whole by one system call a target.
 *
 *   2026/11/21 09:30:00 [error] 123#0: *5 message (111: Connection refused), client: ...
 *
 * A struct fb_log is owned by one process role. It never allocates while it logs, keeps errno, does
 * not wait for a syslog server or the journal, and shows bytes that a terminal would act on as \xNN,
 * or as JSON has it. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/diag.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* These are syslog's severities too. */
enum fb_level {
    FB_EMERG,
    FB_ALERT,
    FB_CRIT,
    FB_ERROR,
    FB_WARN,
    FB_NOTICE,
    FB_INFO,
    FB_DEBUG,
};

enum fb_log_format { FB_LOG_TEXT, FB_LOG_JSON };

/* A server that takes lines as datagrams, in the format of RFC 3164. */
struct fb_syslog {
    const struct sockaddr *address;
    socklen_t address_n;
    const char *name; /* the address as lines show it */
    const char *host; /* "NAME ", or "" */
    const char *tag;
    unsigned facility;
};

struct fb_log_target {
    int fd;              /* -1: closed, nothing is written */
    enum fb_level level; /* takes this level and what is graver */
    enum fb_log_format format;
    const char *path;               /* of a file, or NULL */
    const struct fb_syslog *syslog; /* `fd` is a socket that is connected to it; or NULL */
    /* neither: standard error, which is never reopened, but may lead to the journal. Then what is
     * text goes to its own socket, and to `fd` only what that does not take. */
    bool journal;
    int journal_fd; /* connected; or -1 */
    /* of what may not take a line: */
    uint64_t lost;     /* lines that it has not taken and that were not spoken of */
    bool broken;       /* its receiver has gone: it is to be connected again ... */
    uint64_t retry_ms; /* ... not before (monotonic) */
    bool down;         /* ... which has failed, and that was said */
};

struct fb_log_limit;

struct fb_log {
    enum fb_level level; /* the finest level that any target takes */
    unsigned target_n;
    struct fb_log_target *targets; /* the owner's */
    const char *plain;             /* set: lines go as "NAME: [level] message", without a time */
    struct fb_log *also;           /* is given every line that it takes, too; or NULL */
    struct fb_told *diag;          /* takes copies of alerts and emergencies; or NULL */
    uint32_t diag_session;         /* the session of `diag` that takes them */
    struct fb_log_limit *limit; /* the owner's, who calls fb_log_tend() when it is due; or NULL */
    bool broken;                /* a target is: its owner does something about it */
    pid_t pid;
    /* the second's texts, kept because most lines share them with the line before */
    int64_t second;
    char date[24];  /* ours */
    char stamp[16]; /* syslog's */
};

/* What a line says besides its message. Texts may be NULL. */
struct fb_log_line {
    enum fb_level level;
    int error;           /* an errno to name, or 0 */
    uint64_t connection; /* its number, or 0 */
    const char *client, *server, *upstream;
    const char *protocol; /* not in text */
    bool force;           /* write to every target whatever its level (debug_connection) */
};

/* Sets the log up on the given targets, which stay the caller's. */
void fb_log_init(struct fb_log *log, struct fb_log_target *targets, unsigned n);
/* A start-up log: lines go to standard error as "name: [level] message". */
void fb_log_init_plain(struct fb_log *log, struct fb_log_target *target, const char *name);
/* To be called after the levels of targets, `also` or `diag` have changed. */
void fb_log_update(struct fb_log *log);

/* Opens the target's path for appending; -1 with errno, and then the old descriptor stays. */
int fb_log_target_open(struct fb_log_target *target);
/* Makes the socket of a syslog target; -1 with errno. */
int fb_log_target_make_socket(struct fb_log_target *target);
/* Connects it, or connects it again, in all processes that have inherited it; -1 with errno. */
int fb_log_target_connect(struct fb_log_target *target);
/* Whether it has a descriptor of its own, which is opened and closed. */
static inline bool fb_log_target_is_own(const struct fb_log_target *target)
{
    return target->path != NULL || target->syslog != NULL;
}

void fb_log_vwrite(struct fb_log *log, const struct fb_log_line *line, const char *format,
    va_list args) FB_PRINTF(3, 0);
void fb_log_write(struct fb_log *log, enum fb_level level, int error, const char *format, ...)
    FB_PRINTF(4, 5);

/* Says of the limit what is due by now; with `all`, all that was held back. */
void fb_log_tend(struct fb_log *log, bool all);

/* fb_log(log, level, errno or 0, format, ...) */
#define fb_log(log, lvl, ...)                                                                      \
    do {                                                                                           \
        if ((lvl) <= (log)->level)                                                                 \
            fb_log_write((log), (lvl), __VA_ARGS__);                                               \
    } while (0)

/* The name of a level, and the level of a name; -1 where there is none. */
const char *fb_level_name(enum fb_level level);
int fb_level_parse(const char *name);
