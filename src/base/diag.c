/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared memory of diagnostics. Writers from several processes take a message each by its
 * number; readers copy, end every string themselves, and skip messages that are not whole. */
#include "base/diag.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct fb_told *fb_told_create(void)
{
    struct fb_told *diag =
        mmap(NULL, sizeof(*diag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return diag == MAP_FAILED ? NULL : diag;
}

void fb_told_destroy(struct fb_told **diag)
{
    if (*diag != NULL)
        munmap(*diag, sizeof(**diag));
    *diag = NULL;
}

uint32_t fb_told_begin(struct fb_told *diag)
{
    uint32_t session = diag->session + 1, n = fb_told_n(diag);

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

void fb_told_add(struct fb_told *diag, uint32_t session, const struct fb_telling *telling)
{
    struct fb_told_line *line;
    uint32_t i;

    if (diag->session != session || diag->n >= FB_TOLD_MAX)
        return;
    i = atomic_fetch_add(&diag->n, 1);
    if (i >= FB_TOLD_MAX)
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

uint32_t fb_told_n(const struct fb_told *diag)
{
    uint32_t n = diag->n;

    return n < FB_TOLD_MAX ? n : FB_TOLD_MAX;
}

bool fb_told_get(const struct fb_told *diag, uint32_t i, struct fb_told_line *out)
{
    const struct fb_told_line *line = &diag->lines[i];

    assert(i < FB_TOLD_MAX);
    if (line->whole == 0)
        return false;
    memcpy(out, line, sizeof(*out));
    out->text[sizeof(out->text) - 1] = '\0';
    out->file[sizeof(out->file) - 1] = '\0';
    out->excerpt[sizeof(out->excerpt) - 1] = '\0';
    return true;
}

bool diag_reason(const struct fb_told *diag, uint32_t level, char *reason, size_t size)
{
    struct fb_told_line message;

    for (uint32_t i = 0; diag != NULL && i < fb_told_n(diag); i++) {
        if (!fb_told_get(diag, i, &message) || message.level > level)
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
