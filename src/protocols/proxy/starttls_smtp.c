/* SPDX-License-Identifier: BSD-2-Clause */
/* SMTP (RFC 5321, 3207) and LMTP before a client's TLS. Of the reply to EHLO a line is kept until
 * the next has come, because STARTTLS may be added or taken away as the last. */
#include "protocols/proxy/starttls.h"

#include <string.h>

static enum starttls_act answer_smtp(struct starttls_out *out, const char *text)
{
    starttls_add_text(out, text);
    return STARTTLS_ANSWERS;
}

static enum starttls_act forward_smtp(struct starttls_state *state, enum starttls_reply reply)
{
    state->reply = reply;
    return STARTTLS_FORWARDS;
}

static enum starttls_act read_smtp_command(
    struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    if (starttls_has_control(line))
        return answer_smtp(out, "500 5.5.2 syntax error\r\n");
    if (starttls_is_word(line, "EHLO") || starttls_is_word(line, "LHLO"))
        return forward_smtp(state, STARTTLS_CAPABILITIES);
    if (starttls_is_word(line, "STARTTLS")) {
        if (state->secured)
            return answer_smtp(out, "503 5.5.1 TLS is active\r\n");
        if (line.n > strlen("STARTTLS"))
            return answer_smtp(out, "501 5.5.4 no parameters are allowed\r\n");
        starttls_add_text(out, "220 2.0.0 ready to start TLS\r\n");
        return STARTTLS_BEGINS;
    }
    if (starttls_is_word(line, "HELO") || starttls_is_word(line, "NOOP") ||
        starttls_is_word(line, "RSET") || starttls_is_word(line, "QUIT"))
        return forward_smtp(state, STARTTLS_OTHER);
    if (state->secured || state->optional)
        return STARTTLS_PASSES;
    return answer_smtp(out, "530 5.7.0 must issue a STARTTLS command first\r\n");
}

/* Adds the kept line, as the last of the reply or not. */
static void add_kept_line(struct starttls_state *state, struct starttls_out *out, bool last)
{
    if (state->kept_n == 0)
        return;
    state->kept[3] = last ? ' ' : '-';
    starttls_add_line(out, (fb_bytes) { (const uint8_t *)state->kept, state->kept_n });
    state->kept_n = 0;
}

static int keep_smtp_line(struct starttls_state *state, fb_bytes line)
{
    if (line.n > sizeof(state->kept))
        return -1;
    memcpy(state->kept, line.p, line.n);
    if (line.n == 3)
        state->kept[line.n++] = ' ';
    state->kept_n = (uint16_t)line.n;
    return 0;
}

/* Whether the client is not to see a capability. */
static bool hides_smtp_capability(const struct starttls_state *state, fb_bytes word)
{
    if (starttls_is_word(word, "STARTTLS"))
        return true;
    return !state->secured && !state->optional &&
           (starttls_is_word(word, "AUTH") ||
               (word.n > 5 && strncasecmp((const char *)word.p, "AUTH=", 5) == 0));
}

static int read_smtp_reply(struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    bool last = line.n < 4 || line.p[3] != '-', is_first = state->reply == STARTTLS_CAPABILITIES,
         is_list = is_first || state->reply == STARTTLS_MORE_CAPABILITIES;

    if (line.n < 3)
        return -1;
    for (int i = 0; i < 3; i++)
        if (line.p[i] < '0' || line.p[i] > '9')
            return -1;
    if (is_list && memcmp(line.p, "250", 3) != 0) {
        if (!is_first) /* lines of a reply have one code */
            return -1;
        state->reply = STARTTLS_OTHER;
        is_list = false;
    }
    if (!is_list) {
        starttls_add_line(out, line);
        return last;
    }
    state->reply = STARTTLS_MORE_CAPABILITIES;
    if (is_first || !hides_smtp_capability(state, (fb_bytes) { line.p + (line.n > 4 ? 4 : line.n),
                                                      line.n > 4 ? line.n - 4 : 0 })) {
        add_kept_line(state, out, false);
        if (keep_smtp_line(state, line) == -1)
            return -1;
    }
    if (!last)
        return 0;
    add_kept_line(state, out, state->secured);
    if (!state->secured)
        starttls_add_text(out, "250 STARTTLS\r\n");
    state->reply = STARTTLS_OTHER; /* as of a server that closes for want of commands */
    return 1;
}

const struct starttls_dialect starttls_smtp = {
    .name = "smtp", .command = read_smtp_command, .reply = read_smtp_reply
};
