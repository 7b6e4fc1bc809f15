/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits on the virtual clock alone: a case that waits in vain fails. */
#include "plays/case.h"

#include "base/json.h"
#include "pool/exit.h"

#include <dirent.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LONGEST_MS 600000

void case_serve(struct play *play)
{
    play_start(play);
    play_settle(play);
    ck_assert_ptr_nonnull(play_main(play));
}

struct play *case_start(unsigned workers, const char *main, const char *stream)
{
    struct play *play = play_create(1);

    play_configure(play, workers, main, stream);
    case_serve(play);
    return play;
}

struct play_client *case_command_to(struct play *play, const char *control, const char *command)
{
    struct play_client *client = play_control(play, control, command);

    ck_assert_msg(client != NULL, "nobody listens on %s", control);
    play_settle(play);
    return client;
}

struct play_client *case_command(struct play *play, const char *command)
{
    return case_command_to(play, "control", command);
}

void case_reload_of(struct play *play, const char *control)
{
    struct play_client *client = case_command_to(play, control, "reload");

    play_pass(play, POOL_PROBATION_MS);
    case_expect_ok(client);
    play_client_close(play, client);
}

void case_reload(struct play *play)
{
    case_reload_of(play, "control");
}

void case_expect_ok(const struct play_client *client)
{
    ck_assert_msg(play_client_is_ok(client), "reply: %s", client->line);
}

void case_expect_failure(const struct play_client *client, const char *text)
{
    ck_assert_msg(client->replied && !play_client_is_ok(client), "reply: %s", client->line);
    ck_assert_msg(strstr(client->line, text) != NULL, "no \"%s\" in %s", text, client->line);
}

void case_expect_waiting(const struct play_client *client)
{
    ck_assert_msg(!client->replied && !client->ended, "reply: %s", client->line);
}

bool case_has(const struct play *play, const char *name)
{
    return access(play_path(play, name), F_OK) == 0;
}

void case_expect_nothing(struct play *play)
{
    DIR *directory = opendir(play->directory);

    ck_assert_uint_eq(play_count_masters(play), 0);
    ck_assert_uint_eq(play_count_workers(play), 0);
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (*entry->d_name != '.' && strcmp(entry->d_name, "conf") != 0 &&
            strcmp(entry->d_name, "stderr") != 0 && strcmp(entry->d_name, "error.log") != 0)
            ck_abort_msg("%s is left", entry->d_name);
    closedir(directory);
}

bool case_is_served(struct play *play)
{
    struct play_client *client = play_connect(play);
    bool served;

    if (client == NULL)
        return false;
    play_settle(play);
    served = client->replied;
    play_client_close(play, client);
    return served;
}

void case_signal(struct play_process *process, int number)
{
    play_signal(process, number);
    play_settle(process->play);
}

struct play_process *case_upgrade(struct play *play)
{
    const struct play_process *old = play_main(play);
    struct play_process *new;

    case_expect_ok(case_command(play, "upgrade"));
    new = play_main(play);
    ck_assert(new != NULL &&new != old);
    new->kept = true;
    return new;
}

struct play_process *case_find_other(const struct play_process *master)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &master->play->processes, link)
        if (process->is_master && !process->exited && process != master)
            return process;
    return NULL;
}

void case_expect_alone(const struct play_process *master)
{
    struct play *play = master->play;

    ck_assert_uint_eq(play_count_masters(play), 1);
    ck_assert_ptr_eq(play_main(play), master);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status(play, "upgrade"), "null");
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert(case_is_served(play));
}

/* Element number `i` of an array. */
static struct json_value find_element(struct json_value array, unsigned i)
{
    struct json_value element = json_next(array, (struct json_value) { NULL, 0 });

    for (; i > 0 && element.text != NULL; i--)
        element = json_next(array, element);
    return element;
}

static struct json_value find_value(struct json_value value, const char *path)
{
    char name[64];

    for (size_t n; *path != '\0' && value.text != NULL; path += n + (path[n] == '.')) {
        n = strcspn(path, ".");
        ck_assert_uint_lt(n, sizeof(name));
        memcpy(name, path, n);
        name[n] = '\0';
        value = *value.text == '[' ? find_element(value, (unsigned)atoi(name))
                                   : json_member(value, name);
    }
    return value;
}

const char *case_status_of(struct play *play, const char *control, const char *path)
{
    static char text[1024];
    struct play_client *client = case_command_to(play, control, "status");
    struct json_value value;

    case_expect_ok(client);
    value = find_value(json_parse(client->line, client->n - 1), path);
    text[0] = '\0';
    if (value.text != NULL && !json_text(value, text, sizeof(text)))
        snprintf(text, sizeof(text), "%.*s", (int)value.n, value.text);
    play_client_close(play, client);
    return text;
}

const char *case_status(struct play *play, const char *path)
{
    return case_status_of(play, "control", path);
}

unsigned case_generation(struct play *play)
{
    char path[64];

    for (unsigned i = 0;; i++) {
        snprintf(path, sizeof(path), "generations.%u.state", i);
        if (*case_status(play, path) == '\0')
            return 0;
        if (strcmp(case_status(play, path), "live") != 0)
            continue;
        snprintf(path, sizeof(path), "generations.%u.number", i);
        return (unsigned)atoi(case_status(play, path));
    }
}

void case_expect_deaths(struct play *play, const char *cause, unsigned n)
{
    char path[64];

    for (unsigned i = 0; i < POOL_DEATHS; i++) {
        const char *name = pool_deaths[i].name;
        unsigned expected = name != NULL && strcmp(name, cause) == 0 ? n : 0;

        if (name == NULL)
            continue;
        snprintf(path, sizeof(path), "deaths.%s", name);
        ck_assert_msg((unsigned)atoi(case_status(play, path)) == expected, "%s: %s, not %u", path,
            case_status(play, path), expected);
    }
}

uint64_t case_pass_to_fork(struct play *play)
{
    uint64_t begin = play->clock.mono_ms;
    pid_t last = play->last_pid;

    play_settle(play);
    while (play->last_pid == last)
        if (!play_pass_to_deadline(play) || play->clock.mono_ms > begin + LONGEST_MS)
            ck_abort_msg("no process is forked");
    return play->clock.mono_ms - begin;
}

uint64_t case_pass_to_exit(struct play_process *process)
{
    struct play *play = process->play;
    uint64_t begin = play->clock.mono_ms;

    process->kept = true;
    play_settle(play);
    while (!process->exited)
        if (!play_pass_to_deadline(play) || play->clock.mono_ms > begin + LONGEST_MS)
            ck_abort_msg("process %d does not exit", (int)process->pid);
    return play->clock.mono_ms - begin;
}

struct play_process *case_step_to_fork(struct play *play, enum process_kind kind)
{
    struct play_process *before = play_find_kind(play, kind), *process;

    while ((process = play_find_kind(play, kind)) == before || process == NULL)
        if (!play_step(play))
            ck_abort_msg("no such process is forked");
    return process;
}

int case_listen(const struct play *play, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    test_require(fd != -1);
    strcpy(address.sun_path, play_path(play, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}
