/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays: acts of steps, a quarter with disturbances. */
#include "plays/random.h"

#include "plays/random_private.h"
#include "plays/worker.h"

#define LOG_SHOWN 16000 /* bytes of the error log shown by a failure */

static void show_process(const struct play_process *process)
{
    const struct play_worker *worker = process->worker;

    fprintf(stderr, "%s process %d, parent %d%s%s", process->is_master ? "master" : "worker",
        (int)process->pid, process->parent != NULL ? (int)process->parent->pid : 1,
        process->exited ? ", exited" : "", process->stopped ? ", stopped" : "");
    if (worker != NULL)
        fprintf(stderr, ", phase %d, sessions %u%s%s", worker->phase, worker->session_n,
            worker->deaf ? ", deaf" : "", worker->stuck ? ", stuck" : "");
    fprintf(stderr, "\n");
}

NORETURN void random_give_up(const struct random_play *random, const char *what)
{
    const struct play_process *process;
    char *log = play_read(random->play, "error.log");
    size_t n = strlen(log);

    fprintf(stderr, "%s\n", n > LOG_SHOWN ? log + n - LOG_SHOWN : log);
    free(log);
    TAILQ_FOREACH (process, &random->play->processes, link)
        show_process(process);
    ck_abort_msg("seed %llu, act %u, step %u, after \"%s\": %s",
        (unsigned long long)random->options->seed, random->act, random->step, random->last, what);
    abort();
}

static void run_act(struct random_play *random)
{
    struct play *play = random->play;

    random->last = "start";
    if (play_count_masters(play) == 0 || random->may_end) {
        random_end(random);
        random_start(random);
    }
    play->forked = random_worker_forked;
    play->called = random_call_made;
    random->lost = false;
    for (random->step = 0; random->step < random->options->steps; random->step++) {
        if (play_count_masters(play) == 0 && play_count_workers(play) == 0)
            break;
        if (!random_one_in(random, 4)) {
            if (play_step(play))
                continue;
            random_check_moment(random);
            if (play_pass_to_deadline(play))
                continue;
        }
        random_disturb(random);
    }
    random_rest(random);
}

unsigned long random_play(const struct random_play_options *options)
{
    static struct tls_profile list[1];
    static const struct tls_profiles profiles = { .list = list, .n = 1 };
    struct random_play random = { .options = options, .last = "" };
    unsigned long steps;

    random.play = play_create(options->seed);
    random.play->arg = &random;
    random.play->tls = options->keepers ? &profiles : NULL;
    for (random.act = 0; random.act < options->acts; random.act++)
        run_act(&random);
    random.last = "end";
    random_end(&random);
    steps = random.play->steps;
    play_destroy(random.play);
    return steps;
}
