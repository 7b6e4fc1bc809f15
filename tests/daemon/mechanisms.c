/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the binary under test for its event mechanisms once, before the tests are made. */
#include "daemon/mechanisms.h"

#include "daemon/proc.h"
#include "event/loop.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABEL "event mechanisms: "

static char line[256]; /* the line of -V, cut into names */
static const char *names[MECHANISMS_MAX];
static int name_n;

/* The list is needed before a test runs, where check's assertions cannot be used. */
static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "mechanisms: %s\n", what);
    exit(EXIT_FAILURE);
}

static void read_version(void)
{
    const char *binary = getenv("FORKBEARD"), *wrapper = getenv("FORKBEARD_WRAPPER");
    char command[1024];
    FILE *output;

    snprintf(command, sizeof(command), "%s '%s' -V 2>&1", wrapper != NULL ? wrapper : "",
        binary != NULL ? binary : DAEMON_PATH);
    output = popen(command, "re");
    require(output != NULL, "the binary cannot be run");
    while (fgets(line, sizeof(line), output) != NULL && strncmp(line, LABEL, strlen(LABEL)) != 0)
        ;
    require(strncmp(line, LABEL, strlen(LABEL)) == 0, "-V says nothing of event mechanisms");
    while (fgetc(output) != EOF)
        ;
    require(pclose(output) == 0, "-V fails");
}

static void parse_line(void)
{
    char *rest = line + strlen(LABEL), *name;

    line[strcspn(line, "\n")] = '\0';
    while ((name = strsep(&rest, " ")) != NULL) {
        const struct mechanism *mechanism = mechanism_find(name);

        if (mechanism != NULL && !mechanism_available(mechanism))
            continue;
        require(name_n < MECHANISMS_MAX, "there are too many");
        names[name_n++] = name;
    }
    require(name_n > 0, "this kernel has none");
}

int mechanisms_count(void)
{
    if (name_n == 0) {
        read_version();
        parse_line();
    }
    return name_n;
}

const char *mechanisms_name(int i)
{
    require(i < mechanisms_count(), "there are not so many");
    return names[i];
}

const struct mechanism *mechanisms_used(void)
{
    const char *name = getenv("FORKBEARD_TEST_USE");
    const struct mechanism *mechanism = mechanism_find(name != NULL && *name != '\0' ? name : NULL);

    require(mechanism != NULL, "there is none of the name in FORKBEARD_TEST_USE");
    return mechanism;
}

unsigned mechanisms_bounded(unsigned n)
{
    uint32_t most = mechanisms_used()->descriptors_max;

    return most != 0 && most < n ? most : n;
}

unsigned mechanisms_descriptors(void)
{
    unsigned before = proc_descriptors(getpid()), n;
    struct log log = { .level = LEVEL_EMERG };
    struct loop_options options = {
        .mechanism = mechanisms_used(),
        .mechanism_values = mechanism_defaults(mechanisms_used()),
        .slots = 1,
        .stride = sizeof(struct source),
        .log = &log,
    };
    struct loop loop;
    sigset_t mask;

    sigprocmask(SIG_BLOCK, NULL, &mask);
    options.wait_mask = &mask;
    require(loop_init(&loop, &options) == 0, "no loop can be made");
    n = proc_descriptors(getpid()) - before;
    loop_done(&loop);
    return n;
}

bool mechanisms_is_unfiltered(const char *name)
{
    const struct mechanism *mechanism = mechanism_find(name);

    return mechanism != NULL && mechanism->unfiltered;
}

const char *mechanisms_asked_for(const char *text)
{
    const char *name = getenv("FORKBEARD_TEST_USE");

    if (name == NULL || *name == '\0' || strstr(text, " use ") != NULL)
        return NULL;
    return mechanisms_is_unfiltered(name) && strstr(text, "sandbox strict") != NULL ? NULL : name;
}
