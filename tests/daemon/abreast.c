/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks the parts. Their notes lie in memory shared with the test. */
#include "daemon/abreast.h"

#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 64
#define REPORT 4000
#define HANGS_MS (TEST_TIMEOUT_S * 1000 * 5 / 6) /* a part, before the test's own end */

struct note {
    char doing[200];
    char why[600]; /* "": a check of the harness has failed, and said why */
};

struct part {
    pid_t pid; /* 0: none runs */
    int64_t begun_ms;
    struct note *note;
};

static struct note lone_note; /* the note of a test without parts */
static struct note *own_note = &lone_note;

void abreast_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(own_note->doing, sizeof(own_note->doing), format, args);
    va_end(args);
}

void abreast_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(own_note->why, sizeof(own_note->why), format, args);
    va_end(args);
    if (own_note == &lone_note)
        ck_abort_msg("%s: %s", own_note->doing, own_note->why);
    _exit(1);
}

static void begin_part(struct part *part, unsigned i, void (*run)(void *arg, unsigned i), void *arg)
{
    memset(part->note, 0, sizeof(*part->note));
    part->begun_ms = now_ms();
    part->pid = fork();
    ck_assert_int_ne(part->pid, -1);
    if (part->pid != 0)
        return;
    own_note = part->note;
    run(arg, i);
    _exit(0);
}

/* Whether the part has ended well, or runs; else its note has the reason. */
static bool check_part(struct part *part)
{
    int status;

    if (waitpid(part->pid, &status, WNOHANG) == 0) {
        if (now_ms() - part->begun_ms <= HANGS_MS)
            return true;
        snprintf(part->note->why, sizeof(part->note->why), "hangs");
        kill(part->pid, SIGKILL);
        waitpid(part->pid, &status, 0);
        part->pid = 0;
        return false;
    }
    part->pid = 0;
    return status == 0;
}

static bool is_part(const struct part parts[ABREAST_MAX], pid_t pid)
{
    for (unsigned i = 0; i < ABREAST_MAX; i++)
        if (parts[i].pid == pid)
            return true;
    return false;
}

/* Ends the leftovers of a part: parts are the parents of all processes started by them. */
static void end_orphans(const struct part parts[ABREAST_MAX])
{
    pid_t children[CHILDREN_MAX];
    unsigned n, left;

    do {
        n = proc_children(getpid(), children, CHILDREN_MAX);
        left = 0;
        for (unsigned i = 0; i < n; i++)
            if (!is_part(parts, children[i])) {
                left++;
                kill(children[i], SIGKILL);
                waitpid(children[i], NULL, 0);
            }
    } while (left > 0);
}

/* Adds the note of a failed part. */
static void add_failure(char report[REPORT], const struct note *note)
{
    size_t n = strlen(report);

    snprintf(report + n, REPORT - n, "%s%s: %s", n > 0 ? "; " : "", note->doing, note->why);
}

void abreast_run(unsigned n, unsigned at_a_time, void (*part)(void *arg, unsigned i), void *arg)
{
    size_t size = ABREAST_MAX * sizeof(struct note);
    struct note *notes =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct part parts[ABREAST_MAX] = { { 0 } };
    char report[REPORT] = "";
    unsigned next = 0, running;

    ck_assert_uint_le(at_a_time, ABREAST_MAX);
    ck_assert_ptr_ne(notes, MAP_FAILED);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    do {
        running = 0;
        for (unsigned i = 0; i < at_a_time; i++) {
            parts[i].note = &notes[i];
            if (parts[i].pid != 0 && !check_part(&parts[i])) {
                add_failure(report, &notes[i]);
                end_orphans(parts);
            }
            if (parts[i].pid == 0 && next < n)
                begin_part(&parts[i], next++, part, arg);
            running += parts[i].pid != 0;
        }
        pause_briefly();
    } while (running > 0);
    if (report[0] != '\0') {
        fprintf(stderr, "%s\n", report); /* a check within a part may have printed another line */
        ck_abort_msg("%s", report);
    }
    munmap(notes, size);
}
