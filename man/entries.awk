# SPDX-License-Identifier: BSD-2-Clause
# Makes rows of C, { "name", "text" }, of the directives' entries in forkbeard.conf(5), as plain text
# for `forkbeard explain`. Knows the macros that the manual uses, and fails at any other.

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    failed = 1
    exit 1
}

# The text of a word with escapes.
function plain(word,   out, c) {
    out = ""
    while (word != "") {
        c = substr(word, 1, 1)
        word = substr(word, 2)
        if (c != "\\") {
            out = out c
            continue
        }
        c = substr(word, 1, 1)
        word = substr(word, 2)
        if (c == "e")
            out = out "\\"
        else if (c == "-")
            out = out "-"
        else if (c == "(" && substr(word, 1, 2) == "dq") {
            out = out "\""
            word = substr(word, 3)
        } else if (c != "&")
            fail("the escape \\" c " is not known")
    }
    return out
}

# Splits a line into arg[1] to arg[arg_n]; quoted[i]: the word was in quotes.
function split_line(line,   c) {
    arg_n = 0
    while (line != "") {
        sub(/^[ \t]+/, "", line)
        if (line == "")
            break
        arg_n++
        quoted[arg_n] = substr(line, 1, 1) == "\""
        if (quoted[arg_n]) {
            line = substr(line, 2)
            c = index(line, "\"")
            arg[arg_n] = substr(line, 1, c - 1)
            line = substr(line, c + 1)
        } else {
            c = match(line, /[ \t]/)
            arg[arg_n] = c > 0 ? substr(line, 1, c - 1) : line
            line = c > 0 ? substr(line, c) : ""
        }
    }
}

function add(word) {
    part = part == "" || joined ? part word : part " " word
    joined = 0
}

function close_with(word) {
    part = part word
    joined = 0
}

function open_with(word) {
    add(word)
    joined = 1
}

function is_closing(i) {
    return !quoted[i] && arg[i] ~ /^[.,;:?!)]$/
}

function is_macro(i) {
    return !quoted[i] && (arg[i] in macros)
}

# The last word of the line but for the punctuation behind it.
function before_punctuation(   last) {
    for (last = arg_n; last > 0 && is_closing(last); last--)
        ;
    return last
}

# Whether the line joins words, as in "unix:path".
function joins_words(   i) {
    for (i = 2; i <= arg_n; i++)
        if (!quoted[i] && arg[i] == "Ns")
            return 1
    return 0
}

# The last of the words from `i` that are a directive with its arguments, or one of these.
function end_of_run(i, last) {
    while (i < last && !is_closing(i + 1) && (!is_macro(i + 1) || arg[i + 1] ~ /^(Ic|Cm|Ar)$/))
        i++
    return i
}

# Adds words in quotes, as messages have names and values.
function add_run(i, end,   run) {
    for (run = ""; i <= end; i++)
        if (!is_macro(i))
            run = run (run == "" ? "" : " ") plain(arg[i])
    add("\"" run "\"")
}

# Renders the words from `i` to `last`. In running text, names and values are put in quotes; words
# of `Fl` are options.
function render(i, last, running,   of, name, end) {
    running = running && !joins_words()
    for (of = ""; i <= last; i++) {
        name = arg[i]
        if (!is_macro(i)) {
            if (is_closing(i))
                close_with(plain(name))
            else if (running && (of == "Ic" || of == "Cm")) {
                end = end_of_run(i, last)
                add_run(i, end)
                i = end
            } else
                add((of == "Fl" ? "-" : "") plain(name))
            continue
        }
        of = name
        if (name == "Ns")
            joined = 1
        else if (name == "Oo" || name == "Po")
            open_with(name == "Oo" ? "[" : "(")
        else if (name == "Oc" || name == "Pc")
            close_with(name == "Oc" ? "]" : ")")
        else if (name == "Nm" && i == last)
            add("forkbeard")
        else if (name == "Xr") {
            add(arg[i + 1] "(" arg[i + 2] ")")
            i += 2
        } else if (name in enclosed) {
            end = before_punctuation()
            end = end < last ? end : last
            open_with(substr(enclosed[name], 1, 1))
            render(i + 1, end, running)
            close_with(substr(enclosed[name], 2, 1))
            i = end
        }
    }
}

# Writes a line of the entry's text.
function write_line(line) {
    if (blank && written)
        text = text "\n"
    blank = 0
    written = 1
    text = text line "\n"
}

function spaces(n,   out) {
    for (out = ""; n > 0; n--)
        out = out " "
    return out
}

