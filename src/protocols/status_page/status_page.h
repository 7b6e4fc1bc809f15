/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of status_page: a client's requests, and the texts of replies. */
#pragma once

#include <forkbeard/forkbeard.h>
#include <stdbool.h>

/* The text of numbers in one piece, less than 0.5 ms of a worker's time: of samples, and of rows,
 * whose numbers take less room. */
#define PAGE_PIECE 8192
#define PAGE_ROWS 3072
/* Bytes of a label's value that are shown. */
#define PAGE_VALUE 300
/* A piece, and a row of the most samples with the longest labels */
#define PAGE_TEXT (PAGE_PIECE + FB_ROW_MAX * 6 * PAGE_VALUE)

struct page_text {
    size_t n;
    char p[PAGE_TEXT];
};

struct page_worker {
    const fb_stream *stream;
    const fb_metrics *metrics;
    struct page_text text;
    fb_sample row[FB_ROW_MAX];
};

/* A request: lent, as its head is. */
struct page_request {
    bool is_get, is_head;
    fb_bytes path;     /* up to a question mark */
    bool closes;       /* no further request follows */
    bool is_old;       /* HTTP/1.0: no chunks */
    bool open_metrics; /* OpenMetrics is wanted, not the older format of Prometheus */
};

struct page_client;

/* Adds numbers to the text until it has PAGE_PIECE bytes; returns false at the end of all. */
typedef bool (*page_writer)(fb_worker *worker, struct page_worker *own, struct page_client *client);

/* A client. */
struct page_client {
    page_writer write;
    fb_sample_cursor cursor;
    const char *last; /* the name or the thing of the last sample; NULL at the beginning */
    size_t head_n;    /* bytes of the request, kept until its reply is whole */
    bool sending;     /* a reply of several pieces */
    bool closes, chunked, open_metrics;
    bool drains;
};

/* Takes a request apart; false after a mistake of the client. */
bool page_parse(fb_bytes head, struct page_request *request);

bool page_add_metrics(fb_worker *worker, struct page_worker *own, struct page_client *client);
bool page_add_json(fb_worker *worker, struct page_worker *own, struct page_client *client);
bool page_add_html(fb_worker *worker, struct page_worker *own, struct page_client *client);

/* How rows become text */
struct page_format {
    const char *head;
    void (*add_kind)(struct page_text *text, const fb_sample *row, uint32_t n); /* of first row */
    void (*add_row)(struct page_text *text, const fb_sample *row, uint32_t n);
    const char *between; /* rows of a kind */
    const char *kind_end, *tail;
};

/* A page_writer's work for a format of rows */
bool page_add_rows(fb_worker *worker, struct page_worker *own, struct page_client *client,
    const struct page_format *format);

/* Adds to the text; what does not fit is cut. */
void page_add(struct page_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds an escape for a character with a meaning in the text; false: no escape is needed. */
typedef bool (*page_escape)(struct page_text *text, char c);
/* For values between double quotes */
bool page_escape_quoted(struct page_text *text, char c);
/* Adds a label's value of at most PAGE_VALUE bytes, as UTF-8. */
void page_add_value(struct page_text *text, const char *value, page_escape escape);
/* Returns the name of a sample without the prefix of the thing. */
const char *page_column(const fb_sample *sample);
/* Returns how many times a histogram has. */
uint64_t page_times(const fb_sample *sample);
