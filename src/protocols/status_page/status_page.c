/* SPDX-License-Identifier: BSD-2-Clause */
/* status_page: the daemon's numbers by HTTP/1.1, as a page, as JSON and for Prometheus, and
 * signs of life for probes. Replies with numbers leave piece by piece, a turn of the loop each, at
 * the client's speed: the request stays unconsumed until the reply is whole. */
#include "protocols/status_page/status_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEAD_MOST 8192
#define HEAD_TIMEOUT_MS 10000

static int page_worker_start(fb_worker *worker, void *state)
{
    struct page_worker *own = state;

    own->stream = fb_interface(worker, "stream", 1);
    own->metrics = fb_interface(worker, "metrics", 1);
    return own->stream == NULL || own->metrics == NULL;
}

#define PLAIN "text/plain; charset=utf-8"

struct page_status {
    unsigned code;
    const char *reason;
};

static const struct page_status ok = { 200, "OK" };
static const struct page_status bad = { 400, "Bad Request" };
static const struct page_status not_found = { 404, "Not Found" };
static const struct page_status not_allowed = { 405, "Method Not Allowed" };
static const struct page_status unavailable = { 503, "Service Unavailable" };

/* A browser asks nobody else for a part of the page. */
#define PAGE_ONLY                                                                                  \
    "Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; "           \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"

/* Writes the head of a reply; a negative length is not known before. */
static void write_head(fb_conn *conn, const struct page_client *client,
    const struct page_status *status, const char *type, int length)
{
    const struct page_worker *own = fb_worker_state(conn);
    char head[768], size[64] = "";

    if (length >= 0)
        snprintf(size, sizeof(size), "Content-Length: %d\r\n", length);
    else if (client->chunked)
        strcpy(size, "Transfer-Encoding: chunked\r\n");
    snprintf(head, sizeof(head),
        "HTTP/1.1 %u %s\r\nContent-Type: %s\r\n%sCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n%s%sConnection: %s\r\n\r\n",
        status->code, status->reason, type, size, status->code == 405 ? "Allow: GET, HEAD\r\n" : "",
        strncmp(type, "text/html", 9) == 0 ? PAGE_ONLY : "",
        client->closes ? "close" : "keep-alive");
    fb_write(conn, head, strlen(head));
    own->stream->set_status(conn, status->code);
}

/* Ends a reply: the next request, or the end of the connection, follows. */
static void end_reply(fb_conn *conn, struct page_client *client)
{
    client->sending = false;
    if (client->closes)
        fb_close(conn);
    else
        fb_set_idle(conn, 1);
}

static void reply(fb_conn *conn, struct page_client *client, const struct page_request *request,
    const struct page_status *status, const char *type, const char *body)
{
    write_head(conn, client, status, type, (int)strlen(body));
    if (!request->is_head)
        fb_write(conn, body, strlen(body));
    end_reply(conn, client);
}

/* ---- Numbers ---- */

