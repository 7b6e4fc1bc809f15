/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of status_page: a client's requests, and the text of /metrics. */
#pragma once

#include <forkbeard/forkbeard.h>
#include <stdbool.h>

/* The text of metrics in one piece, far less than 0.5 ms of a worker's time. */
#define PAGE_PIECE 8192
/* A sample more, with 16 lines of the longest labels. */
#define PAGE_TEXT (PAGE_PIECE + 17 * 2048)

struct page_text {
    size_t n;
    char p[PAGE_TEXT];
};

struct page_worker {
    const fb_stream *stream;
    const fb_metrics *metrics;
    struct page_text text;
};

/* A request: lent, as its head is. */
struct page_request {
    bool is_get, is_head;
    fb_bytes path;     /* up to a question mark */
    bool closes;       /* no further request follows */
    bool is_old;       /* HTTP/1.0: no chunks */
    bool open_metrics; /* OpenMetrics is wanted, not the older format of Prometheus */
};

/* A client. */
struct page_client {
    fb_sample_cursor cursor;
    const char *family; /* the name of the last sample's family */
    size_t head_n;      /* bytes of the request, kept until its reply is whole */
    bool sending;       /* a reply of several pieces */
    bool closes, chunked, open_metrics;
    bool drains;
};

/* Takes a request apart; false after a mistake of the client. */
bool page_parse(fb_bytes head, struct page_request *request);
/* Adds samples to the text until it has PAGE_PIECE bytes; returns false at the end of all. */
bool page_add_metrics(fb_worker *worker, struct page_worker *own, struct page_client *client);
