/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a daemon without further disturbances: an ended daemon has left nothing, and in a running
 * one all commands, starts and drains have ended. Then a reload of a plain configuration leads to a
 * fixed state after any history: one generation, one worker, no deadline, and as many descriptors
 * as after the first start. */
#include "os/descriptor.h"
#include "os/directory_watch.h"
#include "plays/client.h"
#include "plays/play_private.h"
#include "plays/random_private.h"
#include "plays/worker.h"

#include <dirent.h>
#include <unistd.h>

#define REST_MS 130000 /* in which everything begun must have ended */

/* Returns the line of a grave failure of a call, which none was made to fail for; or NULL. */
static char *find_failure(const char *log)
{
    const char *line = log, *end;

    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char *text = strndup(line, (size_t)(end - line));

        if ((strstr(text, "[alert]") != NULL || strstr(text, "[emerg]") != NULL ||
                strstr(text, "[error]") != NULL) &&
            strstr(text, "failed (") != NULL)
            return text;
        free(text);
    }
    return NULL;
}

/* Checks the log since the rest before. */
static void check_log(struct random_play *random)
{
    char *log = play_read(random->play, "error.log"), *line;
    size_t n = strlen(log);

    line = find_failure(log + random->logged);
    /* a second master process, or workers left by a killed master, may have an address */
    if (line != NULL && random->play->failed_calls == 0 && !random->meddled && !random->upgraded &&
        random->play->killed_masters == 0) {
        random->last = line;
        random_give_up(random, "a call has failed");
    }
    free(line);
    free(log);
    random->logged = n;
}

/* Stops the disturbances: calls succeed, and sessions end. */
static void calm(struct random_play *random)
{
    struct play *play = random->play;
    struct play_process *process;

    memset(&play->failures, 0, sizeof(play->failures));
    play->forked = NULL;
    play->called = NULL;
    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL)
            process->worker->keeps_sessions = false;
}

/* Workers do nothing wrong any more. */
static void recover(struct random_play *random)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &random->play->processes, link) {
        if (process->stopped)
            play_signal(process, SIGCONT);
        if (process->worker != NULL && !process->exited)
            play_worker_recover(process->worker);
    }
}

static void check_control(const struct random_play *random)
{
    const struct play_client *client;

    TAILQ_FOREACH (client, &random->play->clients, link)
        if (client->of_control && !client->replied && !client->ended)
            random_give_up(random, "a client of the control socket waits for ever");
}

static void check_clients(const struct random_play *random)
{
    const struct play_client *client;

    TAILQ_FOREACH (client, &random->play->clients, link) {
        if (client->replied || client->of_control || random->may_end)
            continue;
        if (!client->ended && !random->may_not_accept)
            random_give_up(random, "a client waits for ever");
        if (client->ended && !random->lost)
            random_give_up(random, "a client was lost");
    }
}

void random_check_moment(const struct random_play *random)
{
    const struct play_process *process;

    TAILQ_FOREACH (process, &random->play->processes, link)
        if (process->exited && process->parent != NULL && process->parent->is_master &&
            !process->parent->exited && !process->parent->stopped)
            random_give_up(random, "a process that has exited is not reaped");
}

static void check_processes(const struct random_play *random)
{
    struct play *play = random->play;
    const struct play_process *process;

    random_check_moment(random);
    TAILQ_FOREACH (process, &play->processes, link) {
        if (process->worker != NULL && process->worker->wronged)
            random_give_up(random, "a worker that had done nothing wrong was killed");
    }
    if (random->may_end || random->upgraded || random->meddled)
        return;
    if (play_count_masters(play) != 1 || play_main(play) == NULL)
        random_give_up(random, "there is not one master process, named by the pid file");
    if (!random->may_not_accept && play_count_workers(play) == 0)
        random_give_up(random, "there is no worker");
}

/* Whether files are looked at now and then, for lack of events of directories. */
static bool looks_at_files(const struct random_play *random)
{
    int watch = os_directory_watch_open();

    descriptor_close(watch);
    return random->options->keepers && watch == -1;
}

/* Reloads a plain configuration, and checks for leftovers. */
static void check_plain(struct random_play *random)
{
    struct play *play = random->play;
    struct play_process *master = play_main(play);
    struct play_client *client;
    unsigned n;

    play_client_close_all(play);
    play_configure(play, 1, "worker_watchdog off;", "");
    play_signal(master, SIGHUP);
    play_pass(play, REST_MS);
    client = play_control(play, "control", "reload");
    play_pass(play, REST_MS);
    if (client == NULL || !play_client_is_ok(client))
        random_give_up(random, "a plain reload fails");
    client = play_connect(play);
    play_settle(play);
    if (client == NULL || !client->replied)
        random_give_up(random, "a client is not served");
    play_client_close_all(play);
    play_settle(play);
    if (play_count_workers(play) != (random->options->keepers ? 2 : 1))
        random_give_up(random, "there is not one worker");
    if (play_process_deadline(master) != 0 && !looks_at_files(random))
        random_give_up(random, "a timer runs in a quiet daemon");
    n = play_count_descriptors(master) - master->inherited;
    if (random->descriptors == 0)
        random->descriptors = n;
    if (n != random->descriptors) {
        fprintf(stderr, "%u descriptors, not %u\n", n, random->descriptors);
        random_give_up(random, "descriptors were leaked");
    }
    random->may_not_accept = false;
}

void random_rest(struct random_play *random)
{
    struct play *play = random->play;

    calm(random);
    if (random_one_in(random, 2)) { /* deadlines decide about workers without recovery */
        play_pass(play, REST_MS);
        check_control(random);
    }
    recover(random);
    play_pass(play, REST_MS);
    check_control(random);
    check_clients(random);
    check_log(random);
    check_processes(random);
    if (!random->may_end && !random->upgraded && !random->meddled)
        check_plain(random);
}

/* Whether the file is the play's own. */
static bool is_own(const char *name)
{
    return *name == '.' || strcmp(name, "conf") == 0 || strcmp(name, "stderr") == 0 ||
           strcmp(name, "error.log") == 0;
}

static void check_files(struct random_play *random)
{
    struct play *play = random->play;
    DIR *directory = opendir(play->directory);
    const struct dirent *entry;

    while ((entry = readdir(directory)) != NULL) {
        if (is_own(entry->d_name))
            continue;
        if (play->killed_masters == 0 && !random->meddled) {
            random->last = entry->d_name;
            random_give_up(random, "a file is left");
        }
        unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    play->killed_masters = 0;
}

void random_end(struct random_play *random)
{
    struct play *play = random->play;
    struct play_process *process;

    play_client_close_all(play);
    for (unsigned tries = 0; play_count_masters(play) > 0; tries++) {
        if (tries == 4)
            random_give_up(random, "the daemon does not end");
        TAILQ_FOREACH (process, &play->processes, link)
            if (process->is_master && !process->exited)
                play_signal(process, SIGINT);
        play_pass(play, 20000);
    }
    play_pass(play, 70000); /* workers of a killed master process let sessions end */
    if (play_count_workers(play) > 0)
        random_give_up(random, "a worker is left");
    check_log(random);
    check_files(random);
}

void random_start(struct random_play *random)
{
    struct play *play = random->play;

    random->may_end = random->may_not_accept = random->upgraded = random->meddled = false;
    random->faults = random_one_in(random, 2);
    play->failed_calls = 0;
    play->forked = NULL;
    play->called = NULL;
    play_configure(play, 1, "worker_watchdog off;", "");
    play_start(play);
    play_settle(play);
    if (play_main(play) == NULL)
        random_give_up(random, "the daemon does not start");
    check_plain(random);
}
