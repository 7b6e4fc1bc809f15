/* SPDX-License-Identifier: BSD-2-Clause */
/* IMAP (RFC 9051) before a client's TLS. Lists of capabilities are changed wherever a server sends
 * them: in the greeting, untagged, and in the code of a tagged reply. */
#include "protocols/proxy/starttls.h"

#include <string.h>
#include <strings.h>

static void add_tagged(
    const struct starttls_state *state, struct starttls_out *out, const char *text)
{
    out->add(out, state->tag, state->tag_n);
    starttls_add_text(out, text);
}

static enum starttls_act answer_imap(
    const struct starttls_state *state, struct starttls_out *out, const char *text)
{
    add_tagged(state, out, text);
    return STARTTLS_ANSWERS;
}

/* Takes the tag off the line; false: there is none. */
static bool take_tag(struct starttls_state *state, fb_bytes *line)
{
    size_t n = 0;

    while (n < line->n && n <= STARTTLS_TAG_MOST && line->p[n] != ' ' &&
           strchr("(){%*\"\\+", line->p[n]) == NULL)
        n++;
    if (n == 0 || n > STARTTLS_TAG_MOST || n == line->n || line->p[n] != ' ')
        return false;
    memcpy(state->tag, line->p, n);
    state->tag_n = (uint8_t)n;
    line->p += n + 1;
    line->n -= n + 1;
    return true;
}

static enum starttls_act read_imap_command(
    struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    bool has_literal = line.n > 0 && line.p[line.n - 1] == '}';

    if (starttls_has_control(line) || !take_tag(state, &line)) {
        starttls_add_text(out, "* BAD syntax error\r\n");
        return STARTTLS_ANSWERS;
    }
    if (starttls_is_word(line, "STARTTLS")) {
        if (state->secured)
            return answer_imap(state, out, " BAD TLS is active\r\n");
        if (line.n > strlen("STARTTLS"))
            return answer_imap(state, out, " BAD no parameters are allowed\r\n");
        add_tagged(state, out, " OK begin TLS negotiation now\r\n");
        return STARTTLS_BEGINS;
    }
    if (!has_literal && (starttls_is_word(line, "CAPABILITY") || starttls_is_word(line, "NOOP") ||
                            starttls_is_word(line, "ID") || starttls_is_word(line, "LOGOUT"))) {
        state->reply = STARTTLS_OTHER;
        return STARTTLS_FORWARDS;
    }
    if (state->secured || state->optional)
        return STARTTLS_PASSES;
    return answer_imap(state, out, " NO [PRIVACYREQUIRED] must issue a STARTTLS command first\r\n");
}

/* Returns where the list of capabilities begins in a line, behind the word; 0: there is none. */
static size_t find_capabilities(fb_bytes line)
{
    static const char untagged[] = "* CAPABILITY", code[] = "[CAPABILITY";
    size_t n = sizeof(untagged) - 1;

    if (line.n >= n && strncasecmp((const char *)line.p, untagged, n) == 0 &&
        (line.n == n || line.p[n] == ' '))
        return n;
    n = sizeof(code) - 1;
    for (size_t i = 0; i + n < line.n; i++)
        if (strncasecmp((const char *)line.p + i, code, n) == 0 &&
            (line.p[i + n] == ' ' || line.p[i + n] == ']'))
            return i + n;
    return 0;
}

static bool hides_imap_capability(const struct starttls_state *state, fb_bytes word)
{
    if (starttls_is_word(word, "STARTTLS"))
        return true;
    if (state->secured || state->optional)
        return false;
    return starttls_is_word(word, "LOGINDISABLED") ||
           (word.n > 5 && strncasecmp((const char *)word.p, "AUTH=", 5) == 0);
}

/* Adds the line with the changed list of capabilities; the list begins at `at`. */
static void add_capabilities(
    const struct starttls_state *state, fb_bytes line, size_t at, struct starttls_out *out)
{
    out->add(out, line.p, at);
    while (at < line.n && line.p[at] == ' ') {
        fb_bytes word = { line.p + at + 1, 0 };

        while (at + 1 + word.n < line.n && word.p[word.n] != ' ' && word.p[word.n] != ']')
            word.n++;
        if (!hides_imap_capability(state, word))
            out->add(out, line.p + at, word.n + 1);
        at += word.n + 1;
    }
    if (!state->secured)
        starttls_add_text(out, state->optional ? " STARTTLS" : " STARTTLS LOGINDISABLED");
    starttls_add_line(out, (fb_bytes) { line.p + at, line.n - at });
}

static int read_imap_reply(struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    size_t at = find_capabilities(line);

    if (at > 0)
        add_capabilities(state, line, at, out);
    else
        starttls_add_line(out, line);
    if (state->reply == STARTTLS_GREETING)
        return 1;
    return line.n > state->tag_n && memcmp(line.p, state->tag, state->tag_n) == 0 &&
           line.p[state->tag_n] == ' ';
}

const struct starttls_dialect starttls_imap = {
    .name = "imap", .command = read_imap_command, .reply = read_imap_reply
};
