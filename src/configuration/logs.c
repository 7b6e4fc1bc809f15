/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, reopens, repairs and closes logs, and reads workers' standard error. Reports a broken log
 * once, and its repair. A quota is a token bucket of one rate for all subjects. */
#include "configuration/logs.h"

#include "base/compiler.h"
#include "os/descriptor.h"
#include "os/log_file.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "systemd/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads of one worker in a turn. */
#define READS_A_TURN 8
/* ... of a dead worker: more than a pipe holds. */
#define READS_AT_THE_END 256
/* When the number of held back lines is reported. */
#define QUOTA_REPORT_MS 10000

/* A crash has three lines. */
static const struct token_rate quota_rate = { .burst = 100, .per_second = 2 };

/* Replaces a descriptor by our own opening of the file, where possible. */
static void open_again(int fd, bool cloexec)
{
    int own = log_file_open_again(fd);

    if (own == -1)
        return;
    if (cloexec)
        descriptor_replace(own, fd);
    else
        dup2(own, fd);
    close(own);
}

void logs_open_standard(struct log_target *standard_error)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        open_again(fd, false);
    log_target_find_way(standard_error);
}

void logs_separate(struct core_settings *core, bool serves)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        open_again(fd, false);
    for (unsigned i = 0; i < core_target_n(core); i++) {
        struct log_target *target = core_target(core, i);

        target->lost = 0; /* the master's own lines */
        if (target->path != NULL)
            open_again(target->fd, true);
        log_target_separate(target, serves);
    }
}

