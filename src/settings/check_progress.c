/* SPDX-License-Identifier: BSD-2-Clause */
/* Publishes the progress of a configuration check. The texts are written before the flag is set, so
 * that the parent process never reads the flag without its texts. */
#include "settings/check_progress.h"

#include "conf/conf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void check_progress_enter(struct check_progress *progress, const struct conf_word *word,
    const char *when, const char *who_format, ...)
{
    va_list args;

    if (progress == NULL)
        return;
    assert(!progress->foreign && !progress->done);
    va_start(args, who_format);
    vsnprintf(progress->who, sizeof(progress->who), who_format, args);
    va_end(args);
    snprintf(progress->when, sizeof(progress->when), "%s", when);
    progress->where[0] = '\0';
    if (word != NULL && word->file != NULL)
        snprintf(progress->where, sizeof(progress->where), " in %s:%u:%u", word->file->name,
            word->line, word->column);
    progress->foreign = true;
}

void check_progress_leave(struct check_progress *progress)
{
    if (progress != NULL)
        progress->foreign = false;
}
