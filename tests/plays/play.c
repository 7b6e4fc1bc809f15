/* SPDX-License-Identifier: BSD-2-Clause */
/* The play: directory, clock, and the choice of the next process. */
#include "plays/play_private.h"

#include "pidfile/pidfile.h"
#include "plays/client.h"
#include "plays/manager.h"
#include "plays/server.h"
#include "plays/whole.h"
#include "plays/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The clocks begin at odd values, so no clock is mistaken for another or for a duration. */
#define FIRST_MONO_MS 1000000
#define FIRST_WALL_MS 1795253400000 /* 2026-11-21 09:30:00 UTC */
#define PASSING_FD 200              /* the least descriptor of `passing` */
#define STEPS_MAX 100000            /* until all wait */

/* Keeps all threads of a play on one processor: to pass the turn on costs less. */
static void stay_on_one_processor(void)
{
    cpu_set_t all, one;
    int cpu = sched_getcpu();

    CPU_ZERO(&one);
    if (cpu < 0 || sched_getaffinity(0, sizeof(all), &all) == -1 || CPU_COUNT(&all) == 1)
        return;
    CPU_SET((unsigned)cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

struct play *play_create(uint64_t seed)
{
    struct play *play = calloc(1, sizeof(*play));

    test_require(play != NULL);
    test_require(play_now == NULL);
    stay_on_one_processor();
    strcpy(play->directory, "/dev/shm/fb-play-XXXXXX"); /* in memory, where that can be */
    if (mkdtemp(play->directory) == NULL) {
        strcpy(play->directory, "/tmp/fb-play-XXXXXX");
        test_require(mkdtemp(play->directory) != NULL);
    }
    snprintf(play->address, sizeof(play->address), "127.%d.%d.%d", getpid() >> 16 & 0x7f,
        getpid() >> 8 & 0xff, getpid() & 0xff);
    play->state = seed;
    play->last_pid = PLAY_FIRST_PID;
    play->clock.mono_ms = FIRST_MONO_MS;
    play->clock.wall_ms = FIRST_WALL_MS;
    play->clock.mono.tv_sec = FIRST_MONO_MS / 1000;
    TAILQ_INIT(&play->processes);
    TAILQ_INIT(&play->clients);
    TAILQ_INIT(&play->watches);
    play_network_open(play);
    play->arrivals = epoll_create1(EPOLL_CLOEXEC);
    test_require(play->arrivals != -1);
    test_require(sem_init(&play->turn, 0, 0) == 0);
    test_require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, play->passing) == 0);
    for (unsigned i = 0; i < 2; i++) { /* the first are for a service manager's sockets */
        int fd = fcntl(play->passing[i], F_DUPFD, PASSING_FD);

        test_require(fd != -1);
        close(play->passing[i]);
        play->passing[i] = fd;
    }
    play->environment = environ;
    play->signals = signals_state;
    play->notify = notify_state;
    play_now = play;
    process_ops = &play_ops;
    return play;
}

static void remove_directory(const struct play *play)
{
    DIR *directory = opendir(play->directory);
    struct dirent *entry;

    test_require(directory != NULL);
    while ((entry = readdir(directory)) != NULL)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    test_require(rmdir(play->directory) == 0);
}

void play_destroy(struct play *play)
{
    struct play_process *process;

    while ((process = TAILQ_FIRST(&play->processes)) != NULL) {
        if (!process->exited)
            play_process_exit(process, SIGKILL);
        play_process_forget(process);
    }
    play_client_close_all(play);
    play_manager_destroy(&play->manager);
    remove_directory(play);
    close(play->arrivals);
    play_network_close(play);
    close(play->passing[0]);
    close(play->passing[1]);
    sem_destroy(&play->turn);
    process_ops = &process_ops_system;
    play_now = NULL;
    free(play);
}

const char *play_path(const struct play *play, const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", play->directory, name);
    return path;
}

