/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/rehearse.h"

#include "process/signals.h"
#include "process/title.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 60
#define KEPT_MAX 64

/* How a rehearsal ended. */
struct end {
    int status; /* as of waitpid() */
    bool late;  /* it was killed */
};

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

static void keep_log(struct kept *kept, const struct fb_log *log)
{
    for (; log != NULL; log = log->also)
        for (unsigned i = 0; i < log->target_n; i++)
            keep(kept, log->targets[i].fd);
}

/* Sockets, channels, locks: none of them is to outlive the master by us. */
static void close_others(const struct fb_log *log, int excerpts, int alive)
{
    struct kept kept = { .n = 0 };
    int next = 0;

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        keep(&kept, fd);
    keep(&kept, excerpts);
    keep(&kept, alive);
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
    const struct fb_module *module;

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

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The other end of `alive` is closed when the child ends, or by its foreign code. */
static struct end wait_for(pid_t pid, int alive)
{
    int64_t deadline = now_ms() + DEADLINE_S * 1000;
    struct pollfd open = { .fd = alive, .events = POLLIN };
    struct end end = { .status = EXIT_FAILURE << 8 }; /* unless it says better */

    while (waitpid(pid, &end.status, WNOHANG) == 0) {
        if (!end.late && now_ms() >= deadline) {
            end.late = true;
            kill(pid, SIGKILL);
        }
        if (poll(&open, 1, open.fd != -1 ? 100 : 1) > 0)
            open.fd = -1;
    }
    return end;
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
    const struct end *end, const struct fb_progress *progress, const char *conf, struct fb_log *log)
{
    bool foreign = progress->foreign;
    const char *who = foreign ? progress->who : "the process that checks the configuration";
    const char *when = foreign ? progress->when : "at its work";
    const char *where = foreign ? progress->where : "";
    int number = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;

    if (progress->done && WIFEXITED(end->status))
        return WEXITSTATUS(end->status) == EXIT_SUCCESS ? 0 : -1;
    if (end->late)
        fb_log(log, FB_EMERG, 0, "%s did not come to an end %s: it was given %d seconds%s", who,
            when, DEADLINE_S, where);
    else if (number != 0)
        fb_log(log, FB_EMERG, 0, "%s %s %s: signal %d (%s)%s", who,
            is_crash(number) ? "crashed" : "was ended", when, number, strsignal(number), where);
    else
        fb_log(log, FB_EMERG, 0, "%s exited %s: code %d%s", who, when, WEXITSTATUS(end->status),
            where);
    if (!foreign)
        fb_log(log, FB_EMERG, 0, "configuration file %s could not be checked", conf);
    return -1;
}

static int run(const struct fb_cycle_options *options, struct fb_log *log, int excerpts)
{
    pid_t parent = getpid(), pid;
    int alive[2];
    struct end end;

    if (pipe2(alive, O_CLOEXEC) == -1) {
        fb_log(log, FB_EMERG, errno, "pipe2() failed while checking the configuration");
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        part(parent);
        close_others(log, excerpts, alive[1]);
        rehearse(options, log, excerpts);
    }
    close(alive[1]);
    if (pid == -1)
        fb_log(log, FB_EMERG, errno, "fork() failed while checking the configuration");
    else
        end = wait_for(pid, alive[0]);
    close(alive[0]);
    return pid == -1 ? -1 : judge(&end, options->progress, options->conf, log);
}

int fb_cycle_rehearse(const struct fb_cycle_options *options, struct fb_log *log, int excerpts)
{
    struct fb_cycle_options own = *options;
    int status;

    own.progress = mmap(
        NULL, sizeof(*own.progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own.progress == MAP_FAILED) {
        fb_log(log, FB_EMERG, errno, "no memory to check the configuration");
        return -1;
    }
    status = run(&own, log, excerpts);
    munmap(own.progress, sizeof(*own.progress));
    return status;
}
