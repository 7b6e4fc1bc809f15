/* SPDX-License-Identifier: BSD-2-Clause */
/* A build with the sanitizers. The leak sanitizer checks at the end of a worker: it forks a process
 * that shares the worker's memory and stops the worker by ptrace(). Reports contain source lines,
 * which are read from the binary, and go to the file that the environment names. */
#include "process/sanitized.h"

#include "base/compiler.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

const char *const sanitized_calls[] = { "getdents64", "wait4", "sched_yield", NULL };
const unsigned sanitized_prctls[] = { PR_SET_DUMPABLE, PR_SET_PTRACER, PR_SET_PDEATHSIG, 0 };
const unsigned sanitized_ptraces[] = { PTRACE_ATTACH, PTRACE_DETACH, PTRACE_CONT, PTRACE_GETREGS,
    PTRACE_GETREGSET, PTRACE_PEEKUSER, PTRACE_GETFPREGS, 0 };
const bool sanitized_clones = true;

static char binary[PATH_MAX], reports[PATH_MAX];

/* The environment is the daemon's, and empties soon. */
__attribute__((constructor)) static void store_report_paths(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    const char *path = options != NULL ? strstr(options, "log_path=") : NULL;
    ssize_t n = readlink("/proc/self/exe", binary, sizeof(binary) - 1);

    if (n > 0)
        dirname(binary);
    if (path == NULL)
        return;
    path += strlen("log_path=");
    snprintf(reports, sizeof(reports), "%.*s", (int)strcspn(path, ":"), path);
    dirname(reports);
}

const char *sanitized_path(unsigned i, bool write)
{
    const char *const read[] = { "/proc", "/usr", "/lib", "/lib64", binary, NULL };

    if (write)
        return i == 0 && *reports != '\0' ? reports : NULL;
    return i < countof(read) ? read[i] : NULL;
}
