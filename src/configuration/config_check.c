/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a configuration check in a child, which logs the mistakes of the configuration. The parent
 * logs only a crash, exit or delay of the child, with the module or protocol at fault. */
#include "configuration/config_check.h"

#include "base/clock.h"
#include "base/json.h"
#include "configuration/logs.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "process/process_ops.h"
#include "process/signals.h"
#include "settings/check.h"
#include "tls/files.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>

/* Certificates that -t shows. */
#define CERTIFICATES_SHOWN 64

static void add_log(struct descriptors *allowed, const struct log *log)
{
    for (; log != NULL; log = log->also)
        for (unsigned i = 0; i < log->target_n; i++)
            descriptors_add_target(allowed, &log->targets[i]);
}

/* Unloads the modules, to report errors of destructors too. */
static void unload_modules(struct cycle *cycle, struct check_progress *progress)
{
    const struct module *module;

    while ((module = SLIST_FIRST(&cycle->modules)) != NULL) {
        check_progress_enter(
            progress, NULL, "while it was unloaded", "module \"%s\"", module->path);
        module_unload(&cycle->modules);
        check_progress_leave(progress);
    }
}

/* Whether all files of certificates and keys can be opened; false after a line of each mistake. */
static bool open_certificates(const struct config_check *check, const struct tls_profiles *profiles)
{
    bool all = true;

    for (uint32_t i = 0; i < profiles->file_n; i++) {
        int fd = profiles->files[i].appends ? -1 : tls_file_open(profiles, i);

        if (profiles->files[i].appends)
            continue;
        if (fd == -1)
            log_write(check->log, LEVEL_EMERG, errno, "cannot open \"%s\" in %s",
                profiles->files[i].path, profiles->files[i].at);
        all = all && fd != -1;
        descriptor_close(fd);
    }
    return all;
}

/* Logs a certificate of the engine's report. */
static void note_certificate(
    const struct tls_profiles *profiles, struct json_value row, struct log *log)
{
    int64_t index = json_integer(json_member(row, "certificate"), -1);
    time_t end = (time_t)json_integer(json_member(row, "not_after"), 0);
    char names[TLS_REPORT_TEXT], date[32] = "-";
    struct tm tm;

    assert(index >= 0 && index < profiles->file_n); /* a report of this process */
    json_text(json_member(row, "names"), names, sizeof(names));
    if (gmtime_r(&end, &tm) != NULL)
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
    log_write(log, LEVEL_NOTICE, 0, "certificate \"%s\" of %s is valid until %s",
        profiles->files[index].path, names[0] != '\0' ? names : "no name", date);
}

/* Logs the first of all certificates, which are good, and how many there are. */
static void note_certificates(const struct tls_engine_ops *ops, struct tls_engine *engine,
    const struct tls_files *files, struct log *log)
{
    size_t n;
    char *text = ops->report != NULL ? ops->report(engine, &n) : NULL;
    struct json_value report, row = { NULL, 0 };
    unsigned shown = 0;

    if (text == NULL)
        return;
    report = json_member(json_parse(text, n), "certificates");
    while (shown < CERTIFICATES_SHOWN && (row = json_next(report, row)).text != NULL) {
        note_certificate(files->profiles, row, log);
        shown++;
    }
    if (files->profiles->pair_n > shown)
        log_write(
            log, LEVEL_NOTICE, 0, "%u certificates more are good", files->profiles->pair_n - shown);
    free(text);
}

/* The engine of TLS tries certificates and keys: all of them for -t, and for a start the first.
 * False after a line of each mistake. */
static bool check_certificates(const struct config_check *check, const struct cycle *cycle)
{
    struct tls_files files = tls_files_own(&cycle->tls);
    struct tls_engine *engine;

    if (cycle->tls.n == 0)
        return true;
    files.quiet = !check->options.testing; /* an engine that serves tells of ends */
    if (check->options.testing)
        files.tried = UINT_MAX;
    else if (cycle->tls.pair_n > files.tried && !open_certificates(check, &cycle->tls))
        return false;
    engine = cycle->engine->create(&files, check->log);
    if (engine == NULL)
        return false;
    if (check->options.shows_certificates)
        note_certificates(cycle->engine, engine, &files, check->log);
    cycle->engine->destroy(engine);
    return true;
}

/* Detaches from the parent. Frees the cycle too: in a simulation the memory stays. */
static NORETURN void check_in_child(void *arg)
{
    struct config_check *check = arg;
    int code = EXIT_SUCCESS;
    struct cycle *cycle;

    process_ops->reset_handlers();
    process_ignore_pipe();
    if (process_ops->parent() != check->parent)
        process_ops->exit(EXIT_FAILURE);
    descriptors_close_others(&check->allowed);
    process_ops->set_title("configuration check", "");
    cycle = cycle_load(&check->options, check->log, check->excerpts);
    if (cycle != NULL && check->asks)
        config_check_names(cycle, check->known, check->log, check->excerpts);
    if (cycle == NULL || !check_certificates(check, cycle))
        code = log_exit_code(check->log);
    if (cycle != NULL)
        unload_modules(cycle, check->progress);
    cycle_destroy(&cycle);
    check->progress->done = true;
    logs_finish(check->log);
    process_ops->exit(code);
}

