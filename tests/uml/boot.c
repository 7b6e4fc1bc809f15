/* SPDX-License-Identifier: BSD-2-Clause */
/* The init of a User-Mode Linux on the host's files: mounts, the loopback interface, the modules of
 * MODULES, and a script, SCRIPT, whose exit code is the last line. */
#define _GNU_SOURCE /* reboot() */
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd == -1 || ioctl(fd, SIOCSIFFLAGS, &request) == -1)
        perror("the loopback interface");
    close(fd);
}

/* Loads modules in the order of their names in the list; a missing module shows later. */
static void load_modules(char *list)
{
    for (char *path = strtok(list, " "); path != NULL; path = strtok(NULL, " ")) {
        int fd = open(path, O_RDONLY);

        if (fd == -1 || syscall(SYS_finit_module, fd, "", 0) == -1)
            perror(path);
        close(fd);
    }
}

int main(void)
{
    const char *script = getenv("SCRIPT");
    char *modules = getenv("MODULES");
    int status = 127 << 8;
    pid_t pid;

    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("run", "/run", "tmpfs", 0, NULL);
    raise_loopback();
    if (modules != NULL)
        load_modules(modules);
    pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", script, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(-1, &status, 0) != pid) /* orphans, too */
        ;
    printf("exit code %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    fflush(stdout);
    reboot(RB_POWER_OFF);
    return 1;
}
