/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a problem, unless the list is full. */
#include "control/problem.h"

#include <stdarg.h>
#include <stdio.h>

void problem_add(struct problems *problems, enum problem_level level, const char *advice,
    const char *format, ...)
{
    char text[1024];
    va_list args;

    if (problems->n == PROBLEMS_MAX) {
        problems->left_out++;
        return;
    }
    problems->n++;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_object(problems->json, NULL);
    json_string(problems->json, "level", level == PROBLEM_CRITICAL ? "critical" : "warning");
    json_string(problems->json, "problem", text);
    json_string(problems->json, "advice", advice);
    json_close(problems->json);
}
