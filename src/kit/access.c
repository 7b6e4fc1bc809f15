/* SPDX-License-Identifier: BSD-2-Clause */
/* The access log of a test: the daemon's own, by directives that the kit adds to the test's
 * configuration, in a file in memory. Never there where the test has no format for it. */
#include "kit/script.h"

#include "os/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/forkbeard-test/access"

void kit_access_open(fb_test *test)
{
    test->access_fd = -1;
    if (test->options.log_format != NULL)
        test->access_fd = kit_file_create("", test->access_path);
}

void kit_access_close(fb_test *test)
{
    if (test->access_fd != -1)
        os_temporary_close(test->access_fd, test->access_path);
    free(test->accessed);
}

void kit_access_use(const fb_test *test, struct cycle *cycle)
{
    for (unsigned i = 0; i < cycle->core.other_log_n; i++) {
        struct log_target *target = cycle->core.other_logs[i];

        if (target->path != NULL && strcmp(target->path, PATH) == 0)
            target->fd = test->access_fd;
    }
}

/* Quotes the text for the configuration. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

char *kit_access_directives(const fb_test_options *options)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL)
        kit_misused("no memory for the configuration");
    if (options->log_format != NULL) {
        fputs("log_format forkbeard_test ", file);
        put_quoted(file, options->log_format);
        fputs(";\n    access_log " PATH " forkbeard_test;\n    ", file);
    }
    if (fclose(file) != 0)
        kit_misused("no memory for the configuration");
    return text;
}

const char *fb_test_access_log(fb_test *test)
{
    CHECK_KIND(test, KIT_TEST);
    if (test->access_fd == -1)
        kit_misused("fb_test_access_log(): the options have no log_format");
    fb_test_run(test);
    free(test->accessed);
    test->accessed = kit_file_read(test->access_fd);
    return test->accessed;
}

bool kit_run_has_line(struct kit_run *run, const fb_test_step *step, char **found)
{
    const char *line = fb_test_access_log(run->test) + run->logged;
    size_t n = strcspn(line, "\n");

    if (n == strlen(step->p) && line[n] == '\n' && memcmp(line, step->p, n) == 0) {
        run->logged += n + 1;
        return true;
    }
    *found = strndup(line, n);
    if (*found == NULL)
        kit_misused("no memory for a line of the access log");
    return false;
}
