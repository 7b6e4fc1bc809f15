/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients of the control socket ask for, and what they are told came of it. */
#include "master/master.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS "expected status, reload, reopen, upgrade, quit or stop"

/* The words that -s takes are the signals'. */
static const struct fb_signal *find_order(const char *command)
{
    for (const struct fb_signal *s = fb_signals; s->number != 0; s++)
        if (s->order != NULL && strcmp(s->order, command) == 0)
            return s;
    return NULL;
}

static void begin_answer(struct fb_json *json, bool ok)
{
    fb_json_begin(json);
    fb_json_object(json, NULL);
    fb_json_bool(json, "ok", ok);
}

static void end_answer(struct fb_json *json, struct fb_client *client)
{
    size_t n;
    char *line;

    fb_json_close(json);
    line = fb_json_end(json, &n);
    fb_client_answer(client, line, n);
}

static void answer_status(struct master *master, struct fb_client *client)
{
    struct fb_json json;

    begin_answer(&json, true);
    fb_status_write(master, &json);
    end_answer(&json, client);
}

static void answer_order(struct master *master, struct fb_client *client, const struct fb_signal *s)
{
    enum fb_order order = s->orders[FB_ROLE_MASTER];
    struct fb_json json;

    if ((order == FB_ORDER_RELOAD || order == FB_ORDER_UPGRADE) && master->phase != MASTER_RUNS) {
        fb_client_answer_error(client, "the daemon is ending");
        return;
    }
    fb_log(&master->log, FB_NOTICE, 0, "\"%s\" received from %d by the control socket, %s",
        s->order, (int)client->pid, s->doing);
    master->requested[order] = true;
    raise(SIGIO); /* it may be asked for behind the place where orders are taken */
    switch (order) {
    case FB_ORDER_RELOAD:
        client->awaits = FB_AWAITS_RELOAD;
        break;
    case FB_ORDER_REOPEN:
        client->awaits = FB_AWAITS_REOPEN;
        break;
    case FB_ORDER_UPGRADE:
        client->awaits = FB_AWAITS_UPGRADE;
        break;
    default:
        client->awaits = FB_AWAITS_END;
        begin_answer(&json, true);
        end_answer(&json, client);
        break;
    }
}

void fb_client_obey(struct master *master, struct fb_client *client, size_t n)
{
    struct fb_json_value request = fb_json_parse(client->in, n);
    const struct fb_signal *order;
    char command[32], error[128];

    if (request.text == NULL || *request.text != '{') {
        fb_client_answer_error(client, "the request is no JSON object on a line");
        return;
    }
    if (!fb_json_text(fb_json_member(request, "command"), command, sizeof(command))) {
        fb_client_answer_error(client, "the request has no \"command\": " COMMANDS);
        return;
    }
    order = find_order(command);
    if (strcmp(command, "status") == 0) {
        answer_status(master, client);
    } else if (order != NULL) {
        answer_order(master, client, order);
    } else {
        snprintf(error, sizeof(error), "unknown command \"%s\", " COMMANDS, command);
        fb_client_answer_error(client, error);
    }
}

bool fb_request_take(struct master *master, enum fb_order order)
{
    bool requested = master->requested[order];

    master->requested[order] = false;
    return requested;
}

/* Results */

static void write_line(struct fb_json *json, const struct fb_told_line *line)
{
    bool placed = line->line != 0;

    fb_json_object(json, NULL);
    fb_json_string(json, "level", fb_level_name(line->level <= FB_DEBUG ? line->level : FB_EMERG));
    fb_json_string(json, "text", line->text);
    fb_json_string(json, "file", placed ? line->file : NULL);
    if (placed) {
        fb_json_number(json, "line", line->line);
        fb_json_number(json, "column", line->column);
    } else {
        fb_json_null(json, "line");
        fb_json_null(json, "column");
    }
    fb_json_string(json, "excerpt", line->excerpt[0] != '\0' ? line->excerpt : NULL);
    fb_json_close(json);
}

void fb_told_write(struct fb_json *json, const struct fb_told *told)
{
    struct fb_told_line line;

    fb_json_array(json, "messages");
    for (uint32_t i = 0; told != NULL && i < fb_told_n(told); i++)
        if (fb_told_get(told, i, &line))
            write_line(json, &line);
    fb_json_close(json);
}