static bool is_same_file(int a, int b)
{
    struct stat first, second;

    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Returns the first text file of the main context, or NULL. */
static const struct log_target *find_text_log(const struct core_settings *core)
{
    for (unsigned i = 0; i < core->log_n; i++)
        if (core->logs[i].path != NULL && core->logs[i].format == LOG_FORMAT_TEXT)
            return &core->logs[i];
    return NULL;
}

static bool is_null_device(int fd)
{
    struct stat own, null;

    return fstat(fd, &own) == 0 && stat("/dev/null", &null) == 0 && S_ISCHR(own.st_mode) &&
           own.st_rdev == null.st_rdev;
}

void logs_lead_output(const struct core_settings *core, int output)
{
    const struct log_target *text = find_text_log(core);

    if (text != NULL)
        output = text->fd;
    if (output != -1 && is_null_device(STDERR_FILENO))
        dup2(output, STDERR_FILENO);
}

int logs_exchange(struct log_target *target, int fd)
{
    int before = target->fd;

    if (is_same_file(before, STDERR_FILENO))
        dup2(fd, STDERR_FILENO);
    target->fd = fd;
    log_target_find_way(target);
    if (target->stream != NULL)
        log_stream_open(target->stream);
    return before;
}

static void note_reached(struct log_target *target, struct log *log)
{
    if (target->down)
        log_write(
            log, LEVEL_NOTICE, 0, "syslog server %s can be reached again", target->syslog->name);
    target->down = false;
}

/* Connects to the server; the first failure is an alert. Whether TCP reaches it shows later. */
static void connect_syslog(struct log_target *target, struct log *log)
{
    if (log_target_connect(target) == 0) {
        if (target->stream == NULL)
            note_reached(target, log);
        return;
    }
    if (target->stream != NULL) /* tried again while lines wait */
        return;
    if (!target->down)
        log_write(log, LEVEL_ALERT, errno,
            "connect() to syslog server %s failed, lines for it are lost", target->syslog->name);
    target->down = true;
}

/* Explains an errno of open(), where the error text does not. */
static const char *why_failed(int error)
{
    if (error == EMLINK)
        return ", root writes to no file that has another name";
    return error == ELOOP ? ", root follows no symbolic link of another user" : "";
}

/* `own`: this process writes to it, and not only workers. */
static int open_target(struct log_target *target, bool own, struct log *log)
{
    char name[LOG_TARGET_NAME];

    if (target->path != NULL && log_target_open(target) == -1) {
        log_write(
            log, LEVEL_EMERG, errno, "open() \"%s\" failed%s", target->path, why_failed(errno));
        return -1;
    }
    if (target->syslog != NULL) {
        if (log_target_make_socket(target) == -1) {
            log_write(log, LEVEL_EMERG, errno, "socket() for syslog server %s failed",
                target->syslog->name);
            return -1;
        }
        if (target->stream == NULL || own)
            connect_syslog(target, log);
    }
    if (!log_target_is_own(target))
        log_target_find_way(target);
    if (!log_target_is_own(target) && journal_is_stderr()) {
        target->journal = true;
        target->journal_fd = journal_socket();
    }
    if (target->way == LOG_WAY_WAIT)
        log_write(log, LEVEL_WARN, 0,
            "%s cannot be opened again: processes wait when the reader stalls",
            log_target_name(target, name));
    return 0;
}

int logs_open(struct core_settings *core, struct log *log)
{
    for (unsigned i = 0; i < core_target_n(core); i++)
        if (open_target(core_target(core, i), i < core->log_n, log) == -1) {
            logs_close(core);
            return -1;
        }
    return 0;
}

static void reopen_target(struct log_target *target, struct log *log)
{
    bool leads = target->path != NULL && is_same_file(target->fd, STDERR_FILENO);

    if (target->path != NULL && log_target_open(target) == -1)
        log_write(log, LEVEL_ALERT, errno, "open() \"%s\" failed%s, the old file stays in use",
            target->path, why_failed(errno));
    if (leads)
        dup2(target->fd, STDERR_FILENO);
    if (target->syslog != NULL && target->stream == NULL) {
        target->down = false; /* a failure of a requested reopening is always logged */
        connect_syslog(target, log);
    }
    if (target->journal && target->journal_fd != -1)
        journal_connect();
}

void logs_reopen(struct core_settings *core, struct log *log)
{
    for (unsigned i = 0; i < core_target_n(core); i++)
        reopen_target(core_target(core, i), log);
}

bool logs_take_broken(struct log_target *target, struct log *log)
{
    bool broken = target->broken;

    target->broken = false;
    if (broken && target->stream != NULL && !target->down &&
        log_stream_error(target->stream) != 0) {
        target->down = true; /* before the line, perhaps for this target */
        log_write(log, LEVEL_ERROR, log_stream_error(target->stream),
            "the connection to syslog server %s is down, lines for it wait", target->syslog->name);
    }
    return broken;
}

void logs_flush(struct core_settings *core, struct log *log)
{
    log->waiting = false;
    for (unsigned i = 0; i < core_target_n(core); i++) {
        struct log_target *target = core_target(core, i);

        if (target->stream == NULL || (!log_target_waits(target) && !target->down))
            continue;
        log_stream_flush(target->stream, target->fd);
        if (log_stream_phase(target->stream) == LOG_STREAM_DOWN)
            log->broken = target->broken = true;
        else if (log_stream_phase(target->stream) == LOG_STREAM_UP)
            note_reached(target, log);
        log->waiting = log->waiting || log_target_waits(target);
    }
}

void logs_finish(const struct log *log)
{
    for (; log != NULL; log = log->also)
        for (unsigned i = 0; i < log->target_n; i++)
            if (log_target_waits(&log->targets[i]))
                log_stream_finish(log->targets[i].stream, log->targets[i].fd, LOGS_FINISH_MS);
}

void logs_drop_waiting(struct core_settings *core, struct log *log)
{
    char name[LOG_TARGET_NAME];

    logs_flush(core, log);
    for (unsigned i = 0; i < core_target_n(core); i++) {
        struct log_target *target = core_target(core, i);
        unsigned n = log_target_waits(target) ? log_stream_drop(target->stream) : 0;
        bool down = n > 0 && log_stream_phase(target->stream) == LOG_STREAM_DOWN;

        log_count_lost(log, n);
        if (n > 0)
            log_write(log, LEVEL_ALERT, down ? log_stream_error(target->stream) : 0,
                "%u line%s not accepted by %s", n, n == 1 ? " was" : "s were",
                log_target_name(target, name));
    }
}

void logs_repair(struct core_settings *core, struct log *log)
{
    for (unsigned i = 0; i < core_target_n(core); i++) {
        struct log_target *target = core_target(core, i);

        if (!logs_take_broken(target, log))
            continue;
        if (target->syslog != NULL)
            connect_syslog(target, log);
        else
            journal_connect();
    }
}

static void carry_target(struct log_target *target, struct log_target *before)
{
    target->lost += before->lost;
    before->lost = 0;
    if (log_target_waits(before) && target->stream != NULL)
        target->lost += log_stream_move(before->stream, target->stream);
}

/* Carries over the counts of lost lines not yet reported, and lines that wait. */
static void carry_lost(struct log *log, struct log *before)
{
    for (unsigned i = 0; i < before->target_n && log->targets != before->targets; i++)
        for (unsigned j = 0; j < log->target_n; j++)
            if (log_target_is_same(&log->targets[j], &before->targets[i]))
                carry_target(&log->targets[j], &before->targets[i]);
}

void logs_put_in_force(const struct core_settings *core, struct log *log, struct log_limit *limit)
{
    struct log before;

    log_report_suppressed(log, true);
    before = *log;
    log_init(log, core->logs, core->log_n);
    carry_lost(log, &before);
    log->override = before.override;
    log->also = before.also; /* until we have said that we serve */
    log->event_log = before.event_log;
    log->failures = before.failures;
    log->lost = before.lost;
    log->diag = before.diag;
    log->diag_session = before.diag_session;
    log->waiting = true; /* perhaps */
    if (core->log_burst > 0) {
        log_limit_init(limit, (uint32_t)core->log_burst, (uint64_t)core->log_interval);
        log->limit = limit;
    }
    log_update(log);
}

void logs_close(struct core_settings *core)
{
    for (unsigned i = 0; i < core_target_n(core); i++) {
        struct log_target *target = core_target(core, i);

        if (log_target_is_own(target))
            log_target_close(target);
    }
}

unsigned logs_standard(const struct core_settings *core)
{
    unsigned standard = 0;

    for (unsigned i = 0; i < core_target_n(core); i++)
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
            if (is_same_file(core_target(core, i)->fd, fd))
                standard |= 1u << fd;
    return standard;
}

bool logs_main_uses_stderr(const struct core_settings *core)
{
    for (unsigned i = 0; i < core->log_n; i++)
        if (!log_target_is_own(core_target(core, i)))
            return true;
    return false;
}

static void report_held_lines(struct log_quota *quota)
{
    if (quota->held > 0)
        log_write(quota->log, LEVEL_ALERT, 0, "%" PRIu32 " line%s about %s %s not written",
            quota->held, quota->held == 1 ? "" : "s", quota->subject,
            quota->held == 1 ? "was" : "were");
    quota->held = 0;
}

static void held_report_due(struct loop *loop, struct timer *timer)
{
    (void)loop;
    report_held_lines(container_of(timer, struct log_quota, due));
}

void log_quota_init(
    struct log_quota *quota, struct log *log, struct timers *timers, const char *subject, ...)
{
    va_list args;

    assert(log != NULL && timers != NULL);
    *quota =
        (struct log_quota) { .log = log, .timers = timers, .due = { .expired = held_report_due } };
    va_start(args, subject);
    vsnprintf(quota->subject, sizeof(quota->subject), subject, args);
    va_end(args);
}

void log_quota_done(struct log_quota *quota)
{
    report_held_lines(quota);
    timers_disarm(quota->timers, &quota->due);
}

void log_quota_write(
    struct log_quota *quota, enum log_level level, int error, const char *format, ...)
{
    struct log_line line = { .level = level, .error = error };
    va_list args;

    if (level > quota->log->level)
        return;
    if (!token_bucket_take(&quota->bucket, &quota_rate, quota->timers->clock->mono_ms)) {
        quota->held += quota->held < UINT32_MAX;
        if (!timer_is_set(&quota->due))
            timers_arm(quota->timers, &quota->due, QUOTA_REPORT_MS);
        return;
    }
    va_start(args, format);
    log_vput(quota->log, &line, format, args);
    va_end(args);
}

const char *logs_output_open(struct output *output, const struct core_settings *core, int *theirs)
{
    int ends[2];

    assert(role_is(ROLE_MASTER) && output->fd == -1 && output->n == 0);
    *theirs = -1;
    if (find_text_log(core) != NULL || logs_main_uses_stderr(core))
        return NULL;
    if (descriptor_pipe(ends, O_NONBLOCK) == -1)
        return "pipe";
    output->fd = ends[0];
    *theirs = ends[1];
    return process_ops->wakeup_add(output->fd) == -1 ? "fcntl" : NULL;
}

int logs_output_take_over(const struct output *output)
{
    return output->fd == -1 ? 0 : process_ops->wakeup_add(output->fd);
}

static void log_output_text(struct log_quota *lines, pid_t pid, const char *text, unsigned n)
{
    if (n > 0)
        log_quota_write(lines, LEVEL_ERROR, 0, "process %d wrote to standard error: %.*s", (int)pid,
            (int)n, text);
}

/* Logs whole lines, and a line longer than the room. */
static void log_output_lines(struct output *output, struct log_quota *lines, pid_t pid)
{
    unsigned begin = 0;

    for (unsigned i = 0; i < output->n; i++)
        if (output->text[i] == '\n') {
            log_output_text(lines, pid, output->text + begin, i - begin);
            begin = i + 1;
        }
    if (begin == 0 && output->n == sizeof(output->text)) {
        log_output_text(lines, pid, output->text, output->n);
        begin = output->n;
    }
    output->n -= begin;
    memmove(output->text, output->text + begin, output->n);
}

bool logs_output_read(struct output *output, struct log_quota *lines, pid_t pid, bool all)
{
    unsigned most = all ? READS_AT_THE_END : READS_A_TURN;

    for (unsigned i = 0; i < most && output->fd != -1; i++) {
        ssize_t n = read(output->fd, output->text + output->n, sizeof(output->text) - output->n);

        if (n == -1 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (n > 0) {
            output->n += (unsigned)n;
            log_output_lines(output, lines, pid);
        } else {
            logs_output_close(output, lines, pid);
        }
    }
    return output->fd != -1;
}

void logs_output_close(struct output *output, struct log_quota *lines, pid_t pid)
{
    if (output->fd == -1)
        return;
    log_output_text(lines, pid, output->text, output->n); /* a line without its end */
    process_ops->wakeup_remove(output->fd);
    descriptor_close(output->fd);
    *output = (struct output) { .fd = -1 };
}
