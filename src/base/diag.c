/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared memory of diagnostics. Several processes may write at once: each reserves a message by
 * its number. A reader copies a message, terminates every string itself, and skips messages that
 * are not complete. */
#include "base/diag.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct diag *diag_create(void)
{
    struct diag *diag =
        mmap(NULL, sizeof(*diag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return diag == MAP_FAILED ? NULL : diag;
}

void diag_destroy(struct diag **diag)
{
    if (*diag != NULL)
        munmap(*diag, sizeof(**diag));
    *diag = NULL;
}

uint32_t diag_begin(struct diag *diag)
{
    uint32_t session = diag->session + 1, n = diag_count(diag);

    diag->session = session; /* from here on no message of an earlier session is begun */
    for (uint32_t i = 0; i < n; i++)
        diag->lines[i].whole = 0;
    diag->n = 0;
    return session;
}

static void copy_text(char *to, size_t size, const char *from, int n)
{
    snprintf(to, size, "%.*s", n, from != NULL ? from : "");
}

void diag_add(struct diag *diag, uint32_t session, const struct diag_text *telling)
{
    struct diag_message *line;
    uint32_t i;

    if (diag->session != session || diag->n >= DIAG_MAX)
        return;
    i = atomic_fetch_add(&diag->n, 1);
    if (i >= DIAG_MAX)
        return;
    line = &diag->lines[i];
    line->level = telling->level;
    line->line = telling->line;
    line->column = telling->column;
    copy_text(line->text, sizeof(line->text), telling->text, telling->text_n);
    copy_text(line->file, sizeof(line->file), telling->file, -1);
    copy_text(line->excerpt, sizeof(line->excerpt), telling->excerpt, -1);
    line->whole = 1;
}

uint32_t diag_count(const struct diag *diag)
{
    uint32_t n = diag->n;

    return n < DIAG_MAX ? n : DIAG_MAX;
}

bool diag_get(const struct diag *diag, uint32_t i, struct diag_message *out)
{
    const struct diag_message *line = &diag->lines[i];

    assert(i < DIAG_MAX);
    if (line->whole == 0)
        return false;
    memcpy(out, line, sizeof(*out));
    out->text[sizeof(out->text) - 1] = '\0';
    out->file[sizeof(out->file) - 1] = '\0';
    out->excerpt[sizeof(out->excerpt) - 1] = '\0';
    return true;
}

bool diag_reason(const struct diag *diag, uint32_t level, char *reason, size_t size)
{
    struct diag_message message;

    for (uint32_t i = 0; diag != NULL && i < diag_count(diag); i++) {
        if (!diag_get(diag, i, &message) || message.level > level)
            continue;
        if (message.line != 0)
            snprintf(reason, size, "%s in %s:%u:%u", message.text, message.file, message.line,
                message.column);
        else
            snprintf(reason, size, "%s", message.text);
        return true;
    }
    return false;
}
