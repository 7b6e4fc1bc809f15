/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets up the standard descriptors, the environment variables, the title and the background
 * process. Each function runs once, at the start, before threads and workers exist; only the title
 * changes later, by setproctitle() of libbsd, which overwrites the memory of argv and environ. */
#include "process/environment.h"

#include "os/descriptor.h"
#include "process/process_ops.h"

#include <assert.h>
#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* length of argv[0]; 0: process_init_title() was not called, and titles stay */
static int title_width;
static const char *title_arguments = ""; /* arguments; the caller's */

int process_fill_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return -1;
    return 0;
}

char **process_copy_list(char *const *list)
{
    size_t n = 0, bytes = 0;
    char **copy, *text;

    for (; list != NULL && list[n] != NULL; n++)
        bytes += strlen(list[n]) + 1;
    copy = malloc((n + 1) * sizeof(*copy) + bytes);
    if (copy == NULL)
        return NULL;
    text = (char *)(copy + n + 1);
    for (size_t i = 0; i < n; i++) {
        copy[i] = text;
        text = stpcpy(text, list[i]) + 1;
    }
    copy[n] = NULL;
    return copy;
}

/* Sets NAME=value, or NAME with its inherited value. */
static int inherit_variable(const char *text, char **before)
{
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    char *name = strndup(text, length);
    int status = 0;

    if (name == NULL)
        return -1;
    if (equals != NULL)
        status = setenv(name, equals + 1, 1);
    for (char **e = before; equals == NULL && *e != NULL; e++)
        if (strncmp(*e, name, length) == 0 && (*e)[length] == '=')
            status = setenv(name, *e + length + 1, 1);
    free(name);
    return status;
}

int process_set_environment(const struct core_settings *core, struct log *log)
{
    char **before = process_copy_list(environ);
    int status = before == NULL || clearenv() != 0 ? -1 : inherit_variable("TZ", before);

    for (unsigned i = 0; i < core->env_n && status == 0; i++)
        status = inherit_variable(core->env[i], before);
    if (status == -1)
        log_write(log, LEVEL_EMERG, errno, "the environment could not be set");
    tzset(); /* workers, which open no file, inherit the zone */
    free(before);
    return status;
}

void process_init_title(int argc, char **argv)
{
    assert(argc > 0);
    title_width = (int)strlen(argv[0]);
    setproctitle_init(argc, argv, environ);
}

void process_set_title(const char *role, const char *arguments)
{
    if (arguments != NULL)
        title_arguments = arguments;
    if (title_width == 0)
        return;
    /* libbsd leaves a stray dot after a title that is shorter than argv[0] was */
    setproctitle("%s %-*s", role, title_width, title_arguments);
}

void process_ready_tell(int end, unsigned char code)
{
    if (end != -1 && write(end, &code, 1) == -1)
        errno = 0;
    descriptor_close(end);
}

int process_ready_wait(int end)
{
    unsigned char code;
    ssize_t n = read(end, &code, 1);

    close(end);
    return n == 1 ? code : EXIT_FAILURE;
}

/* The parent waits for its child when start_daemon() has the pid. */
static void wait_elsewhere(void *arg, pid_t child)
{
    (void)arg;
    (void)child;
}

pid_t process_enter_background(int *ready, struct log *log)
{
    int ends[2];
    pid_t pid;

    if (process_ops->self() == 1) {
        log_write(log, LEVEL_EMERG, 0,
            "the first process of a container cannot go into the background, because the container "
            "would end: set \"daemon off\"");
        return -1;
    }
    if (descriptor_pipe(ends, 0) == -1) {
        log_write(log, LEVEL_EMERG, errno, "pipe() failed");
        return -1;
    }
    pid = process_ops->fork_heir(wait_elsewhere, NULL);
    if (pid == -1) {
        log_write(log, LEVEL_EMERG, errno, "fork() failed");
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (pid > 0) {
        close(ends[1]);
        *ready = ends[0];
        return pid;
    }
    close(ends[0]);
    *ready = ends[1];
    log->pid = process_ops->self();
    if (setsid() == -1) {
        log_write(log, LEVEL_EMERG, errno, "setsid() failed");
        return -1;
    }
    umask(0);
    return 0;
}

void process_detach(unsigned kept)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= STDERR_FILENO && null != -1; fd++)
        if ((kept & 1u << fd) == 0)
            dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}

void process_background_done(int ready, unsigned kept)
{
    if (ready == -1)
        return;
    process_detach(kept);
    process_ready_tell(ready, EXIT_SUCCESS);
}
