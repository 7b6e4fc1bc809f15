/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a configuration check in a child process. The child logs the mistakes of the configuration
 * itself. The parent logs only that the child crashed, exited or took too long, and names the
 * module or protocol whose code ran. */
#include "process/config_check.h"

#include "base/clock.h"
#include "os/memory.h"
#include "process/descriptors.h"
#include "process/name_check.h"
#include "process/process_ops.h"
#include "process/signals.h"
#include "settings/check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>

/* Memory that the child is given. The parent frees it once it has reaped the child. */
struct config_child {
    struct cycle_options options;
    struct log *log;
    int excerpts;
    struct descriptors allowed; /* descriptors that it keeps */
    bool asks;
    const struct zone *known;
    pid_t parent;
};

static void add_log(struct descriptors *allowed, const struct log *log)
{
    for (; log != NULL; log = log->also)
        descriptors_add_targets(allowed, log->targets, log->target_n);
}

/* Unloads the modules, so that what a destructor does wrong is reported too. */
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

/* Detaches the child from its parent: no signal handler of the parent's role is left, and the
 * child does not outlive the parent. */
static void become_child(pid_t parent)
{
    signals_reset();
    process_ignore_pipe();
    if (process_ops->parent() != parent)
        process_ops->exit(EXIT_FAILURE);
}

/* Frees the cycle too: in a simulation the child's memory does not go with it. */
static NORETURN void check_in_child(void *arg)
{
    struct config_child *child = arg;
    int code = EXIT_SUCCESS;
    struct cycle *cycle;

    become_child(child->parent);
    descriptors_close_others(&child->allowed);
    process_ops->set_title("configuration check", "");
    cycle = cycle_load(&child->options, child->log, child->excerpts);
    if (cycle != NULL && child->asks)
        name_check_run(cycle, child->known, child->log, child->excerpts);
    if (cycle != NULL)
        unload_modules(cycle, child->options.progress);
    else
        code = log_exit_code(child->log);
    cycle_destroy(&cycle);
    child->options.progress->done = true;
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

/* The child has gone, or was never there: its answers alone stay. */
static void forget_child(struct config_check *check)
{
    if (check->progress != NULL)
        munmap(check->progress, sizeof(*check->progress));
    if (check->child != NULL)
        descriptors_done(&check->child->allowed);
    free(check->child);
    *check = (struct config_check) { .answers = check->answers };
}

/* Makes the memory that the child is given; -1 without memory. */
static int prepare_child(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts)
{
    struct config_child *child = malloc(sizeof(*child));

    if (child == NULL)
        return -1;
    *child = (struct config_child) {
        .options = *options,
        .log = log,
        .excerpts = excerpts,
        .parent = process_ops->self(),
        .asks = check->asks,
        .known = check->known,
    };
    child->options.progress = check->progress;
    child->options.answers = check->answers;
    descriptors_add(&child->allowed, excerpts);
    add_log(&child->allowed, log);
    if (check->known != NULL)
        descriptors_add(&child->allowed, check->known->segment.fd);
    check->child = child;
    return child->allowed.failed ? -1 : 0;
}

static int fork_check(struct config_check *check)
{
    check->pid = process_ops->fork(PROCESS_CHECK, check_in_child, check->child);
    if (check->pid == -1)
        return -1;
    /* the checking child writes there, and no worker that is forked meanwhile */
    os_inherited_never(check->progress, sizeof(*check->progress));
    check_answers_keep_private(check->answers);
    return 0;
}

/* Makes the memory that is shared with the child; -1 with errno. */
static int share_memory(struct config_check *check)
{
    struct check_progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (progress == MAP_FAILED)
        return -1;
    check->progress = progress;
    check->answers = check_answers_create();
    return check->answers != NULL ? 0 : -1;
}

int config_check_begin(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts)
{
    int status = -1;

    assert(check->pid == 0 && check->progress == NULL && check->answers == NULL);
    if (share_memory(check) == -1 || prepare_child(check, options, log, excerpts) == -1) {
        log_write(log, LEVEL_EMERG, errno, "no memory to check the configuration");
    } else {
        status = fork_check(check);
        if (status == -1)
            log_write(log, LEVEL_EMERG, errno, "fork() failed while checking the configuration");
    }
    if (status == -1) {
        check->pid = 0;
        forget_child(check);
        config_check_done(check);
    }
    return status;
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

static uint64_t now_ms(void)
{
    struct clock clock = { .mono_ms = 0 };

    process_ops->read_clock(&clock);
    return clock.mono_ms;
}

/* Waits for the process itself: foreign code may close any descriptor. */
static int wait_for_child(struct config_check *check)
{
    int handle = process_ops->handle_open(check->pid);
    uint64_t deadline = now_ms() + CONFIG_CHECK_MS;
    int status = EXIT_FAILURE << 8; /* unless reap() gives another */

    while (process_ops->reap(check->pid, &status, false) == 0) {
        if (!check->late && now_ms() >= deadline)
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
