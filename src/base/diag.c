/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared memory of diagnostics. Several processes may write at once: each reserves a message by
 * number. A reader copies a message, terminates every string itself, and skips incomplete messages.
 * As JSON a message is an object of level, text, file, line, column and excerpt, or null. */
#include "base/diag.h"

#include "base/json.h"
#include "base/log_line.h"

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

static void write_message(struct json *json, const struct diag_message *message)
{
    bool placed = message->line != 0;

    json_object(json, NULL);
    json_string(json, "level",
        log_level_name(message->level <= LEVEL_DEBUG ? message->level : LEVEL_EMERG));
    json_string(json, "text", message->text);
    json_string(json, "file", placed ? message->file : NULL);
    if (placed) {
        json_number(json, "line", message->line);
        json_number(json, "column", message->column);
    } else {
        json_null(json, "line");
        json_null(json, "column");
    }
    json_string(json, "excerpt", message->excerpt[0] != '\0' ? message->excerpt : NULL);
    json_close(json);
}

void diag_to_json(struct json *json, const struct diag *diag)
{
    struct diag_message message;

    json_array(json, "messages");
    for (uint32_t i = 0; diag != NULL && i < diag_count(diag); i++)
        if (diag_get(diag, i, &message))
            write_message(json, &message);
    json_close(json);
}

bool diag_from_json(struct json_value messages, struct json_value *at, struct diag_message *out)
{
    char level[16];
    int known;

    *at = json_next(messages, *at);
    if (at->text == NULL)
        return false;
    json_text(json_member(*at, "level"), level, sizeof(level));
    known = log_level_parse(level);
    out->whole = 1;
    out->level = known == -1 ? LEVEL_EMERG : (uint32_t)known;
    json_text(json_member(*at, "text"), out->text, sizeof(out->text));
    json_text(json_member(*at, "excerpt"), out->excerpt, sizeof(out->excerpt));
    out->line = out->column = 0;
    if (json_text(json_member(*at, "file"), out->file, sizeof(out->file))) {
        out->line = (uint32_t)json_integer(json_member(*at, "line"), 0);
        out->column = (uint32_t)json_integer(json_member(*at, "column"), 0);
    }
    assert(out->level <= LEVEL_DEBUG);
    return true;
}

void diag_add_json(struct diag *diag, uint32_t session, struct json_value messages)
{
    struct json_value at = { NULL, 0 };
    struct diag_message message;

    while (diag != NULL && diag_from_json(messages, &at, &message))
        diag_add(diag, session,
            &(struct diag_text) {
                .level = message.level,
                .line = message.line,
                .column = message.column,
                .text = message.text,
                .text_n = -1,
                .file = message.file,
                .excerpt = message.excerpt,
            });
}
