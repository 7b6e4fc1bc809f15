/* SPDX-License-Identifier: BSD-2-Clause */
/* Words: quotes, escapes, comments, line ends, forbidden bytes, and the position of each. */
#include "conf/lexer.h"
#include "conf/render.h"
#include "support/test.h"

#include <string.h>

struct lexed {
    struct conf conf;
    struct conf_file file;
    struct lexer lexer;
};

static void set_up(struct lexed *lexed, const char *text, size_t size)
{
    conf_create(&lexed->conf);
    lexed->file = (struct conf_file) { .name = "t", .text = text, .size = size };
    lexer_init(&lexed->lexer, &lexed->conf.source, &lexed->file, "file");
}

static void tear_down(struct lexed *lexed)
{
    conf_destroy(&lexed->conf);
}

/* Shows all tokens: words as <text>, the end as nothing, a failure as "!". */
static void lex_text(struct lexed *lexed, char *out, size_t size)
{
    static const char *const tokens[] = {
        [TOKEN_SEMICOLON] = ";",
        [TOKEN_OPEN] = "{",
        [TOKEN_CLOSE] = "}",
        [TOKEN_END] = "",
        [TOKEN_FAILED] = "!",
    };
    struct conf_word word;
    enum lexer_token token;
    size_t n = 0;

    *out = '\0';
    do {
        token = lexer_next(&lexed->lexer, &word);
        if (token == TOKEN_WORD)
            n += (size_t)snprintf(out + n, size - n, "<%s>", word.text);
        else
            n += (size_t)snprintf(out + n, size - n, "%s", tokens[token]);
        ck_assert_uint_lt(n, size);
    } while (token != TOKEN_END && token != TOKEN_FAILED);
}

struct row {
    const char *text;
    const char *tokens;
};

static const struct row rows[] = {
    { "", "" },
    { " \t\r\n", "" },
    { "a", "<a>" },
    { "worker_processes auto;", "<worker_processes><auto>;" },
    { "a b\tc\rd\ne\r\nf", "<a><b><c><d><e><f>" },
    { "events{}", "<events>{}" },
    { "a{b;}c;", "<a>{<b>;}<c>;" },
    { ";;{{}}", ";;{{}}" },
    /* comments begin where a word could */
    { "# all of it", "" },
    { "a; # b;\nc;", "<a>;<c>;" },
    { "a;#b;\nc;", "<a>;<c>;" },
    { "a #b;\n c;", "<a><c>;" },
    { "a#b c;", "<a#b><c>;" },
    { "#a # b\r\nc;", "<c>;" },
    { "{#}\n}#{", "{}" },
    { "# \"\n a;", "<a>;" },
    /* "}" ends no word */
    { "a}; b }", "<a}>;<b>}" },
    { "a}b", "<a}b>" },
    /* quoted words */
    { "\"a b\" 'c d';", "<a b><c d>;" },
    { "\"\" '';", "<><>;" },
    { "\"a;{}#\n b\";", "<a;{}#\n b>;" },
    { "\"it's\" 'say \"x\"';", "<it's><say \"x\">;" },
    { "\"a\"{'b'{", "<a>{<b>{" },
    { "\"a\"\n\"b\"\t\"c\"\r\n;", "<a><b><c>;" },
    { "if (\"a\" = \"b\") {", "<if><(\"a\"><=><b><)>{" },
    { "if ($a = \"b\") {", "<if><($a><=><b><)>{" },
    { "(\"a\") \"b\")c;", "<(\"a\")><b><)c>;" },
    { "a\"b c\"d;", "<a\"b><c\"d>;" },
    { "it's;", "<it's>;" },
    { "\"a", "!" },
    { "\"a\"", "<a>" },
    /* backslashes */
    { "\"a\\\"b\" 'a\\'b' \"a\\\\\";", "<a\"b><a'b><a\\>;" },
    { "a\\\"b\\'c\\\\d;", "<a\"b'c\\d>;" },
    { "\\\"a b\\\";", "<\"a><b\">;" },
    { "\\t\\r\\n \"x\\ty\\rz\\n\";", "<\t\r\n><x\ty\rz\n>;" },
    { "a\\ b a\\;b a\\{b a\\#b \\#c;", "<a\\ b><a\\;b><a\\{b><a\\#b><\\#c>;" },
    { "\\; \\{ \\};", "<\\;><\\{><\\}>;" },
    { "\\d+\\.\\w*;", "<\\d+\\.\\w*>;" },
    { "\\\\\\\\ \\\\t;", "<\\\\><\\t>;" },
    { "\\\\n \\\\\\n;", "<\\n><\\\n>;" },
    { "a\\\nb;", "<a\\\nb>;" },
    { "a\\", "<a\\>" },
    { "\\", "<\\>" },
    { "\"a\\\";", "!" },
    { "\"\\", "!" },
    /* the brace of a variable opens no block */
    { "${a} b${c}d;", "<${a}><b${c}d>;" },
    { "a${b{c}d;", "<a${b>{<c}d>;" },
    { "${{a;", "<${{a>;" },
    { "$a{", "<$a>{" },
    { "$ {", "<$>{" },
    { "\\${a", "<\\$>{<a>" },
    { "$\\{a;", "<$\\{a>;" },
    { "$;", "<$>;" },
    { "\"${a}\" '${';", "<${a}><${>;" },
    /* bytes that are not ASCII */
    { "caf\xc3\xa9 \xff\xfe;", "<caf\xc3\xa9><\xff\xfe>;" },
};

