/* SPDX-License-Identifier: BSD-2-Clause */
/* The error log: nginx's levels and line shape, each line written whole by one write().
 *
 *   2026/11/21 09:30:00 [error] 123#0: *5 message (111: Connection refused), client: ...
 *
 * A struct fb_log is owned by one process role. It never allocates while it logs, keeps errno, and
 * shows bytes that a terminal would act on as \xNN. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/told.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

struct fb_log_target {
    int fd;              /* -1: closed, nothing is written */
    enum fb_level level; /* takes this level and what is graver */
    const char *path;    /* NULL for standard error, which is never reopened */
};

struct fb_log {
    enum fb_level level; /* the finest level that any target takes */
    unsigned target_n;
    struct fb_log_target *targets; /* the owner's */
    const char *plain;             /* set: lines go as "NAME: [level] message", without a time */
    struct fb_log *also;           /* is given every line that it takes, too; or NULL */
    struct fb_told *told;          /* is told of alerts and emergencies; or NULL ... */
    uint32_t told_round;           /* ... in this round */
    pid_t pid;
    /* the second's text, kept because most lines share it with the line before */
    int64_t second;
    char date[24];
};

/* What a line says besides its message. */
struct fb_log_line {
    enum fb_level level;
    int error;           /* an errno to name, or 0 */
    uint64_t connection; /* its number, or 0 */
    const char *context; /* ", client: ..." behind the message, or NULL */
    bool force;          /* write to every target whatever its level (debug_connection) */
};

/* Sets the log up on the given targets, which stay the caller's. */
void fb_log_init(struct fb_log *log, struct fb_log_target *targets, unsigned n);
/* A start-up log: lines go to standard error as "name: [level] message". */
void fb_log_init_plain(struct fb_log *log, struct fb_log_target *target, const char *name);
/* To be called after the levels of targets, `also` or `told` have changed. */
void fb_log_update(struct fb_log *log);

/* Opens the target's path for appending; -1 with errno, and then the old descriptor stays. */
int fb_log_target_open(struct fb_log_target *target);

void fb_log_vwrite(
    struct fb_log *log, const struct fb_log_line *line, const char *format, va_list args);
void fb_log_write(struct fb_log *log, enum fb_level level, int error, const char *format, ...)
    FB_PRINTF(4, 5);

/* fb_log(log, level, errno or 0, format, ...) */
#define fb_log(log, lvl, ...)                                                                      \
    do {                                                                                           \
        if ((lvl) <= (log)->level)                                                                 \
            fb_log_write((log), (lvl), __VA_ARGS__);                                               \
    } while (0)

/* The name of a level, and the level of a name; -1 where there is none. */
const char *fb_level_name(enum fb_level level);
int fb_level_parse(const char *name);
