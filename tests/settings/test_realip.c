/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `set_real_ip_from`: values, and a server's inheritance; and the addresses of
 * clients with a PROXY header. */
#include "net/address_parse.h"
#include "settings/loading.h"
#include "support/test.h"

#include "features/features.h"
#include "features/proxy_protocol/proxy_protocol.h"
#include "session/session.h"

#include <string.h>

static int64_t trusted_n(const struct server *server)
{
    const struct proxy_protocol_values *values = server_feature(server, FEATURE_PROXY_PROTOCOL);

    return values->trusted.n;
}

static bool trusts(const struct server *server, const char *text)
{
    const struct proxy_protocol_values *values = server_feature(server, FEATURE_PROXY_PROTOCOL);
    const struct trusted_setting *trusted = &values->trusted;
    struct address address;

    ck_assert_ptr_null(address_parse(text, 0, &address));
    for (int64_t i = 0; i < trusted->n; i++)
        if (address_block_matches(&trusted->blocks[i], &address.any))
            return true;
    return false;
}

START_TEST(a_server_s_stand_in_place_of_the_stream_s)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        "events { } stream { set_real_ip_from 10.0.0.0/8; server { listen 127.0.0.1:1; }"
        "server { listen 127.0.0.1:2; set_real_ip_from 192.0.2.1; set_real_ip_from 2001:db8::/32; }"
        "set_real_ip_from unix:; set_real_ip_from localhost; }",
        "");
    ck_assert(trusts(loading_server(&loading, 0), "10.9.9.9"));
    ck_assert(trusts(loading_server(&loading, 0), "127.0.0.1") ||
              trusts(loading_server(&loading, 0), "[::1]"));
    ck_assert(trusts(loading_server(&loading, 0), "unix:/a"));
    ck_assert(!trusts(loading_server(&loading, 0), "192.0.2.1"));
    ck_assert_int_eq(trusted_n(loading_server(&loading, 1)), 2);
    ck_assert(trusts(loading_server(&loading, 1), "192.0.2.1"));
    ck_assert(trusts(loading_server(&loading, 1), "[2001:db8::9]"));
    ck_assert(!trusts(loading_server(&loading, 1), "10.9.9.9"));
    accept_text(&loading, "events { } stream { server { listen 127.0.0.1:1; } }", "");
    ck_assert(!trusts(loading_server(&loading, 0), "127.0.0.1"));
    loading_end(&loading);
}
END_TEST

START_TEST(wrong_values)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "::1; proxy_protocol_timeout 0", "the value must be at least 1" },
        { "10.0.0.0/33", "prefix length out of range 0 to 32" },
        { "unix:/run/a", "invalid address" },
        { "\"local host\"", "invalid host" },
        { "::1; return $proxy_protocol_tlv_0xfg", "unknown \"proxy_protocol_tlv_0xfg\" variable" },
        { "::1; return $proxy_protocol_tlv_0x100",
            "unknown \"proxy_protocol_tlv_0x100\" variable" },
        { "::1; return ${proxy_protocol_tlv_ssl_0xz}",
            "unknown \"proxy_protocol_tlv_ssl_0xz\" variable" },
        { "::1; return $proxy_protocol_tlv_crc", "unknown \"proxy_protocol_tlv_crc\" variable" },
    };
    struct loading loading;

    loading_begin(&loading);
    for (size_t i = 0; i < countof(cases); i++) {
        char text[256];

        snprintf(text, sizeof(text),
            "events { } stream { server { listen 127.0.0.1:1; set_real_ip_from %s; } }",
            cases[i].text);
        load(&loading, text);
        ck_assert_ptr_null(loading.cycle);
        ck_assert_msg(strstr(loading.report, cases[i].message) != NULL, "%s", loading.report);
    }
    loading_end(&loading);
}
END_TEST

/* Sessions keep headers only for a use of a header. */
START_TEST(a_use_is_noted)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(
        &loading, "events { } stream { server { listen 127.0.0.1:1; return $remote_addr; } }", "");
    ck_assert(!loading.cycle->stream.variables->uses_proxy);
    accept_text(&loading,
        "events { } stream { server { listen 127.0.0.1:1; return $Proxy_Protocol_TLV_0xEA; } }",
        "");
    ck_assert(loading.cycle->stream.variables->uses_proxy);
    accept_text(&loading,
        "events { } stream { log_format a $realip_remote_addr; access_log /dev/null a; "
        "server { listen 127.0.0.1:1; } }",
        "");
    ck_assert(loading.cycle->stream.variables->uses_proxy);
    loading_end(&loading);
}
END_TEST

START_TEST(there_may_be_many)
{
    struct loading loading;
    char *text = malloc(100 * 1000), *end = text;

    ck_assert_ptr_nonnull(text);
    end = stpcpy(end, "events { } stream { server { listen 127.0.0.1:1; ");
    for (int i = 0; i < 1000; i++)
        end += sprintf(end, "set_real_ip_from 10.%d.%d.0/24; ", i / 250, i % 250);
    strcpy(end, "} }");
    loading_begin(&loading);
    accept_text(&loading, text, "");
    ck_assert_int_eq(trusted_n(loading_server(&loading, 0)), 1000);
    ck_assert(trusts(loading_server(&loading, 0), "10.0.0.1"));
    ck_assert(trusts(loading_server(&loading, 0), "10.3.249.1"));
    ck_assert(!trusts(loading_server(&loading, 0), "10.3.250.1"));
    loading_end(&loading);
    free(text);
}
END_TEST

static const struct binding *first_binding(const struct listener *listener)
{
    const struct port *port = listener->owner;

    CHECK_KIND(port, PORT_KIND);
    return STAILQ_FIRST(&port->bindings);
}

/* The parameter belongs to an address, also where a wildcard's socket takes its clients. */
START_TEST(an_address_has_headers)
{
    struct loading loading;
    const struct binding *binding;
    const struct listener *listener;

    loading_begin(&loading);
    accept_text(&loading,
        "events { } stream { server { listen 1; } server { listen 127.0.0.1:1 proxy_protocol; }"
        "server { listen 127.0.0.1:2-3 proxy_protocol; } }",
        "");
    listener = STAILQ_FIRST(&loading.cycle->stream.listeners.list);
    binding = first_binding(listener);
    ck_assert_ptr_eq(binding->ops, &session_conn_ops);
    ck_assert_ptr_eq(STAILQ_NEXT(binding, link)->ops, &proxy_protocol_ops);
    for (int port = 2; port <= 3; port++) {
        listener = STAILQ_NEXT(listener, link);
        ck_assert_uint_eq(address_port(&listener->address), port);
        ck_assert_ptr_eq(first_binding(listener)->ops, &proxy_protocol_ops);
    }
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_server_s_stand_in_place_of_the_stream_s);
    tcase_add_test(tcase, wrong_values);
    tcase_add_test(tcase, a_use_is_noted);
    tcase_add_test(tcase, there_may_be_many);
    tcase_add_test(tcase, an_address_has_headers);
}

TEST_MAIN("realip", add_tests)