# Writes the paragraph in lines of up to 78 columns.
function end_paragraph(   n, word, i, line) {
    if (part == "")
        return
    n = split(part, word, " ")
    line = spaces(indent - length(hanging)) hanging word[1]
    for (i = 2; i <= n; i++)
        if (length(line) + 1 + length(word[i]) > 78) {
            write_line(line)
            line = spaces(indent) word[i]
        } else
            line = line " " word[i]
    write_line(line)
    part = ""
    joined = 0
    hanging = ""
}

# Text of C in quotes, a line each.
function in_c(value,   i, c, line, out) {
    out = line = ""
    for (i = 1; i <= length(value); i++) {
        c = substr(value, i, 1)
        if (c == "\n") {
            out = out "\n    \"" line "\\n\""
            line = ""
        } else
            line = line (c == "\\" || c == "\"" ? "\\" : "") c
    }
    return out
}

function end_entry() {
    end_paragraph()
    if (entry != "")
        printf "{ \"%s\",%s },\n", entry, in_c(text)
    entry = ""
}

function begin_entry() {
    end_entry()
    entry = arg[2]
    text = ""
    written = blank = indent = 0
    part = hanging = ""
    render(1, arg_n, 0)
    if (part !~ /\}$/)
        part = part ";"
    hanging = "Syntax:  "
    indent = length(hanging)
    end_paragraph()
}

function begin_item() {
    end_paragraph()
    if (kind[depth] == "bullet") {
        hanging = "- "
        return
    }
    if (arg[1] == "Default:" || arg[1] == "Context:") {
        hanging = substr(arg[1] "  ", 1, 9)
        indent = length(hanging)
        return
    }
    indent = base[depth]
    render(1, arg_n, 0)
    end_paragraph()
    indent = base[depth] + 4
}

function begin_list() {
    end_paragraph()
    depth++
    base[depth] = depth == 1 ? 0 : indent
    kind[depth] = "tag"
    if (arg[1] == "-bullet") {
        kind[depth] = "bullet"
        indent = base[depth] + 2
    }
    if (depth > 1 && arg[3] != "Default:")
        blank = 1
}

function end_list() {
    end_paragraph()
    if (depth == 1)
        end_entry()
    indent = depth <= 2 ? 0 : base[depth]
    depth--
}

# A line of a literal display, or of .Dl.
function write_literal(line) {
    write_line(line == "" ? "" : spaces(indent + 4) plain(line))
}

BEGIN {
    n = split("Ic Cm Ar Fl Ns Op Oo Oc Pa Dv Dq Ql Sq Li Ev Er Em Sy No Xr Sx Pq Po Pc Va Nm Brq", word, " ")
    for (i = 1; i <= n; i++)
        macros[word[i]] = 1
    enclosed["Op"] = "[]"
    enclosed["Pq"] = "()"
    enclosed["Brq"] = "{}"
    enclosed["Sq"] = "''"
    enclosed["Dq"] = enclosed["Ql"] = enclosed["Sx"] = "\"\""
    depth = 0
}

/^\.\\"/ {
    next
}

literal && $0 != ".Ed" {
    if (entry != "")
        write_literal($0)
    next
}

/^\./ {
    name = $1
    sub(/^\.[A-Z][A-Za-z]* */, "")
    name = substr(name, 2)
    split_line($0)
    if (name == "Sh" || name == "Ss") {
        end_entry()
        section = arg[1]
        among = section ~ /^(MAIN|EVENTS|STREAM|TLS|UPSTREAM|PROTOCOLS)$/
        depth = 0
        next
    }
    if (!among)
        next
    if (name == "Bl")
        begin_list()
    else if (name == "El")
        end_list()
    else if (name == "It" && depth == 1)
        begin_entry()
    else if (name == "It")
        begin_item()
    else if (entry == "")
        next
    else if (name == "Pp") {
        end_paragraph()
        blank = 1
    } else if (name == "Bd") {
        end_paragraph()
        blank = literal = 1
    } else if (name == "Ed")
        literal = 0
    else if (name == "Dl") {
        end_paragraph()
        blank = 1
        write_literal($0)
    } else if (name in macros) {
        for (i = arg_n; i > 0; i--) {
            arg[i + 1] = arg[i]
            quoted[i + 1] = quoted[i]
        }
        arg[1] = name
        quoted[1] = 0
        arg_n++
        render(1, arg_n, 1)
    } else
        fail("the macro ." name " is not known")
    next
}

among && entry != "" {
    add(plain($0))
}

END {
    if (!failed)
        end_entry()
}
