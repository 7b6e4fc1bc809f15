# SPDX-License-Identifier: BSD-2-Clause
# Reads C files, and writes what the checks ask for by the letters in `kinds`, a fact a line, its
# fields divided by tabs. `root` is left out of the paths.
#   F path line linkage name parameters   a function that is defined; linkage is static or public.
#                                         Of a macro that defines one, MACRO(name), the name alone
#   D path line name                      a public function that is declared
#   W path word called                    a word of the code, once a file, and the first line where a
#                                         "(" follows it, or 0; no member's name and no tag
#   I path header                         an include, as a path of a header of src/
#   C path line text                      a comment
#   S path line text                      a string literal, joined with the literals next to it
#   A path lines assertions               a file's length, and how many assertions it has
#   L path line linkage name lines        a function's length, with the lines of its head
#   N path code comment blank tokens      lines with code, with a comment (both may be), empty lines

function fact(kind, text) {
    if (index(kinds, kind))
        print kind "\t" path "\t" text
}

function end_comment() {
    gsub(/[ \t]+/, " ", comment)
    sub(/^[ *]+/, "", comment)
    sub(/[ *]+$/, "", comment)
    fact("C", comment_line "\t" comment)
    within_comment = 0
}

# The line without comments, and with empty strings: what they have is in literal[].
function code_of(line,   code, at, token) {
    literal_n = 0
    has_comment = within_comment
    code = ""
    for (;;) {
        if (within_comment) {
            at = index(line, "*/")
            if (at == 0) {
                sub(/^[ \t]*\*/, "", line)
                comment = comment " " line
                return code
            }
            comment = comment " " substr(line, 1, at - 1)
            end_comment()
            line = substr(line, at + 2)
            code = code " "
        }
        if (!match(line, /\/\*|\/\/|["']/))
            return code line
        code = code substr(line, 1, RSTART - 1)
        line = substr(line, RSTART)
        token = substr(line, 1, 2)
        if (token == "/*") {
            within_comment = has_comment = 1
            comment = ""
            comment_line = FNR
            line = substr(line, 3)
        } else if (token == "//") {
            has_comment = 1
            comment = substr(line, 3)
            comment_line = FNR
            end_comment()
            return code
        } else {
            if (!match(line, /^"(\\.|[^"\\])*"/) && !match(line, /^'(\\.|[^'\\])*'/))
                return code
            literal[++literal_n] = token ~ /^"/ ? substr(line, 2, RLENGTH - 2) : ""
            line = substr(line, RLENGTH + 1)
            code = code "\"\""
        }
    }
}

function end_string() {
    if (string != "")
        fact("S", string_line "\t" string)
    string = ""
}

# Between literals that are one string stand at most names of formats (PRIu64).
function strings(code,   part, n, i) {
    n = split(code, part, /""/)
    for (i = 1; i <= n; i++) {
        gsub(/PRI[a-zA-Z0-9]+|[ \t]/, "", part[i])
        if (part[i] != "")
            end_string()
        if (i < n && string == "")
            string_line = FNR
        if (i < n)
            string = string literal[i]
    }
}

# Removes attributes from a head, and returns the name before its parameters, which are in `rest`.
function name_in(head,   name) {
    gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", head)
    rest = head
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*[ \t]*\(/)) {
        name = substr(rest, RSTART, RLENGTH - 1)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/[ \t]+$/, "", name)
        if (name !~ /^[A-Z_0-9]+$/ && name !~ /^(void|int|unsigned|char|long|double|bool)$/) {
            gsub(/[ \t]+/, " ", rest)
            return name
        }
    }
    return ""
}

# `head` is what stands before a brace outside of all others.
function define(head,   name, linkage) {
    if (head ~ /=/)
        return
    linkage = head ~ /(^|[^A-Za-z_0-9])static([^A-Za-z_0-9]|$)/ ? "static" : "public"
    name = name_in(head)
    if (name == "" && match(head, /[A-Z_0-9]+\([a-z_0-9]+[,)]/)) {
        split(substr(head, RSTART, RLENGTH - 1), part, "(")
        if (part[1] in static_macro)
            linkage = "static"
        name = part[2]
        rest = ""
    }
    if (name == "")
        return
    fact("F", head_line "\t" linkage "\t" name "\t" rest)
    body = linkage "\t" name
}

# `head` is what stands before a semicolon outside of all braces.
function declare(head,   name) {
    if (head ~ /=|\{|(^|[ \t])(static|typedef|static_assert)[ \t(]/ || head !~ /[ \t*][a-z_A-Z0-9]+[ \t]*\(/)
        return
    name = name_in(head)
    if (name != "")
        fact("D", head_line "\t" name)
}

function outside(code,   mark) {
    while (match(code, /[{};]/)) {
        mark = substr(code, RSTART, 1)
        if (depth == 0)
            head = head " " substr(code, 1, RSTART - 1)
        code = substr(code, RSTART + 1)
        if (mark == ";" && depth == 0)
            declare(head)
        if (mark == "{") {
            if (depth++ == 0)
                define(head)
        } else if (mark == "}" && depth > 0 && --depth == 0 && body != "") {
            fact("L", head_line "\t" body "\t" FNR - head_line + 1)
            body = ""
        }
        if (depth == 0)
            head = ""
    }
    if (depth == 0) {
        if (head ~ /^[ \t]*$/)
            head_line = FNR
        head = head " " code
    }
}

function words(code,   word, n, i) {
    gsub(/(struct|union|enum)[ \t]+[A-Za-z_][A-Za-z_0-9]*/, " ", code)
    gsub(/(->|\.)[ \t]*[A-Za-z_][A-Za-z_0-9]*/, " ", code)
    gsub(/\(\*[A-Za-z_][A-Za-z_0-9]*\)/, " ", code)
    gsub(/[ \t]*\(/, "( ", code)
    n = split(code, word, /[^A-Za-z_0-9(]+/)
    for (i = 1; i <= n; i++)
        if (sub(/\($/, "", word[i])) {
            if (!is_word[word[i]])
                is_word[word[i]] = FNR
        } else if (!(word[i] in is_word))
            is_word[word[i]] = 0
}

function end_words(   word) {
    for (word in is_word) {
        if (word ~ /^[A-Za-z_]/)
            fact("W", word "\t" is_word[word])
        delete is_word[word]
    }
}

function count_line(line, code) {
    comment_n += has_comment
    blank_n += line ~ /^[ \t]*$/
    code_n += code ~ /[^ \t]/
    token_n += gsub(/""|[A-Za-z_0-9]+/, " ", code)
    token_n += gsub(/<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[-<>=!+*\/%&|^]=|&&|\|\||##/, " ", code)
    token_n += gsub(/[^ \t\\]/, "", code)
}

function include(line) {
    gsub(/^[ \t]*#[ \t]*include[ \t]*["<]|[">].*/, "", line)
    fact("I", line ~ /^forkbeard\// ? "src/include/" line : "src/" line)
}

function end_file() {
    if (path == "")
        return
    end_words()
    end_string()
    fact("A", lines "\t" assertions)
    fact("N", code_n "\t" comment_n "\t" blank_n "\t" token_n)
}

FNR == 1 {
    end_file()
    path = FILENAME
    if (index(path, root) == 1)
        path = substr(path, length(root) + 1)
    within_comment = directive = depth = assertions = 0
    code_n = comment_n = blank_n = token_n = 0
    head = body = ""
}
{
    lines = FNR
    code = code_of($0)
    if (index(kinds, "N"))
        count_line($0, code)
    if (index(kinds, "W"))
        words(code)
    if (index(kinds, "S"))
        strings(code)
    if ($0 ~ /^[ \t]*#[ \t]*include[ \t]/)
        include($0)
    if (directive || code ~ /^[ \t]*#/) {
        if (!directive)
            macro = code ~ /^[ \t]*#[ \t]*define[ \t]/ ? $2 : ""
        sub(/\(.*/, "", macro)
        if (macro != "" && code ~ /(^|[ \t])static /)
            static_macro[macro] = 1
        directive = $0 ~ /\\$/
        next
    }
    if (index(kinds, "A")) {
        rest = code
        while (match(rest, /(^|[^A-Za-z_0-9])(assert|(FB_)?CHECK_KIND)[ \t]*\(/)) {
            assertions++
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
    if (kinds ~ /[DFL]/)
        outside(code)
}
END {
    end_file()
}
