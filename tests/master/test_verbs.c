/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest times in the table of verbs of forkbeard(8): an obstacle stands in a verb's way for
 * as long as possible, and the verb takes no longer than the row says (tests/daemon/verbs.def). */
#include "base/compiler.h"
#include "plays/case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 800
#define PROBATION_MS 1000
#define TIMEOUTS "worker_start_timeout 800ms; worker_shutdown_timeout 800ms;"

static uint64_t begun_ms;

static void never_ready(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

static void ready_late(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->start_ms = TIMEOUT_MS - 1;
}

static struct play *start(void)
{
    return case_start(2, TIMEOUTS, "");
}

/* Deafens the workers of the latest generation; a worker has a session. */
static void deafen(struct play *play)
{
    ck_assert_ptr_nonnull(play_connect(play));
    play_settle(play);
    for (unsigned i = 0; i < 2; i++)
        play_worker_find(play, i)->deaf = true;
}

/* The verb is given now. */
static void begin(struct play *play)
{
    begun_ms = play->clock.mono_ms;
}

/* Passes time until the verb's client has a reply. */
static void finish_command(struct play *play, const struct play_client *client)
{
    while (!client->replied)
        ck_assert(play_pass_to_deadline(play));
}

/* Gives a command with new workers that are never ready. */
static void fail_command(struct play *play, const char *control, const char *command)
{
    struct play_client *client;

    begin(play);
    play->forked = never_ready;
    client = case_command_to(play, control, command);
    finish_command(play, client);
    ck_assert(!play_client_is_ok(client));
}

/* Starts a process with workers that are never ready. */
static void fail_start(struct play *play)
{
    begin(play);
    play->forked = never_ready;
    ck_assert_int_ne(case_pass_to_exit(play_start(play)), 0);
}

/* Ends a process whose workers hear nothing, by a signal or a command. */
static void end_process(struct play_process *process, int number, const char *command)
{
    begin(process->play);
    if (command != NULL)
        case_command(process->play, command);
    else
        play_signal(process, number);
    case_pass_to_exit(process);
}

/* The rows */

static struct play *take_start(void)
{
    struct play *play = play_create(1);

    play_configure(play, 2, TIMEOUTS, "");
    fail_start(play);
    return play;
}

static struct play *take_reload(void)
{
    struct play *play = start();

    fail_command(play, "control", "reload");
    return play;
}

#define take_failed_reload take_reload

/* The workers are ready and crash as late as possible, and the workers of the way back are late
 * too. */
static struct play *take_crashing_reload(void)
{
    struct play *play = start();
    struct play_client *client;

    begin(play);
    play->forked = ready_late;
    client = case_command(play, "reload");
    play_pass(play, TIMEOUT_MS - 1 + PROBATION_MS - 1);
    for (unsigned i = 0; i < 2; i++)
        play_worker_crash(play_worker_find(play, i), SIGSEGV);
    finish_command(play, client);
    case_expect_failure(client, "has crashed within");
    return play;
}

static struct play *take_quit(void)
{
    struct play *play = start();

    deafen(play);
    end_process(play_main(play), SIGQUIT, NULL);
    return play;
}

/* Begins a quit, which a session holds up; returns the name of the control socket. */
static const char *begin_quit(struct play *play)
{
    static char name[64];

    snprintf(name, sizeof(name), "control.quit.%d", (int)play_main(play)->pid);
    play_worker_find(play, 0)->keeps_sessions = play_worker_find(play, 1)->keeps_sessions = true;
    ck_assert_ptr_nonnull(play_connect(play));
    play_settle(play);
    case_expect_ok(case_command(play, "quit"));
    return name;
}

static struct play *take_start_after_quit(void)
{
    struct play *play = start();

    begin_quit(play);
    fail_start(play);
    return play;
}

static struct play *take_resume(void)
{
    struct play *play = case_start(2, "worker_start_timeout 800ms;", "");

    fail_command(play, begin_quit(play), "resume");
    return play;
}

static struct play *take_leave(void)
{
    struct play *play = start();

    deafen(play);
    end_process(play_main(play), 0, "leave");
    return play;
}

static struct play *take_stop(void)
{
    struct play *play = start();

    deafen(play);
    end_process(play_main(play), SIGTERM, NULL);
    return play;
}

static struct play *take_winch(void)
{
    struct play *play = start();

    deafen(play);
    begin(play);
    play_signal(play_main(play), SIGWINCH);
    while (play_count_workers(play) > 0)
        ck_assert(play_pass_to_deadline(play));
    return play;
}

/* A command line reports the time of waiting for a reply, read by tests/daemon/test_verbs.c. */
#define take_reopen NULL
#define take_drain_server NULL
#define take_log_level NULL

static struct play *take_upgrade(void)
{
    struct play *play = start();

    fail_command(play, "control", "upgrade");
    return play;
}

#define take_failed_upgrade take_upgrade

static struct play *take_forward(void)
{
    struct play *play = start();
    struct play_process *old = play_main(play);

    deafen(play);
    case_upgrade(play);
    end_process(old, SIGQUIT, NULL);
    return play;
}

static struct play *take_back(void)
{
    struct play *play = start();
    struct play_process *new = case_upgrade(play);

    deafen(play);
    end_process(new, SIGQUIT, NULL);
    return play;
}

static struct play *take_kill_worker(void)
{
    struct play *play = start();

    begin(play);
    play_signal(play_worker_find(play, 0)->process, SIGKILL);
    case_pass_to_fork(play);
    return play;
}

/* Whole workers are left, including a worker with a session. */
static struct play *take_kill_master(void)
{
    struct play *play = play_create(1);

    play->whole_workers = true;
    play_configure(play, 2, TIMEOUTS, "");
    case_serve(play);
    ck_assert_ptr_nonnull(play_connect(play));
    play_settle(play);
    begin(play);
    play_signal(play_main(play), SIGKILL);
    play_settle(play);
    while (play_count_workers(play) > 0)
        ck_assert(play_pass_to_deadline(play));
    return play;
}

static const struct {
    const char *id, *most;
    struct play *(*take)(void); /* gives the verb, with workers delaying the end */
} rows[] = {
#define VERB(id, name, clients, sessions, unit, most, back) { #id, most, take_##id },
#define VERB_UNIT(...)
#include "daemon/verbs.def"
};

/* A time such as "worker_start_timeout and 5 s". */
static uint64_t most_ms(const char *most)
{
    uint64_t ms = 0;

    for (const char *part = most; part != NULL;) {
        char *end;
        unsigned long seconds = strtoul(part, &end, 10);

        ck_assert_msg(strncmp(part, "worker_", 7) == 0 || strncmp(end, " s", 2) == 0,
            "\"%s\" is no time", part);
        ms += end == part ? TIMEOUT_MS : seconds * 1000;
        part = strstr(part, " and ");
        part = part == NULL ? NULL : part + strlen(" and ");
    }
    return ms;
}

START_TEST(test_verb_takes_no_longer)
{
    bool waits = strstr(rows[_i].most, "worker_") != NULL;
    struct play *play;
    uint64_t took;

    if (rows[_i].take == NULL)
        return;
    play = rows[_i].take();
    took = play->clock.mono_ms - begun_ms;
    ck_assert_msg(took <= most_ms(rows[_i].most) && (!waits || took >= TIMEOUT_MS),
        "%s has taken %d ms", rows[_i].id, (int)took);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_verb_takes_no_longer, 0, countof(rows));
}

TEST_MAIN("verbs", add_tests)
