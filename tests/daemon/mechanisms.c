/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/mechanisms.h"

#include "event/mechanism.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define LABEL "event mechanisms: "

static char line[256]; /* of the -V */
static const char *names[FB_MECHANISMS_MAX];
static int name_n;

static void read_version(void)
{
    const char *binary = getenv("FORKBEARD"), *wrapper = getenv("FORKBEARD_WRAPPER");
    char command[1024];
    FILE *output;

    snprintf(command, sizeof(command), "%s '%s' -V 2>&1", wrapper != NULL ? wrapper : "",
        binary != NULL ? binary : DAEMON_PATH);
    output = popen(command, "re");
    ck_assert_ptr_nonnull(output);
    while (fgets(line, sizeof(line), output) != NULL && strncmp(line, LABEL, strlen(LABEL)) != 0)
        ;
    ck_assert_msg(strncmp(line, LABEL, strlen(LABEL)) == 0, "-V says nothing of event mechanisms");
    while (fgetc(output) != EOF)
        ;
    ck_assert_int_eq(pclose(output), 0);
}

static void parse_line(void)
{
    char *rest = line + strlen(LABEL), *name;

    line[strcspn(line, "\n")] = '\0';
    while ((name = strsep(&rest, " ")) != NULL) {
        const struct fb_mechanism *mechanism = fb_mechanism_find(name);

        if (mechanism != NULL && !mechanism->available())
            continue;
        ck_assert_int_lt(name_n, FB_MECHANISMS_MAX);
        names[name_n++] = name;
    }
    ck_assert_int_gt(name_n, 0);
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
    ck_assert_int_lt(i, mechanisms_count());
    return names[i];
}
