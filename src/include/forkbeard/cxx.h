/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors in C++ before C++20, which has no designated initialisers: fb_define() sets
 * the sizes of a descriptor, zeroes all other fields, and has the rest filled in:
 *
 *     static constexpr fb_ops ops = fb_define<fb_ops>([](fb_ops &o) { o.data = upper_data; });
 *     static constexpr fb_directive directives[] = {
 *         fb_define<fb_directive>([](fb_directive &d) {
 *             d.name = "upper";
 *             d.flags = FB_DIRECTIVE_HANDLER;
 *         }),
 *     };
 *     FB_PROTOCOL(upper) = fb_define<fb_protocol>([](fb_protocol &p) {
 *         p.name = "upper";
 *         fb_define_directives(p, directives);
 *         p.ops = &ops;
 *     });
 *
 * The compiler does all work, and no code runs when a module is loaded. No exception may leave a
 * callback. Part of <forkbeard/forkbeard.h>, with the same rules; for C++ only. */
#pragma once

#ifdef __cplusplus

#include <forkbeard/forkbeard.h>
#include <forkbeard/frames.h>
#include <forkbeard/protocol.h>

extern "C++" {

/* Sets the size of a struct that begins with its size, as most of the SDK do. */
template <typename Struct> constexpr void fb_define_size(Struct &x)
{
    x.size = sizeof(Struct);
}

inline constexpr void fb_define_size(fb_protocol &protocol)
{
    protocol.abi = FB_ABI;
    protocol.api = FB_API;
    protocol.size = sizeof(fb_protocol);
    protocol.directive_size = sizeof(fb_directive);
}

/* Structs that have no size. */
inline constexpr void fb_define_size(fb_directive &)
{
}
inline constexpr void fb_define_size(fb_metric &)
{
}
inline constexpr void fb_define_size(fb_frame_limit &)
{
}
inline constexpr void fb_define_size(fb_variable_definition &)
{
}

/* Makes a struct of the SDK, completed by fill(x). */
template <typename Struct, typename Fill> constexpr Struct fb_define(Fill fill)
{
    Struct x {};

    fb_define_size(x);
    fill(x);
    return x;
}

/* Set the table of directives, metrics, or variables, and its length. */
template <size_t n>
constexpr void fb_define_directives(fb_protocol &protocol, const fb_directive (&table)[n])
{
    protocol.directives = table;
    protocol.directive_n = n;
}

template <size_t n>
constexpr void fb_define_metrics(fb_protocol &protocol, const fb_metric (&table)[n])
{
    protocol.metrics = table;
    protocol.metric_n = n;
}

template <size_t n>
constexpr void fb_define_variables(fb_protocol &protocol, const fb_variable_definition (&table)[n])
{
    protocol.variables = table;
    protocol.variable_n = n;
    protocol.variable_size = sizeof(table[0]);
}
}

#endif
