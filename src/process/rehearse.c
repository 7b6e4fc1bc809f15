/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/rehearse.h"

#include "base/clock.h"
#include "process/signals.h"
#include "process/title.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_S 60
#define KEPT_MAX 64

/* Descriptors that the child keeps, in their order. */
struct kept {
    int fds[KEPT_MAX];
    unsigned n;
};

static void keep(struct kept *kept, int fd)
{
    unsigned i = kept->n;

    if (fd == -1 || kept->n == KEPT_MAX)
        return;
    for (; i > 0 && kept->fds[i - 1] > fd; i--)
        kept->fds[i] = kept->fds[i - 1];
    kept->fds[i] = fd;
    kept->n++;
}

static void keep_target(struct kept *kept, const struct fb_log_target *target)
{
    keep(kept, target->fd);
    if (target->journal)
        keep(kept, target->journal_fd);
}

static void keep_log(struct kept *kept, const struct fb_log *log)
{
    for (; log != NULL; log = log->also)
        for (unsigned i = 0; i < log->target_n; i++)
            keep_target(kept, &log->targets[i]);
}

/* Sockets, channels, locks: none of them is to outlive the master by us. */
static void close_others(const struct fb_log *log, int excerpts)
{
    struct kept kept = { .n = 0 };
    int next = 0;

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        keep(&kept, fd);
    keep(&kept, excerpts);
    keep_log(&kept, log);
    for (unsigned i = 0; i < kept.n; i++) {
        if (kept.fds[i] > next)
            close_range((unsigned)next, (unsigned)kept.fds[i] - 1, 0);
        next = kept.fds[i] + 1;
    }
    close_range((unsigned)next, ~0u, 0);
}

/* What a destructor does is told too. */
static void unload(struct fb_cycle *cycle, struct fb_progress *progress)
{
    const struct module *module;

    while ((module = SLIST_FIRST(&cycle->modules)) != NULL) {
        fb_progress_enter(progress, NULL, "while it was unloaded", "module \"%s\"", module->path);
        fb_module_unload(&cycle->modules);
        fb_progress_leave(progress);
    }
}

static FB_NORETURN void rehearse(
    const struct fb_cycle_options *options, struct fb_log *log, int excerpts)
{
    struct fb_cycle *cycle;

    fb_title_set("configuration check", "");
    cycle = fb_cycle_load(options, log, excerpts);
    if (cycle != NULL)
        unload(cycle, options->progress);
    options->progress->done = true;
    _exit(cycle != NULL ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* A process of its own: no handler of the role's, and gone when its parent is. */
static void part(pid_t parent)
{
    fb_signals_reset();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
}

static bool is_crash(int number)
{
    static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

    for (size_t i = 0; i < fb_countof(numbers); i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static int judge(
    const struct fb_progress *progress, bool late, int status, const char *conf, struct fb_log *log)
{
    bool foreign = progress->foreign;
    const char *who = foreign ? progress->who : "the process that checks the configuration";
    const char *when = foreign ? progress->when : "at its work";
    const char *where = foreign ? progress->where : "";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (progress->done && WIFEXITED(status))
        return WEXITSTATUS(status) == EXIT_SUCCESS ? 0 : -1;
    if (late)
        fb_log(log, FB_EMERG, 0, "%s did not come to an end %s: it was given %d seconds%s", who,
            when, DEADLINE_S, where);
    else if (number != 0)
        fb_log(log, FB_EMERG, 0, "%s %s %s: signal %d (%s)%s", who,
            is_crash(number) ? "crashed" : "was ended", when, number, strsignal(number), where);
    else
        fb_log(log, FB_EMERG, 0, "%s exited %s: code %d%s", who, when, WEXITSTATUS(status), where);
    if (!foreign)
        fb_log(log, FB_EMERG, 0, "configuration file %s could not be checked", conf);
    return -1;
}

static uint64_t now_ms(void)
{
    struct fb_clock clock;

    fb_clock_read(&clock);
    return clock.mono_ms;
}

void fb_rehearsal_forget(struct fb_rehearsal *rehearsal)
{
    if (rehearsal->pid != 0)
        munmap(rehearsal->progress, sizeof(*rehearsal->progress));
    *rehearsal = (struct fb_rehearsal) { .pid = 0 };
}

int fb_rehearsal_begin(struct fb_rehearsal *rehearsal, const struct fb_cycle_options *options,
    struct fb_log *log, int excerpts)
{
    struct fb_cycle_options own = *options;
    pid_t parent = getpid();

    own.progress = mmap(
        NULL, sizeof(*own.progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own.progress == MAP_FAILED) {
        fb_log(log, FB_EMERG, errno, "no memory to check the configuration");
        return -1;
    }
    rehearsal->progress = own.progress;
    rehearsal->deadline_ms = now_ms() + DEADLINE_S * 1000;
    rehearsal->pid = fork();
    if (rehearsal->pid == 0) {
        part(parent);
        close_others(log, excerpts);
        rehearse(&own, log, excerpts);
    }
    if (rehearsal->pid != -1)
        return 0;
    fb_log(log, FB_EMERG, errno, "fork() failed while checking the configuration");
    fb_rehearsal_forget(rehearsal);
    return -1;
}

void fb_rehearsal_kill(struct fb_rehearsal *rehearsal)
{
    rehearsal->deadline_ms = 0;
    kill(rehearsal->pid, SIGKILL);
}

void fb_rehearsal_drop(struct fb_rehearsal *rehearsal)
{
    if (rehearsal->pid != 0) {
        fb_rehearsal_kill(rehearsal);
        waitpid(rehearsal->pid, NULL, 0); /* at once; else it could outlive us */
    }
    fb_rehearsal_forget(rehearsal);
}

int fb_rehearsal_end(
    struct fb_rehearsal *rehearsal, int status, const char *conf, struct fb_log *log)
{
    int outcome = judge(rehearsal->progress, rehearsal->deadline_ms == 0, status, conf, log);

    fb_rehearsal_forget(rehearsal);
    return outcome;
}

/* The process itself is waited for: foreign code may close any descriptor. */
static int wait_for(struct fb_rehearsal *rehearsal)
{
    struct pollfd ended = { .fd = pidfd_open(rehearsal->pid, 0), .events = POLLIN };
    int status = EXIT_FAILURE << 8; /* unless it says better */

    while (waitpid(rehearsal->pid, &status, WNOHANG) == 0) {
        if (rehearsal->deadline_ms != 0 && now_ms() >= rehearsal->deadline_ms)
            fb_rehearsal_kill(rehearsal);
        poll(&ended, 1, ended.fd != -1 ? 100 : 1);
    }
    if (ended.fd != -1)
        close(ended.fd);
    return status;
}

int fb_cycle_rehearse(const struct fb_cycle_options *options, struct fb_log *log, int excerpts)
{
    struct fb_rehearsal rehearsal;

    if (fb_rehearsal_begin(&rehearsal, options, log, excerpts) == -1)
        return -1;
    return fb_rehearsal_end(&rehearsal, wait_for(&rehearsal), options->conf, log);
}
