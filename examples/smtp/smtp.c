/* SPDX-License-Identifier: BSD-2-Clause */
/* A small SMTP server (RFC 5321) with STARTTLS (RFC 3207): takes messages, each into memory of a
 * bounded size, and logs what came. What becomes of a message is up to smtp_deliver().
 *
 * A line ends with CR and LF, and nothing else does: a server that takes a lone LF for an end lets
 * a client smuggle a second message past one that does not. */
#include <forkbeard/forkbeard.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 1000
#define ADDRESS_MAX 256
#define RECIPIENTS_MAX 100
#define ERRORS_MAX 20

struct smtp_conf {
    int64_t max_size;    /* bytes of a message */
    int64_t require_tls; /* no message is taken in plain */
};

struct smtp_session {
    char sender[ADDRESS_MAX + 1];
    unsigned greeted : 1, has_sender : 1, in_data : 1, too_long : 1, drains : 1;
    unsigned recipients, errors;
    char *message; /* memory of fb_temp_alloc(), until the message has ended */
    size_t n;
};

static void reply(fb_conn *conn, const char *text)
{
    fb_write(conn, text, strlen(text));
    fb_write(conn, "\r\n", 2);
}

static void refuse(fb_conn *conn, struct smtp_session *session, const char *text)
{
    reply(conn, text);
    if (++session->errors < ERRORS_MAX)
        return;
    reply(conn, "421 4.7.0 too many errors");
    fb_close(conn);
}

static void forget_message(fb_conn *conn, struct smtp_session *session)
{
    fb_temp_reset(conn);
    session->has_sender = session->in_data = session->too_long = 0;
    session->recipients = 0;
    session->message = NULL;
    session->n = 0;
    if (session->drains) {
        reply(conn, "421 4.3.2 the service shuts down");
        fb_close(conn);
    }
}

/* ---- The message ---- */

static void smtp_deliver(fb_conn *conn, const struct smtp_session *session)
{
    fb_tls tls = { .size = sizeof(tls) };
    const char *cipher = fb_tls_info(conn, &tls) == 0 ? tls.cipher_name : "no TLS";

    fb_conn_logf(conn, FB_LOG_NOTICE, "message of %zu bytes from <%s> to %u recipients, by %s",
        session->n, session->sender, session->recipients, cipher);
}

static void take_text(fb_conn *conn, struct smtp_session *session, fb_bytes line)
{
    const struct smtp_conf *conf = fb_conf_of(conn);

    if (line.n == 1 && line.p[0] == '.') {
        if (session->too_long) {
            refuse(conn, session, "552 5.3.4 the message is too large");
        } else {
            smtp_deliver(conn, session);
            reply(conn, "250 2.0.0 accepted");
        }
        forget_message(conn, session);
        return;
    }
    if (line.n > 0 && line.p[0] == '.') { /* stuffed by the client */
        line.p++;
        line.n--;
    }
    if (line.n + 2 > (size_t)conf->max_size - session->n) {
        session->too_long = 1;
        return;
    }
    memcpy(session->message + session->n, line.p, line.n);
    memcpy(session->message + session->n + line.n, "\r\n", 2);
    session->n += line.n + 2;
}

/* ---- Commands ---- */

/* Copies the address of "FROM:<address> PARAMETERS"; returns the parameters, or NULL. */
static const char *read_path(const char *text, const char *word, char address[ADDRESS_MAX + 1])
{
    size_t n = strlen(word);
    const char *end;

    if (strncasecmp(text, word, n) != 0)
        return NULL;
    text += n + strspn(text + n, " ");
    end = strchr(text, '>');
    if (*text != '<' || end == NULL || end - text - 1 > ADDRESS_MAX)
        return NULL;
    for (const char *c = text; c < end; c++)
        if (*c <= ' ' || *c == 0x7f)
            return NULL;
    memcpy(address, text + 1, (size_t)(end - text) - 1);
    address[end - text - 1] = '\0';
    return end + 1;
}

/* Returns the size among the parameters of a path, or 0. */
static unsigned long long announced_size(const char *text)
{
    for (; *text != '\0'; text += strcspn(text, " ")) {
        text += strspn(text, " ");
        if (strncasecmp(text, "SIZE=", 5) == 0)
            return strtoull(text + 5, NULL, 10);
    }
    return 0;
}

static void smtp_ehlo(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    const struct smtp_conf *conf = fb_conf_of(conn);
    char size[40];

    (void)argument;
    forget_message(conn, session);
    session->greeted = 1;
    snprintf(size, sizeof(size), "250-SIZE %lld", (long long)conf->max_size);
    reply(conn, "250-forkbeard");
    reply(conn, size);
    if (fb_can_start_tls(conn)) /* TLS does not begin within TLS */
        reply(conn, "250-STARTTLS");
    reply(conn, "250 8BITMIME");
}

static void smtp_helo(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    (void)argument;
    forget_message(conn, session);
    session->greeted = 1;
    reply(conn, "250 forkbeard");
}

static void smtp_starttls(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    static const char ready[] = "220 2.0.0 ready to start TLS\r\n";
    const fb_tls_options options = {
        .size = sizeof(options),
        .reply = { (const uint8_t *)ready, sizeof(ready) - 1 },
    };

    if (*argument != '\0')
        refuse(conn, session, "501 5.5.4 no parameters are allowed");
    else if (fb_start_tls(conn, &options) == -1)
        refuse(conn, session, "454 4.7.0 TLS is not available");
}