void play_write(struct play *play, const char *name, const char *text)
{
    FILE *file = fopen(play_path(play, name), "we");

    test_require(file != NULL);
    for (const char *p = text; *p != '\0'; p++) {
        bool is_directory = strncmp(p, "$D", 2) == 0, is_address = strncmp(p, "$A", 2) == 0;

        if (!is_directory && !is_address) {
            test_require(fputc(*p, file) != EOF);
            continue;
        }
        test_require(fputs(is_directory ? play->directory : play->address, file) >= 0);
        p++;
    }
    test_require(fclose(file) == 0);
}

char *play_read(const struct play *play, const char *name)
{
    FILE *file = fopen(play_path(play, name), "re");
    char *text = NULL;
    size_t n = 0;

    if (file == NULL || getdelim(&text, &n, '\0', file) == -1) {
        free(text);
        text = strdup("");
    }
    if (file != NULL)
        fclose(file);
    return text;
}

bool play_has_logged(const struct play *play, const char *text)
{
    char *log = play_read(play, "error.log"), *standard = play_read(play, "stderr");
    bool has = strstr(log, text) != NULL || strstr(standard, text) != NULL;

    free(log);
    free(standard);
    return has;
}

void play_configure(struct play *play, unsigned workers, const char *main, const char *stream)
{
    char *text;

    ck_assert_int_ne(asprintf(&text,
                         "daemon off;\nerror_log $D/error.log info;\npid $D/pid;\n"
                         "control unix:$D/control;\nsandbox off;\nworker_processes %u;\n%s\n"
                         "events { worker_connections 16; }\n"
                         "stream { server { listen unix:$D/socket; echo; } %s }\n",
                         workers, main, stream),
        -1);
    play_write(play, "conf", text);
    free(text);
}

/* The test's own environment, with additions by the service manager. */
static char **make_environment(const struct play_process *process)
{
    struct play *play = process->play;
    char **own = play_copy_list(play->environment), **all, **added = (char *[]) { NULL };
    size_t n = 0, more = 0;

    if (play->manager != NULL)
        added = play_manager_environment(play->manager, process->pid);
    while (own[n] != NULL)
        n++;
    while (added[more] != NULL)
        more++;
    all = realloc(own, (n + more + 1) * sizeof(*all));
    test_require(all != NULL);
    memcpy(all + n, added, (more + 1) * sizeof(*all));
    return all;
}

struct play_process *play_start(struct play *play)
{
    struct play_process *process = play_process_create(play, NULL, PROCESS_BINARY);

    process->is_master = process->kept = true;
    process->environment = make_environment(process);
    play_process_begin(process);
    return process;
}

void play_signal_from(struct play_process *process, int number, pid_t sender)
{
    play_process_signal(process, number, sender);
}

void play_signal(struct play_process *process, int number)
{
    play_process_signal(process, number, 1);
}

void play_kill(struct play_process *process, int number)
{
    if (process->exited)
        return;
    process->pending[SIGKILL] = number;
    process->stopped = false;
}

/* Forgets processes that were reaped. */
static void forget_reaped(struct play *play)
{
    struct play_process *process, *next;

    TAILQ_FOREACH_SAFE (process, &play->processes, link, next)
        if (process->exited && process->parent == NULL && !process->kept)
            play_process_forget(process);
}

/* Finds a process that would run, from a random start on, or a killed process; NULL: all wait. */
static struct play_process *find_runnable(struct play *play)
{
    struct play_process *process = TAILQ_FIRST(&play->processes), *first;
    unsigned n = 0;

    TAILQ_FOREACH (first, &play->processes, link) {
        if (!first->exited && first->pending[SIGKILL] != 0)
            return first;
        n++;
    }
    first = process;
    for (uint32_t i = n > 0 ? random_below(&play->state, n) : 0; i > 0; i--)
        first = TAILQ_NEXT(first, link);
    for (process = first; n > 0; n--) {
        if (play_process_is_runnable(process))
            return process;
        process = TAILQ_NEXT(process, link);
        if (process == NULL)
            process = TAILQ_FIRST(&play->processes);
    }
    return NULL;
}