/* Writes the next piece; true: it was the last. */
static bool write_piece(fb_conn *conn, struct page_client *client)
{
    struct page_worker *own = fb_worker_state(conn);
    char size[24];
    bool more;

    own->text.n = 0;
    more = client->write(fb_worker_of(conn), own, client);
    if (client->chunked && own->text.n > 0)
        fb_write(conn, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", own->text.n));
    fb_write(conn, own->text.p, own->text.n);
    if (client->chunked && own->text.n > 0)
        fb_write(conn, "\r\n", 2);
    if (more)
        return false;
    if (client->chunked)
        fb_write(conn, "0\r\n\r\n", 5);
    end_reply(conn, client);
    return true;
}

/* Has the rest of the input, and the end of the client's half, offered again in a later turn. */
static void come_back(fb_conn *conn)
{
    fb_stop(conn);
    fb_resume(conn);
}

/* ---- Requests ---- */

static const char style[] =
#include "protocols/status_page/page.css.def"
    ;
static const char script[] =
#include "protocols/status_page/page.js.def"
    ;

/* A path with a constant text, or with a writer of numbers */
struct page_path {
    const char *path, *type, *body;
    const char *draining;  /* the text with 503 of a draining worker; NULL: the same */
    const char *open_type; /* of OpenMetrics; NULL: the same */
    page_writer write;
};

static const struct page_path paths[] = {
    { "/", "text/html; charset=utf-8", .write = page_add_html },
    { "/status.css", "text/css; charset=utf-8", .body = style },
    { "/status.js", "text/javascript; charset=utf-8", .body = script },
    { "/status.json", "application/json", .write = page_add_json },
    { "/metrics", "text/plain; version=0.0.4; charset=utf-8", .write = page_add_metrics,
        .open_type = "application/openmetrics-text; version=1.0.0; charset=utf-8" },
    { "/healthz", PLAIN, .body = "alive\n" },
    { "/readyz", PLAIN, .body = "ready\n", .draining = "draining\n" },
};

static void reply_numbers(fb_conn *conn, struct page_client *client,
    const struct page_request *request, const struct page_path *path)
{
    client->open_metrics = request->open_metrics && path->open_type != NULL;
    client->write = path->write;
    client->chunked = !request->is_old;
    client->closes |= request->is_old;
    client->cursor = (fb_sample_cursor) { 0 };
    client->last = NULL;
    write_head(conn, client, &ok, client->open_metrics ? path->open_type : path->type, -1);
    client->sending = !request->is_head;
    if (request->is_head)
        end_reply(conn, client);
}

static void answer_path(fb_conn *conn, struct page_client *client,
    const struct page_request *request, const struct page_path *path)
{
    if (client->drains && path->draining != NULL)
        reply(conn, client, request, &unavailable, path->type, path->draining);
    else if (path->body != NULL)
        reply(conn, client, request, &ok, path->type, path->body);
    else
        reply_numbers(conn, client, request, path);
}

static void answer(fb_conn *conn, struct page_client *client, fb_bytes head)
{
    struct page_request request;
    bool parsed = page_parse(head, &request);

    fb_count_request(conn);
    fb_set_idle(conn, 0);
    client->closes = !parsed || request.closes || client->drains;
    if (!parsed) {
        reply(conn, client, &request, &bad, PLAIN, "a request without a body is expected\n");
        return;
    }
    if (!request.is_get && !request.is_head) {
        reply(conn, client, &request, &not_allowed, PLAIN, "GET or HEAD is expected\n");
        return;
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (request.path.n == strlen(paths[i].path) &&
            memcmp(request.path.p, paths[i].path, request.path.n) == 0) {
            answer_path(conn, client, &request, &paths[i]);
            return;
        }
    reply(conn, client, &request, &not_found, PLAIN,
        "the paths are /, /status.json, /metrics, /healthz and /readyz\n");
}

static size_t page_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = HEAD_MOST, .timeout = HEAD_TIMEOUT_MS };
    struct page_client *client = state;
    fb_bytes rest = in, head;

    if (!client->sending) {
        if (!fb_frame_until(conn, &rest, "\r\n\r\n", 4, &limit, &head))
            return 0;
        client->head_n = in.n - rest.n;
        answer(conn, client, head);
    }
    if (client->sending && !write_piece(conn, client)) {
        come_back(conn);
        return 0;
    }
    if (in.n > client->head_n) /* a further request is there already */
        come_back(conn);
    return client->head_n;
}

static void page_writable(fb_conn *conn, void *state)
{
    if (((struct page_client *)state)->sending)
        come_back(conn);
}

static void page_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    struct page_client *client = state;

    (void)conn, (void)deadline;
    client->drains = true;
}

static int page_opened(fb_conn *conn, void *state)
{
    (void)state;
    fb_set_idle(conn, 1);
    return 0;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = page_opened,
    .data = page_data,
    .writable = page_writable,
    .draining = page_draining,
};

static const fb_directive directives[] = {
    { .name = "status_page", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(status_page) = {
    FB_PROTOCOL_HEADER,
    .name = "status_page",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct page_client),
    .worker_state = sizeof(struct page_worker),
    .ops = &ops,
    .worker_start = page_worker_start,
};
