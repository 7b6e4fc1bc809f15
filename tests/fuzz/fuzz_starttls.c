/* SPDX-License-Identifier: BSD-2-Clause */
/* The readers of proxy_starttls: lines of a client and a server in turn, as a dialogue has them.
 * Answers are short, lines for the client are whole, and lists of capabilities have STARTTLS before
 * TLS alone. */
#include "fuzz/input.h"

#include "protocols/proxy/starttls.h"

#include <string.h>
#include <strings.h>

#define ANSWER_MOST 256

/* Bytes for the client since they were last looked at. */
struct collected {
    struct starttls_out out; /* the first member */
    size_t n;
    char text[65536];
};

static void collect(struct starttls_out *out, const void *p, size_t n)
{
    struct collected *collected = (struct collected *)out;

    require(n <= sizeof(collected->text) - 1 - collected->n, "bytes for the client have a limit");
    memcpy(collected->text + collected->n, p, n);
    collected->n += n;
    collected->text[collected->n] = '\0';
}

static struct collected for_client = { .out.add = collect };

/* Whether a line of the text is the word, behind `skip` bytes, perhaps with parameters. */
static bool has_line(const char *text, size_t skip, const char *word)
{
    size_t n = strlen(word);

    for (const char *end; (end = strstr(text, "\r\n")) != NULL; text = end + 2)
        if ((size_t)(end - text) >= skip + n && strncasecmp(text + skip, word, n) == 0 &&
            (text + skip + n == end || text[skip + n] == ' '))
            return true;
    return false;
}

/* Looks at a whole list of capabilities. */
static void check_list(const struct starttls_dialect *dialect, const struct starttls_state *state)
{
    if (state->reply != STARTTLS_MORE_CAPABILITIES || memchr(for_client.text, '\0', for_client.n))
        return;
    if (dialect == &starttls_pop3)
        require(
            has_line(for_client.text, 0, "STLS") == !state->secured, "STLS is there before TLS");
    else
        require(has_line(strstr(for_client.text, "\r\n") + 2, 4, "STARTTLS") == !state->secured,
            "STARTTLS is there before TLS"); /* the name of the server is passed over */
}

static bool take_client_line(const struct starttls_dialect *dialect, struct starttls_state *state,
    fb_bytes line, bool *awaits)
{
    enum starttls_act act;

    for_client.n = 0;
    act = dialect->command(state, line, &for_client.out);
    require(for_client.n <= ANSWER_MOST, "an answer is short");
    require((act == STARTTLS_ANSWERS || act == STARTTLS_BEGINS) == (for_client.n > 0),
        "answers and begins say something, and nothing else does");
    require(for_client.n < 2 || memcmp(for_client.text + for_client.n - 2, "\r\n", 2) == 0,
        "an answer is whole lines");
    require(act != STARTTLS_BEGINS || !state->secured, "TLS begins once");
    require(
        act != STARTTLS_PASSES || state->secured || state->optional, "nothing passes without TLS");
    state->secured = state->secured || act == STARTTLS_BEGINS;
    *awaits = act == STARTTLS_FORWARDS;
    for_client.n = 0;
    return act != STARTTLS_PASSES;
}

static void read_lines(const struct starttls_dialect *dialect, struct starttls_state *state,
    const uint8_t *p, const uint8_t *end)
{
    bool awaits = true, goes_on = true;

    for_client.n = 0;
    while (goes_on && p < end) {
        const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = newline != NULL ? (size_t)(newline - p) : (size_t)(end - p);
        uint8_t *line = malloc(n > 0 ? n : 1); /* exactly the size, for sanitizers */

        require(line != NULL, "memory");
        memcpy(line, p, n);
        p += n + 1;
        n -= n > 0 && line[n - 1] == '\r';
        if (awaits) {
            int status = dialect->reply(state, (fb_bytes) { line, n }, &for_client.out);

            require(status >= -1 && status <= 1, "a verdict is one of three");
            goes_on = status != -1 && for_client.n < sizeof(for_client.text) / 2;
            if (status == 1)
                check_list(dialect, state);
            awaits = status != 1;
        } else {
            goes_on = take_client_line(dialect, state, (fb_bytes) { line, n }, &awaits);
        }
        free(line);
    }
}

static void read_requests(const struct starttls_state *state, const uint8_t *p, size_t n)
{
    enum starttls_act act = STARTTLS_ANSWERS;
    size_t used = 1;

    while (act == STARTTLS_ANSWERS && used > 0) {
        uint8_t *copy = malloc(n > 0 ? n : 1);

        require(copy != NULL, "memory");
        if (n > 0)
            memcpy(copy, p, n);
        for_client.n = 0;
        act = starttls_read_postgres(state, (fb_bytes) { copy, n }, &used, &for_client.out);
        require(used <= n && for_client.n <= ANSWER_MOST, "no more is consumed than there is");
        require(act != STARTTLS_PASSES || (state->optional && used == 0), "nothing passes unread");
        free(copy);
        p += used;
        n -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct starttls_dialect *const dialects[] = { &starttls_smtp, &starttls_imap,
        &starttls_pop3, &starttls_postgres };
    struct input in = { data, data + size };
    uint8_t how = next_byte(&in);
    struct starttls_state state = {
        .reply = STARTTLS_GREETING, .secured = (how & 4) != 0, .optional = (how & 8) != 0
    };
    const struct starttls_dialect *dialect = dialects[how & 3];

    if (dialect->speaks_first)
        read_requests(&state, in.p, (size_t)(in.end - in.p));
    else
        read_lines(dialect, &state, in.p, in.end);
    return 0;
}