/* Forgets what a client has said in plain. */
static void smtp_tls_started(fb_conn *conn, void *state)
{
    struct smtp_session *session = state;

    session->greeted = 0;
    forget_message(conn, session);
}

static void smtp_mail(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    const struct smtp_conf *conf = fb_conf_of(conn);
    const char *parameters = read_path(argument, "FROM:", session->sender);
    fb_tls tls = { .size = sizeof(tls) };

    if (!session->greeted || session->has_sender) {
        refuse(conn, session, "503 5.5.1 bad sequence of commands");
    } else if (conf->require_tls && fb_tls_info(conn, &tls) == -1) {
        refuse(conn, session, "530 5.7.0 must issue a STARTTLS command first");
    } else if (parameters == NULL) {
        refuse(conn, session, "501 5.5.4 MAIL FROM:<address> is expected");
    } else if (announced_size(parameters) > (unsigned long long)conf->max_size) {
        refuse(conn, session, "552 5.3.4 the message is too large");
    } else {
        session->has_sender = 1;
        reply(conn, "250 2.1.0 ok");
    }
}

static void smtp_rcpt(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    char address[ADDRESS_MAX + 1];

    if (!session->has_sender) {
        refuse(conn, session, "503 5.5.1 bad sequence of commands");
    } else if (read_path(argument, "TO:", address) == NULL || address[0] == '\0') {
        refuse(conn, session, "501 5.5.4 RCPT TO:<address> is expected");
    } else if (session->recipients == RECIPIENTS_MAX) {
        refuse(conn, session, "452 4.5.3 too many recipients");
    } else {
        session->recipients++;
        reply(conn, "250 2.1.5 ok");
    }
}

static void smtp_data_command(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    const struct smtp_conf *conf = fb_conf_of(conn);

    (void)argument;
    if (session->recipients == 0) {
        refuse(conn, session, "503 5.5.1 bad sequence of commands");
        return;
    }
    session->message = fb_temp_alloc(conn, (size_t)conf->max_size);
    if (session->message == NULL) {
        refuse(conn, session, "452 4.3.1 no memory");
        return;
    }
    session->in_data = 1;
    reply(conn, "354 end with a line that is a dot");
}

static void smtp_rset(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    (void)argument;
    reply(conn, "250 2.0.0 ok");
    forget_message(conn, session);
}

static void smtp_noop(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    (void)session, (void)argument;
    reply(conn, "250 2.0.0 ok");
}

static void smtp_vrfy(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    (void)session, (void)argument;
    reply(conn, "252 2.5.0 try to send something");
}

static void smtp_quit(fb_conn *conn, struct smtp_session *session, const char *argument)
{
    (void)session, (void)argument;
    reply(conn, "221 2.0.0 bye");
    fb_close(conn);
}

static const struct {
    const char *name;
    void (*run)(fb_conn *conn, struct smtp_session *session, const char *argument);
} commands[] = {
    { "EHLO", smtp_ehlo },
    { "HELO", smtp_helo },
    { "STARTTLS", smtp_starttls },
    { "MAIL", smtp_mail },
    { "RCPT", smtp_rcpt },
    { "DATA", smtp_data_command },
    { "RSET", smtp_rset },
    { "NOOP", smtp_noop },
    { "VRFY", smtp_vrfy },
    { "QUIT", smtp_quit },
};

static void run_command(fb_conn *conn, struct smtp_session *session, fb_bytes line)
{
    char text[LINE_MAX_BYTES + 1];
    size_t n;

    memcpy(text, line.p, line.n);
    text[line.n] = '\0';
    n = strcspn(text, " ");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (n == strlen(commands[i].name) && strncasecmp(text, commands[i].name, n) == 0) {
            commands[i].run(conn, session, text + n + strspn(text + n, " "));
            return;
        }
    refuse(conn, session, "500 5.5.2 the command is unknown");
}

/* ---- The protocol ---- */

static int smtp_opened(fb_conn *conn, void *state)
{
    (void)state;
    reply(conn, "220 forkbeard ESMTP");
    return 0;
}

/* No line is cut once STARTTLS has begun: commands sent along with it in plain are never seen. */
static size_t smtp_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = LINE_MAX_BYTES };
    struct smtp_session *session = state;
    fb_bytes rest = in, line;

    while (fb_frame_until(conn, &rest, "\r\n", 2, &limit, &line)) {
        if (session->in_data)
            take_text(conn, session, line);
        else
            run_command(conn, session, line);
    }
    return in.n - rest.n;
}

static void smtp_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    struct smtp_session *session = state;

    (void)deadline;
    session->drains = 1;
    if (!session->has_sender)
        forget_message(conn, session);
}

static const fb_directive directives[] = {
    { .name = "smtp", .flags = FB_DIRECTIVE_HANDLER },
    { .name = "smtp_max_size",
        .value = FB_VALUE_SIZE,
        .offset = offsetof(struct smtp_conf, max_size),
        .least = 1024,
        .greatest = 16777216,
        .initial = "64k" },
    { .name = "smtp_require_tls",
        .value = FB_VALUE_FLAG,
        .offset = offsetof(struct smtp_conf, require_tls),
        .initial = "off" },
};

static const fb_ops ops = { .size = sizeof(fb_ops),
    .opened = smtp_opened,
    .data = smtp_data,
    .draining = smtp_draining,
    .tls_started = smtp_tls_started };

FB_PROTOCOL(smtp) = { FB_PROTOCOL_HEADER, .name = "smtp", FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct smtp_session), .conf_state = sizeof(struct smtp_conf),
    .flags = FB_KEEPS_TLS, .ops = &ops };
