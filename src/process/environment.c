/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fb_process_fill_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
            return -1;
    return 0;
}

/* Sets NAME=value, or NAME with its inherited value. */
static int set_variable(const char *text, char **inherited)
{
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    char *name = strndup(text, length);
    int status = 0;

    if (name == NULL)
        return -1;
    if (equals != NULL)
        status = setenv(name, equals + 1, 1);
    for (char **e = inherited; equals == NULL && *e != NULL; e++)
        if (strncmp(*e, name, length) == 0 && (*e)[length] == '=')
            status = setenv(name, *e + length + 1, 1);
    free(name);
    return status;
}

int fb_process_environment(const struct fb_core_settings *core, struct fb_log *log)
{
    char **inherited = environ;
    int status;

    environ = NULL; /* the strings stay where they are, for the lines below */
    status = set_variable("TZ", inherited);
    for (unsigned i = 0; i < core->env_n && status == 0; i++)
        status = set_variable(core->env[i], inherited);
    if (status == -1)
        fb_log(log, FB_EMERG, errno, "the environment could not be set");
    return status;
}

int fb_process_background(int *ready, struct fb_log *log)
{
    int ends[2];
    char byte;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) == -1) {
        fb_log(log, FB_EMERG, errno, "pipe2() failed");
        return -1;
    }
    pid = fork();
    if (pid == -1) {
        fb_log(log, FB_EMERG, errno, "fork() failed");
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (pid > 0) {
        close(ends[1]);
        /* a byte: it serves; the end: it has died, and has said why */
        _exit(read(ends[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(ends[0]);
    *ready = ends[1];
    log->pid = getpid();
    if (setsid() == -1) {
        fb_log(log, FB_EMERG, errno, "setsid() failed");
        return -1;
    }
    umask(0);
    return 0;
}

void fb_process_background_done(int ready, bool keep_stderr)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (ready == -1)
        return;
    for (int fd = 0; fd <= STDERR_FILENO && null != -1; fd++)
        if (fd != STDERR_FILENO || !keep_stderr)
            dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
    /* nobody waits any more if this fails */
    if (write(ready, "", 1) == -1)
        errno = 0;
    close(ready);
}
