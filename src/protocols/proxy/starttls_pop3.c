/* SPDX-License-Identifier: BSD-2-Clause */
/* POP3 (RFC 1939, 2449, 2595) before a client's TLS. */
#include "protocols/proxy/starttls.h"

#include <string.h>

static enum starttls_act answer_pop3(struct starttls_out *out, const char *text)
{
    starttls_add_text(out, text);
    return STARTTLS_ANSWERS;
}

static enum starttls_act read_pop3_command(
    struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    if (starttls_has_control(line))
        return answer_pop3(out, "-ERR syntax error\r\n");
    if (starttls_is_word(line, "CAPA")) {
        state->reply = STARTTLS_CAPABILITIES;
        return STARTTLS_FORWARDS;
    }
    if (starttls_is_word(line, "STLS")) {
        if (state->secured)
            return answer_pop3(out, "-ERR TLS is active\r\n");
        if (line.n > strlen("STLS"))
            return answer_pop3(out, "-ERR no parameters are allowed\r\n");
        starttls_add_text(out, "+OK begin TLS negotiation\r\n");
        return STARTTLS_BEGINS;
    }
    if (starttls_is_word(line, "QUIT")) {
        state->reply = STARTTLS_OTHER;
        return STARTTLS_FORWARDS;
    }
    if (state->secured || state->optional)
        return STARTTLS_PASSES;
    return answer_pop3(out, "-ERR must issue a STLS command first\r\n");
}

static bool hides_pop3_capability(const struct starttls_state *state, fb_bytes line)
{
    if (starttls_is_word(line, "STLS"))
        return true;
    return !state->secured && !state->optional &&
           (starttls_is_word(line, "USER") || starttls_is_word(line, "SASL"));
}

static int read_pop3_reply(struct starttls_state *state, fb_bytes line, struct starttls_out *out)
{
    if (state->reply == STARTTLS_MORE_CAPABILITIES) {
        bool last = line.n == 1 && line.p[0] == '.';

        if (last && !state->secured)
            starttls_add_text(out, "STLS\r\n");
        if (!hides_pop3_capability(state, line))
            starttls_add_line(out, line);
        if (last)
            state->reply = STARTTLS_OTHER;
        return last;
    }
    starttls_add_line(out, line);
    if (state->reply != STARTTLS_CAPABILITIES || !starttls_is_word(line, "+OK"))
        return 1;
    state->reply = STARTTLS_MORE_CAPABILITIES;
    return 0;
}

const struct starttls_dialect starttls_pop3 = {
    .name = "pop3", .command = read_pop3_command, .reply = read_pop3_reply
};
