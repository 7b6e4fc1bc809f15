/* SPDX-License-Identifier: BSD-2-Clause */
#include "master/master.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MAX (4u << 20) /* bytes; nobody sends so many */
#define REPORT_S 5             /* for which a new one waits for an old one that does not listen */

/* Sending */

static void send_line(struct master *master, struct fb_json *json)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    size_t n;
    char *line;

    fb_json_close(json);
    line = fb_json_end(json, &n);
    /* it takes much more than a line at once; one that has gone is noticed elsewhere */
    if (line == NULL || (send(upgrade->link, line, n, MSG_NOSIGNAL) != (ssize_t)n &&
                            errno != EPIPE && errno != ECONNRESET))
        fb_log(&master->log, FB_ALERT, errno, "master process %d could not be told",
            (int)upgrade->other);
    free(line);
}

static void write_sockets(const struct master *master, struct fb_json *json)
{
    const struct fb_listener *listener;

    fb_json_array(json, "sockets");
    if (master->pool.serving != NULL)
        STAILQ_FOREACH (listener, &master->pool.serving->cycle->stream.listeners, link)
            for (unsigned i = 0; i < listener->fd_n; i++)
                fb_json_number(json, NULL, (int64_t)fb_upgrade_inode(listener->fds[i]));
    fb_json_close(json);
}

void fb_upgrade_announce(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    struct fb_json json;

    if (upgrade->link == -1)
        return;
    fb_json_begin(&json);
    fb_json_object(&json, NULL);
    if (upgrade->role == FB_UPGRADE_NEW) {
        upgrade->serves = true;
        fb_upgrade_drop_told(master);
        fb_json_bool(&json, "serves", true);
    } else {
        fb_json_string(&json, "control", master->control.path);
    }
    write_sockets(master, &json);
    send_line(master, &json);
}

static void send_flag(struct master *master, const char *name)
{
    struct fb_json json;

    if (master->upgrade.link == -1)
        return;
    fb_json_begin(&json);
    fb_json_object(&json, NULL);
    fb_json_bool(&json, name, true);
    send_line(master, &json);
}

void fb_upgrade_tell_main(struct master *master)
{
    send_flag(master, "main");
}

void fb_upgrade_spread_look(struct master *master)
{
    send_flag(master, "look");
}

void fb_upgrade_report(int link, const struct fb_told *told)
{
    struct timeval limit = { .tv_sec = REPORT_S };
    struct fb_json json;
    size_t n, sent = 0;
    ssize_t piece = 0;
    char *line;

    if (link == -1)
        return;
    fb_json_begin(&json);
    fb_json_object(&json, NULL);
    fb_told_write(&json, told);
    fb_json_close(&json);
    line = fb_json_end(&json, &n);
    setsockopt(link, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    fcntl(link, F_SETFL, 0);
    while (line != NULL && sent < n && piece != -1) {
        piece = send(link, line + sent, n - sent, MSG_NOSIGNAL);
        sent += piece > 0 ? (size_t)piece : 0;
    }
    free(line);
}

/* Receiving */

static void hear_sockets(struct fb_upgrade *upgrade, struct fb_json_value sockets)
{
    struct fb_json_value socket = { NULL, 0 };

    upgrade->socket_n = 0;
    while ((socket = fb_json_next(sockets, socket)).text != NULL) {
        uint64_t *more = realloc(upgrade->sockets, (upgrade->socket_n + 1) * sizeof(*more));

        if (more == NULL) /* at worst a path goes that is still listened on */
            return;
        upgrade->sockets = more;
        more[upgrade->socket_n++] = (uint64_t)fb_json_integer(socket, 0);
    }
}

static void hear_why(struct fb_upgrade *upgrade, struct fb_json_value messages)
{
    struct fb_json_value message = { NULL, 0 };
    struct fb_told_line line;

    while (upgrade->told != NULL && (message = fb_json_next(messages, message)).text != NULL) {
        struct fb_telling telling = { .text = line.text, .text_n = -1 };
        char level[16];
        int known;

        fb_json_text(fb_json_member(message, "level"), level, sizeof(level));
        known = fb_level_parse(level);
        telling.level = known == -1 ? FB_EMERG : (uint32_t)known;
        fb_json_text(fb_json_member(message, "text"), line.text, sizeof(line.text));
        if (fb_json_text(fb_json_member(message, "file"), line.file, sizeof(line.file)))
            telling.file = line.file;
        if (fb_json_text(fb_json_member(message, "excerpt"), line.excerpt, sizeof(line.excerpt)))
            telling.excerpt = line.excerpt;
        telling.line = (uint32_t)fb_json_integer(fb_json_member(message, "line"), 0);
        telling.column = (uint32_t)fb_json_integer(fb_json_member(message, "column"), 0);
        fb_told_add(upgrade->told, upgrade->told_round, &telling);
    }
}

static void hear(struct master *master, struct fb_json_value message)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    struct fb_json_value sockets = fb_json_member(message, "sockets");
    char control[FB_CONTROL_PATH_MAX + 1];

    hear_why(upgrade, fb_json_member(message, "messages"));
    if (sockets.text != NULL)
        hear_sockets(upgrade, sockets);
    if (fb_json_text(fb_json_member(message, "control"), control, sizeof(control))) {
        free(upgrade->control);
        upgrade->control = strdup(control);
    }
    if (fb_json_is_true(fb_json_member(message, "look")))
        pool_rescan(&master->pool, NULL);
    if (fb_json_is_true(fb_json_member(message, "main"))) {
        upgrade->main = true;
        service_manager_forget_status(&master->manager);
        service_manager_ready(&master->manager, fb_upgrade_is_main(master));
    }
    if (upgrade->role == FB_UPGRADE_OLD && fb_json_is_true(fb_json_member(message, "serves")))
        fb_upgrade_served(master);
}

static void hear_lines(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    char *end;

    while ((end = memchr(upgrade->in, '\n', upgrade->in_n)) != NULL) {
        size_t n = (size_t)(end - upgrade->in) + 1;

        hear(master, fb_json_parse(upgrade->in, n - 1));
        upgrade->in_n -= n;
        memmove(upgrade->in, upgrade->in + n, upgrade->in_n);
    }
}

static bool make_room(struct fb_upgrade *upgrade)
{
    size_t size = upgrade->in_size > 0 ? 2 * upgrade->in_size : 4096;
    char *larger;

    if (upgrade->in_n < upgrade->in_size)
        return true;
    if (size > MESSAGE_MAX || (larger = realloc(upgrade->in, size)) == NULL)
        return false;
    upgrade->in = larger;
    upgrade->in_size = size;
    return true;
}

void fb_upgrade_listen(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    ssize_t n = 0;
    int fd;

    while (upgrade->link != -1) {
        if (!make_room(upgrade))
            upgrade->in_n = 0; /* it talks nonsense */
        n = fb_upgrade_receive(
            upgrade->link, upgrade->in + upgrade->in_n, upgrade->in_size - upgrade->in_n, &fd);
        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close(upgrade->link);
            upgrade->link = -1;
            break;
        }
        upgrade->in_n += (size_t)n;
        if (fd != -1)
            fb_upgrade_take_queue(master, fd);
        hear_lines(master);
    }
    if (n <= 0 && upgrade->role == FB_UPGRADE_NEW)
        fb_upgrade_left_alone(master);
}
