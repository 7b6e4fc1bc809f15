/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

struct text {
    char bytes[LINE_MAX_BYTES];
    size_t n; /* one byte is always left for the newline */
};

static const char *const names[] = { "emerg", "alert", "crit", "error", "warn", "notice", "info",
    "debug" };

const char *fb_level_name(enum fb_level level)
{
    return names[level];
}

int fb_level_parse(const char *name)
{
    for (unsigned i = 0; i < fb_countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

void fb_log_update(struct fb_log *log)
{
    log->level = FB_EMERG;
    for (unsigned i = 0; i < log->target_n; i++)
        if (log->targets[i].level > log->level)
            log->level = log->targets[i].level;
    if (log->also != NULL && log->also->level > log->level)
        log->level = log->also->level;
    if (log->told != NULL && log->level < FB_ALERT)
        log->level = FB_ALERT;
}

void fb_log_init(struct fb_log *log, struct fb_log_target *targets, unsigned n)
{
    *log = (struct fb_log) { .targets = targets, .target_n = n, .pid = getpid(), .second = -1 };
    fb_log_update(log);
}

void fb_log_init_plain(struct fb_log *log, struct fb_log_target *target, const char *name)
{
    *target = (struct fb_log_target) { .fd = STDERR_FILENO, .level = FB_NOTICE };
    fb_log_init(log, target, 1);
    log->plain = name;
}

/* What the path leads to as our standard output or error has it: /dev/stderr cannot be opened where
 * it is a socket, or a pipe that was another user's. -1 with the errno kept. */
static int dup_standard(const char *path)
{
    struct stat named, standard;
    int error = errno, copy = -1;

    if (stat(path, &named) == 0)
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && copy == -1; fd++)
            if (fstat(fd, &standard) == 0 && standard.st_dev == named.st_dev &&
                standard.st_ino == named.st_ino)
                copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    errno = error;
    return copy;
}

int fb_log_target_open(struct fb_log_target *target)
{
    int fd = open(target->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (fd == -1 && (errno == ENXIO || errno == EACCES))
        fd = dup_standard(target->path);
    if (fd == -1)
        return -1;
    if (target->fd != -1)
        close(target->fd);
    target->fd = fd;
    return 0;
}

static void append_bytes(struct text *text, const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        /* the second byte of a C1 control character in UTF-8 counts as one too */
        bool c1 = i > 0 && (unsigned char)s[i - 1] == 0xc2 && c >= 0x80 && c < 0xa0;
        bool plain = c >= 0x20 && c != 0x7f && !c1;

        if (text->n + 5 > sizeof(text->bytes))
            return;
        if (plain) {
            text->bytes[text->n++] = (char)c;
            continue;
        }
        text->bytes[text->n++] = '\\';
        text->bytes[text->n++] = 'x';
        text->bytes[text->n++] = hex[c >> 4];
        text->bytes[text->n++] = hex[c & 15];
    }
}

static void append_string(struct text *text, const char *s)
{
    append_bytes(text, s, strlen(s));
}

static void FB_PRINTF(2, 0) append_vformat(struct text *text, const char *format, va_list args)
{
    char message[LINE_MAX_BYTES];
    int n = vsnprintf(message, sizeof(message), format, args);

    if (n > 0)
        append_bytes(text, message, (size_t)n < sizeof(message) ? (size_t)n : sizeof(message) - 1);
}

static void FB_PRINTF(2, 3) append_format(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append_vformat(text, format, args);
    va_end(args);
}

static void append_head(struct fb_log *log, struct text *text, const struct fb_log_line *line)
{
    time_t now;
    struct tm tm;

    if (log->plain != NULL) {
        append_format(text, "%s: [%s] ", log->plain, names[line->level]);
        return;
    }
    now = time(NULL);
    if (now != log->second) {
        localtime_r(&now, &tm);
        strftime(log->date, sizeof(log->date), "%Y/%m/%d %H:%M:%S", &tm);
        log->second = now;
    }
    append_format(text, "%s [%s] %d#0: ", log->date, names[line->level], (int)log->pid);
}

/* The message without what stands before it. */
static void tell(
    const struct fb_log *log, enum fb_level level, const struct text *text, size_t from)
{
    struct fb_telling telling = {
        .level = level,
        .text = text->bytes + from,
        .text_n = (int)(text->n - from),
    };

    if (log->told != NULL && level <= FB_ALERT)
        fb_told_add(log->told, log->told_round, &telling);
}

void fb_log_vwrite(
    struct fb_log *log, const struct fb_log_line *line, const char *format, va_list args)
{
    struct text text;
    int saved = errno;
    char reason[128];
    size_t from;

    if (log->also != NULL) {
        va_list copy;

        va_copy(copy, args);
        fb_log_vwrite(log->also, line, format, copy);
        va_end(copy);
    }
    text.n = 0;
    append_head(log, &text, line);
    from = text.n;
    if (line->connection != 0)
        append_format(&text, "*%llu ", (unsigned long long)line->connection);
    append_vformat(&text, format, args);
    if (line->error != 0) {
        /* the GNU function, which may answer with a constant instead of filling the buffer */
        append_format(
            &text, " (%d: %s)", line->error, strerror_r(line->error, reason, sizeof(reason)));
    }
    if (line->context != NULL)
        append_string(&text, line->context);
    tell(log, line->level, &text, from);
    text.bytes[text.n++] = '\n';

    for (unsigned i = 0; i < log->target_n; i++) {
        const struct fb_log_target *target = &log->targets[i];

        if (target->fd == -1 || (line->level > target->level && !line->force))
            continue;
        /* a log that cannot be written has nowhere to say so */
        if (write(target->fd, text.bytes, text.n) == -1)
            continue;
    }
    errno = saved;
}

void fb_log_write(struct fb_log *log, enum fb_level level, int error, const char *format, ...)
{
    struct fb_log_line line = { .level = level, .error = error };
    va_list args;

    va_start(args, format);
    fb_log_vwrite(log, &line, format, args);
    va_end(args);
}
