/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells addresses from names of DNS: see server_name.h. */
#include "tls/server_name.h"

#include <arpa/inet.h>
#include <string.h>

unsigned tls_server_address(fb_bytes name, uint8_t address[TLS_ADDRESS_MOST])
{
    char text[INET6_ADDRSTRLEN];

    if (name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = (fb_bytes) { name.p + 1, name.n - 2 };
    if (name.n == 0 || name.n >= sizeof(text))
        return 0;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    if (inet_pton(AF_INET, text, address) == 1)
        return sizeof(struct in_addr);
    return inet_pton(AF_INET6, text, address) == 1 ? sizeof(struct in6_addr) : 0;
}