/* The first grave line is the reason; what follows is mostly its consequence. */
static void find_reason(const struct fb_told *told, enum fb_level least, char why[FB_REASON_MAX])
{
    struct fb_told_line line;

    for (uint32_t i = 0; told != NULL && i < fb_told_n(told); i++) {
        if (!fb_told_get(told, i, &line) || line.level > least)
            continue;
        if (line.line != 0)
            snprintf(
                why, FB_REASON_MAX, "%s in %s:%u:%u", line.text, line.file, line.line, line.column);
        else
            snprintf(why, FB_REASON_MAX, "%s", line.text);
        return;
    }
}

/* Gives everyone who awaits it the same answer. */
static void answer_all(struct master *master, enum fb_awaited awaited, bool ok, const char *why,
    const struct fb_told *told)
{
    struct fb_client *client, *next;
    struct fb_json json;

    TAILQ_FOREACH_SAFE (client, &master->control.clients, link, next) {
        if (client->awaits != awaited)
            continue;
        begin_answer(&json, ok);
        if (!ok)
            fb_json_string(&json, "error", why);
        if (awaited == FB_AWAITS_NEW && ok)
            fb_json_number(&json, "pid", master->upgrade.other);
        if (awaited == FB_AWAITS_RESULT)
            fb_json_number(&json, "generation", master->pool.serving->number);
        fb_told_write(&json, told);
        end_answer(&json, client);
        fb_client_go_on(master, client);
    }
}

/* What is logged from now on is told. */
static void listen_to_log(struct master *master, struct fb_told *told)
{
    master->log.told = told;
    if (told != NULL)
        master->log.told_round = fb_told_begin(told);
    fb_log_update(&master->log);
}

static void move_clients(struct master *master, enum fb_awaited from, enum fb_awaited to)
{
    struct fb_client *client;

    TAILQ_FOREACH (client, &master->control.clients, link)
        if (client->awaits == from)
            client->awaits = to;
}

void fb_result_begin(struct master *master)
{
    service_manager_reloading(&master->manager, fb_upgrade_is_main(master));
    listen_to_log(master, master->told);
    move_clients(master, FB_AWAITS_RELOAD, FB_AWAITS_RESULT);
}

void fb_result_end(struct master *master, bool ok)
{
    struct fb_result *result = &master->result;

    *result = (struct fb_result) { .any = true, .ok = ok, .at_ms = master->clock.wall_ms };
    if (!ok) {
        snprintf(result->why, sizeof(result->why), "%s",
            master->phase != MASTER_RUNS ? "the daemon is ending" : "the error log says why");
        find_reason(master->told, FB_EMERG, result->why);
    }
    service_manager_reloaded(&master->manager, fb_upgrade_is_main(master));
    answer_all(master, FB_AWAITS_RESULT, ok, result->why, master->told);
    master->log.told = NULL;
    fb_log_update(&master->log);
}

void fb_result_none(struct master *master)
{
    answer_all(master, FB_AWAITS_RELOAD, false, "the daemon is ending", NULL);
    answer_all(master, FB_AWAITS_UPGRADE, false, "the daemon is ending", NULL);
}

void fb_upgrade_refused(struct master *master, const char *why)
{
    answer_all(master, FB_AWAITS_UPGRADE, false, why, NULL);
}

void fb_upgrade_begun(struct master *master)
{
    move_clients(master, FB_AWAITS_UPGRADE, FB_AWAITS_NEW);
}

void fb_upgrade_answer(
    struct master *master, bool ok, char why[FB_REASON_MAX], const struct fb_told *told)
{
    if (!ok)
        find_reason(told, FB_ALERT, why);
    answer_all(master, FB_AWAITS_NEW, ok, why, told);
}

void fb_master_reopen(struct master *master)
{
    struct fb_log *log = &master->log;
    struct fb_told *told = fb_told_create(), *before = log->told;
    uint32_t round = log->told_round;
    char why[FB_REASON_MAX] = "";

    listen_to_log(master, told);
    pool_reopen_logs(&master->pool);
    find_reason(told, FB_ALERT, why);
    log->told = before;
    log->told_round = round;
    fb_log_update(log);
    answer_all(master, FB_AWAITS_REOPEN, why[0] == '\0', why, told);
    fb_told_destroy(&told);
}
