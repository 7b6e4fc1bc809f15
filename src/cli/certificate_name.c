/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks names for a certificate, as TLS clients compare names: letters of ASCII, digits, hyphens
 * and underscores in labels of DNS. Never resolves a name. */
#include "cli/certificate_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#define NAME_MOST 253
#define LABEL_MOST 63

static const char *label_mistake(const char *label, size_t n)
{
    if (n == 0)
        return "has an empty label";
    if (n > LABEL_MOST)
        return "has a label of more than 63 characters";
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)label[i];

        if (c >= 0x80)
            return "has a character beyond ASCII: use the form that begins with \"xn--\"";
        if (c == '*')
            return "has a \"*\" that is not the whole first label";
        if (!isalnum(c) && c != '-' && c != '_')
            return "has a character other than letters, digits, \"-\", \"_\" and \".\"";
    }
    return label[0] == '-' || label[n - 1] == '-' ? "has a label with a \"-\" at an end" : NULL;
}

const char *certificate_name_parse(struct certificate_name *name, const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];
    const char *label = text, *mistake;
    size_t n;

    *name = (struct certificate_name) {
        .text = text,
        .is_address =
            inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1,
    };
    if (name->is_address)
        return NULL;
    if (strchr(text, ':') != NULL)
        return "is neither a DNS name nor an IPv6 address";
    if (strlen(text) > NAME_MOST)
        return "has more than 253 characters";
    if (strncmp(label, "*.", 2) == 0)
        label += 2;
    for (;; label += n + 1) {
        n = strcspn(label, ".");
        mistake = label_mistake(label, n);
        if (mistake != NULL)
            return mistake;
        if (label[n] == '\0')
            break;
    }
    return strspn(label, "0123456789") == n ? "is no IPv4 address, but ends as if it were" : NULL;
}