START_TEST(words_are_those_of_nginx)
{
    const struct row *row = &rows[_i];
    struct lexed lexed;
    char tokens[256];

    set_up(&lexed, row->text, strlen(row->text));
    lex_text(&lexed, tokens, sizeof(tokens));
    ck_assert_msg(
        strcmp(tokens, row->tokens) == 0, "%s\ngave %s\nnot  %s", row->text, tokens, row->tokens);
    ck_assert_uint_eq(lexed.conf.report.error_n, strchr(row->tokens, '!') != NULL ? 1 : 0);
    tear_down(&lexed);
}
END_TEST

#define BYTES(s) s, sizeof(s) - 1

static const struct {
    const char *text;
    size_t size;
    const char *message;
} mistakes[] = {
    { BYTES("a \"b"),
        "unexpected end of file, the quote (\") opened at line 1 is not closed in t:1:3" },
    { BYTES("a;\n\n b 'c;\nd;\n"),
        "unexpected end of file, the quote (') opened at line 3 is not closed in t:3:4" },
    { BYTES("a \"b\"c;"),
        "unexpected \"c\" after a quoted word, expecting white space, \";\" or \"{\" in t:1:6" },
    { BYTES("a \"b\"};"),
        "unexpected \"}\" after a quoted word, expecting white space, \";\" or \"{\" in t:1:6" },
    { BYTES("a \"b\"#"),
        "unexpected \"#\" after a quoted word, expecting white space, \";\" or \"{\" in t:1:6" },
    { BYTES("\"a\"\xc3\xa9;"),
        "unexpected \"\xc3\xa9\" after a quoted word, expecting white space, "
        "\";\" or \"{\" in t:1:4" },
    { BYTES("a \"b;\n\nc \"d\";"),
        "unexpected \"d\" after a quoted word, expecting white space, \";\" "
        "or \"{\"; the quote was opened at line 1 in t:3:4" },
    { BYTES("\0"), "unexpected NUL byte, expecting text in t:1:1" },
    { BYTES("a;\nb\0c;"), "unexpected NUL byte, expecting text in t:2:2" },
    { BYTES("a # \0\n"), "unexpected NUL byte, expecting text in t:1:5" },
    { BYTES("a \"b\n\0\""), "unexpected NUL byte, expecting text in t:2:1" },
    { BYTES("\"b\"\0"), "unexpected NUL byte, expecting text in t:1:4" },
    { BYTES("a\\\0b;"), "unexpected NUL byte, expecting text in t:1:3" },
    { BYTES("\"a\\\0b\";"), "unexpected NUL byte, expecting text in t:1:4" },
};

START_TEST(mistakes_say_where_and_what_was_expected)
{
    struct lexed lexed;
    char tokens[64], *report;

    set_up(&lexed, mistakes[_i].text, mistakes[_i].size);
    lex_text(&lexed, tokens, sizeof(tokens));
    report = render_report(&lexed.conf.report);
    report[strcspn(report, "\n")] = '\0';
    ck_assert_str_eq(report, mistakes[_i].message);
    ck_assert_uint_eq(lexed.conf.report.error_n, 1);
    free(report);
    tear_down(&lexed);
}
END_TEST

START_TEST(words_know_where_they_stand)
{
    static const char text[] = "a bb;\r\n\t'c\nd' {\n  # e\n}\n";
    static const struct {
        unsigned line, column, width;
    } places[] = { { 1, 1, 1 }, { 1, 3, 2 }, { 1, 5, 1 }, { 2, 2, 5 }, { 3, 4, 1 }, { 5, 1, 1 },
        { 6, 1, 1 } };
    struct lexed lexed;
    struct conf_word word;

    set_up(&lexed, BYTES(text));
    for (size_t i = 0; i < countof(places); i++) {
        lexer_next(&lexed.lexer, &word);
        ck_assert_ptr_eq(word.file, &lexed.file);
        ck_assert_uint_eq(word.line, places[i].line);
        ck_assert_uint_eq(word.column, places[i].column);
        ck_assert_uint_eq(word.width, places[i].width);
    }
    ck_assert_int_eq(lexer_next(&lexed.lexer, &word), TOKEN_END);
    tear_down(&lexed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, words_are_those_of_nginx, 0, countof(rows));
    tcase_add_loop_test(tcase, mistakes_say_where_and_what_was_expected, 0, countof(mistakes));
    tcase_add_test(tcase, words_know_where_they_stand);
}

TEST_MAIN("lexer", add_tests)
