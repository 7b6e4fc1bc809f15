# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# A test may put a simulation in the place of the system: what is asked about processes, signals and time
# goes through process_ops (process/process_ops.h), and the master, the pool and the upgrade use
# descriptors by functions of lower floors. The folder of the control socket keeps calls about its own
# descriptors.

# A worker ends by exit() for the sake of modules that have asked for atexit(); a simulation has other
# workers.
without_process_ops='
    src/pool/start.c exit
'

check_system_calls() {
    {
        echo "$without_process_ops"
        facts FW src/master src/pool src/upgrade src/control src/process src/pidfile src/channel src/configuration src/systemd
    } | awk '
    function breach(i, why) {
        print path[i] ":" line[i] ": calls " word[i] "(), " why
    }
    # Files of process/ that are the system of process_ops.
    function is_real(path) {
        sub(/^src\/process\//, "", path)
        return path ~ /^process_ops\.c$/
    }
    function list(set, text,   n, i) {
        n = split(text, calls, " ")
        for (i = 1; i <= n; i++)
            set[calls[i]] = 1
    }
    BEGIN {
        list(asks, "fork vfork execl execle execlp execv execve execvp execvpe fexecve exit _exit _Exit " \
            "wait waitid waitpid wait3 wait4 kill killpg raise getpid getppid gettid signal sigaction " \
            "sigprocmask sigpending sigsuspend sigqueue sigwait sigwaitinfo sigtimedwait alarm setitimer " \
            "timer_create timer_settime sleep usleep nanosleep clock_nanosleep pause select pselect " \
            "ppoll time clock_gettime gettimeofday")
        list(uses, "close read pread readv write pwrite writev open openat creat fcntl ioctl dup dup2 " \
            "dup3 pipe pipe2 socket socketpair bind listen connect accept accept4 poll send sendto " \
            "sendmsg recv recvfrom recvmsg shutdown getsockname getpeername getsockopt setsockopt stat " \
            "lstat fstat memfd_create ftruncate mmap munmap unlink rename umask")
    }
    $1 ~ /^src\// {
        exempt[$1, $2] = 1
    }
    $1 == "F" {
        own[$2, $5] = 1
    }
    $1 == "W" && $4 && $2 ~ /\.c$/ {
        path[++called] = $2
        word[called] = $3
        line[called] = $4
    }
    END {
        for (i = 1; i <= called; i++) {
            if ((path[i], word[i]) in exempt || (path[i], word[i]) in own || is_real(path[i]))
                continue
            if (word[i] in asks)
                breach(i, "and not what process_ops has for it")
            else if (word[i] ~ /^((os_)?wakeup_[a-z]+|os_handle_[a-z_]+|os_proc_(read|is_stopped|usage|runs)|title_set|clock_read)$/)
                breach(i, "and not through process_ops")
            else if (word[i] in uses && path[i] ~ /^src\/(master|pool|upgrade)\//)
                breach(i, "which a function of a lower floor should do")
        }
    }' | sort
}
