/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary of a play: what main() does for a start of the daemon. */
#include "plays/play_private.h"

#include "master/start.h"
#include "process/environment.h"
#include "protocols/table.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

void play_close_on_exec(void)
{
    DIR *directory = opendir("/proc/thread-self/fd");
    struct dirent *entry;
    int fds[256];
    unsigned n = 0;

    test_require(directory != NULL);
    while ((entry = readdir(directory)) != NULL) {
        int fd = atoi(entry->d_name);

        if (*entry->d_name != '.' && fd != dirfd(directory) && n < countof(fds) &&
            (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
            fds[n++] = fd;
    }
    closedir(directory);
    while (n > 0)
        close(fds[--n]);
}

/* Standard output and error are a file of the play's. */
static void open_standard(const struct play *play)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/stderr", play->directory);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    test_require(fd != -1);
    test_require(dup2(fd, STDOUT_FILENO) != -1);
    test_require(dup2(fd, STDERR_FILENO) != -1);
    close(fd);
}

/* Adds unknown state to the state handed over by the process before. */
static void spoil_state(struct play *play)
{
    const char *state = getenv(EXEC_STATE_VARIABLE);
    char *spoilt;

    if (play->failures.state == 0 || state == NULL)
        return;
    play->failures.state--;
    test_require(asprintf(&spoilt, "%s:x3", state) > 0);
    test_require(setenv(EXEC_STATE_VARIABLE, spoilt, 1) == 0);
    free(spoilt);
}

int play_image(struct play_process *process)
{
    struct play *play = process->play;
    char *argv[] = { (char[]) { "/forkbeard" }, NULL }, conf[128], pid[128], error_log[128];
    const char *const *environment = (const char *const *)process_copy_list(environ);
    struct cycle_options options = {
        .conf = conf,
        .pid = pid,
        .error_log = error_log,
        .module_directory = play->directory,
        .environment = environment,
        .protocols = protocols_builtin,
        .features = play_features(),
        .engine = &play_engine,
    };
    struct log_target standard_error;
    struct binary binary;
    struct log log;
    int code;

    open_standard(play);
    spoil_state(play);
    snprintf(conf, sizeof(conf), "%s/conf", play->directory);
    snprintf(pid, sizeof(pid), "%s/pid", play->directory);
    snprintf(error_log, sizeof(error_log), "%s/error.log", play->directory);
    log_init_plain(&log, &standard_error, "forkbeard");
    test_require(environment != NULL);
    test_require(binary_remember(&binary, argv, environment) == 0);
    code = start_daemon(&options, &binary, &log, argv);
    binary_forget(&binary);
    free((void *)environment);
    return code;
}