bool play_step(struct play *play)
{
    struct play_process *process;

    forget_reaped(play);
    play_watch_step(play);
    process = find_runnable(play);
    if (process == NULL)
        return play_client_step(play) || (play->server != NULL && play_server_step(play->server)) ||
               (play->manager != NULL && play_manager_step(play->manager, play->latest));
    play->steps++;
    play->latest = process->pid;
    play_process_run(process);
    if (play->manager != NULL)
        play_manager_step(play->manager, play->latest);
    return true;
}

void play_settle(struct play *play)
{
    unsigned steps = 0;

    while (play_step(play))
        if (++steps == STEPS_MAX)
            ck_abort_msg("processes do not come to rest: process %d ran last", (int)play->latest);
}

/* Moves the clock to this moment. */
static void set_clock(struct play *play, uint64_t ms)
{
    struct clock *clock = &play->clock;

    test_require(ms >= clock->mono_ms);
    if (play->passes != NULL && ms > clock->mono_ms)
        play->passes(play, ms - clock->mono_ms);
    clock->wall_ms += (int64_t)(ms - clock->mono_ms);
    clock->mono_ms = ms;
    clock->mono.tv_sec = (time_t)(ms / 1000);
    clock->mono.tv_nsec = (long)(ms % 1000) * 1000000;
}

/* The earliest deadline to come of all processes; UINT64_MAX: there is none. */
static uint64_t find_deadline(const struct play *play)
{
    const struct play_process *process;
    uint64_t earliest = UINT64_MAX;

    TAILQ_FOREACH (process, &play->processes, link) {
        uint64_t deadline = play_process_deadline(process);

        if (deadline > play->clock.mono_ms && deadline < earliest)
            earliest = deadline;
    }
    return earliest;
}

bool play_pass_to_deadline(struct play *play)
{
    uint64_t deadline;

    play_settle(play);
    deadline = find_deadline(play);
    if (deadline == UINT64_MAX)
        return false;
    set_clock(play, deadline);
    play_settle(play);
    return true;
}

void play_pass(struct play *play, uint64_t ms)
{
    uint64_t end = play->clock.mono_ms + ms;

    for (;;) {
        uint64_t deadline;

        play_settle(play);
        deadline = find_deadline(play);
        if (deadline > end)
            break;
        set_clock(play, deadline);
    }
    set_clock(play, end);
    play_settle(play);
}

struct play_process *play_find(const struct play *play, pid_t pid)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->pid == pid)
            return process;
    return NULL;
}

struct play_process *play_find_kind(const struct play *play, enum process_kind kind)
{
    struct play_process *process, *found = NULL;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->kind == kind && !process->exited)
            found = process;
    return found;
}

struct play_process *play_main(const struct play *play)
{
    pid_t pid = pidfile_peek_pid(play_path(play, "pid"));
    struct play_process *process = pid > 0 ? play_find(play, pid) : NULL;

    return process != NULL && !process->exited ? process : NULL;
}

unsigned play_count_workers(const struct play *play)
{
    const struct play_process *process;
    unsigned n = 0;

    TAILQ_FOREACH (process, &play->processes, link)
        n += process->kind == PROCESS_WORKER && !process->exited;
    return n;
}

unsigned play_count_masters(const struct play *play)
{
    const struct play_process *process;
    unsigned n = 0;

    TAILQ_FOREACH (process, &play->processes, link)
        n += process->is_master && !process->exited;
    return n;
}

unsigned play_count_descriptors(const struct play_process *process)
{
    char path[64];
    DIR *directory;
    unsigned n = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/fd", (int)process->thread_id);
    directory = opendir(path);
    test_require(directory != NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        n += *entry->d_name != '.';
    closedir(directory);
    return n;
}

int play_exit_code(const struct play_process *process)
{
    test_require(process->exited);
    return WIFEXITED(process->status) ? WEXITSTATUS(process->status)
                                      : 128 + WTERMSIG(process->status);
}

/* Whether the address sanitizer looks for leaks at the program's end: a killed process leaves its
 * memory, freed by the kernel in a real process. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}