static bool is_crash(int number)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

    for (size_t i = 0; i < countof(numbers); i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static int report_outcome(
    const struct check_progress *progress, bool late, int status, const char *conf, struct log *log)
{
    bool foreign = progress->foreign;
    const char *who = foreign ? progress->who : "the process that checks the configuration";
    const char *when = foreign ? progress->when : "during the check";
    const char *where = foreign ? progress->where : "";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (progress->done && WIFEXITED(status)) {
        if (WEXITSTATUS(status) == EXIT_SUCCESS)
            return 0;
        log_note_failure(log, WEXITSTATUS(status) == EX_TEMPFAIL);
        return -1;
    }
    if (late)
        log_write(log, LEVEL_EMERG, 0, "%s did not finish %s: the time limit is %d seconds%s", who,
            when, CONFIG_CHECK_MS / 1000, where);
    else if (number != 0)
        log_write(log, LEVEL_EMERG, 0, "%s %s %s: signal %d (%s)%s", who,
            is_crash(number) ? "crashed" : "was ended", when, number, strsignal(number), where);
    else
        log_write(
            log, LEVEL_EMERG, 0, "%s exited %s: code %d%s", who, when, WEXITSTATUS(status), where);
    if (!foreign)
        log_write(log, LEVEL_EMERG, 0, "configuration file %s could not be checked", conf);
    return -1;
}

void config_check_done(struct config_check *check)
{
    assert(check->pid == 0 && check->progress == NULL);
    check_answers_destroy(&check->answers);
}

/* Forgets a child that has gone, or never was, except for answers. */
static void forget_child(struct config_check *check)
{
    if (check->progress != NULL)
        munmap(check->progress, sizeof(*check->progress));
    descriptors_done(&check->allowed);
    *check = (struct config_check) { .answers = check->answers };
}

/* Makes the shared memory, and notes the descriptors to be kept; -1 without memory. */
static int prepare_child(struct config_check *check)
{
    struct check_progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (progress == MAP_FAILED)
        return -1;
    check->options.progress = check->progress = progress;
    check->options.answers = check->answers = check_answers_create();
    descriptors_add(&check->allowed, check->excerpts);
    add_log(&check->allowed, check->log);
    if (check->known != NULL)
        descriptors_add(&check->allowed, check->known->segment.fd);
    return check->answers == NULL || check->allowed.failed ? -1 : 0;
}

int config_check_begin(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts)
{
    const char *failure = "no memory to check the configuration";

    assert(check->pid == 0 && check->progress == NULL && check->answers == NULL);
    check->options = *options;
    check->log = log;
    check->excerpts = excerpts;
    check->parent = process_ops->self();
    if (prepare_child(check) == 0) {
        failure = "fork() failed while checking the configuration";
        check->pid = process_ops->fork(PROCESS_CHECK, check_in_child, check);
    }
    if (check->pid > 0) {
        /* the checking child writes there, and no worker that is forked meanwhile */
        os_inherited_never(check->progress, sizeof(*check->progress));
        check_answers_keep_private(check->answers);
        return 0;
    }
    log_write(log, LEVEL_EMERG, errno, "%s", failure);
    forget_child(check);
    config_check_done(check);
    return -1;
}

void config_check_kill(struct config_check *check)
{
    assert(check->pid > 0);
    check->late = true;
    process_ops->kill(check->pid, SIGKILL);
}

void config_check_cancel(struct config_check *check)
{
    if (check->pid == 0)
        return;
    config_check_kill(check);
    process_ops->reap(check->pid, NULL, true); /* at once; else it could outlive us */
    forget_child(check);
    config_check_done(check);
}

int config_check_end(struct config_check *check, int status, const char *conf, struct log *log)
{
    int verdict;

    assert(check->pid > 0 && check->progress != NULL);
    verdict = report_outcome(check->progress, check->late, status, conf, log);
    forget_child(check);
    if (verdict == -1)
        config_check_done(check);
    return verdict;
}

/* Waits for the process itself: foreign code may close any descriptor. */
static int wait_for_child(struct config_check *check)
{
    int handle = process_ops->handle_open(check->pid);
    struct clock clock = { .mono_ms = 0 };
    uint64_t deadline;
    int status = EXIT_FAILURE << 8; /* unless reap() gives another */

    process_ops->read_clock(&clock);
    deadline = clock.mono_ms + CONFIG_CHECK_MS;
    while (process_ops->reap(check->pid, &status, false) == 0) {
        process_ops->read_clock(&clock);
        if (!check->late && clock.mono_ms >= deadline)
            config_check_kill(check);
        process_ops->handle_wait(handle, 100);
    }
    if (handle != -1)
        process_ops->handle_close(handle);
    return status;
}

int config_check_run(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts)
{
    if (config_check_begin(check, options, log, excerpts) == -1)
        return -1;
    return config_check_end(check, wait_for_child(check), options->conf, log);
}
