/* SPDX-License-Identifier: BSD-2-Clause */
/* Words and lines, for the readers of all protocols. */
#include "protocols/proxy/starttls.h"

#include <string.h>
#include <strings.h>

void starttls_add_text(struct starttls_out *out, const char *text)
{
    out->add(out, text, strlen(text));
}

void starttls_add_line(struct starttls_out *out, fb_bytes line)
{
    if (line.n > 0)
        out->add(out, line.p, line.n);
    out->add(out, "\r\n", 2);
}

bool starttls_is_word(fb_bytes line, const char *word)
{
    size_t n = strlen(word);

    if (line.n < n || strncasecmp((const char *)line.p, word, n) != 0)
        return false;
    return line.n == n || line.p[n] == ' ';
}

bool starttls_has_control(fb_bytes line)
{
    for (size_t i = 0; i < line.n; i++)
        if (line.p[i] < ' ' || line.p[i] == 0x7f)
            return true;
    return false;
}
