# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2154 # read by tests/lint
# Calls do not run in a circle: neither among the files of the master's folders, nor among the folders
# of src/. An arrow runs from a file to those that define the public functions that it calls, or names
# where an included header declares them. A header counts as the .c file of its name. Of each circle
# the shortest path is shown, with the names.

# circles files|folders FOLDER ...
circles() {
    what=$1
    shift
    facts FIW "$@" | sort | awk -F '\t' -v what="$what" '
    function node_of(path,   part) {
        sub(/\.[ch]$/, "", path)
        if (what == "files")
            return path
        split(path, part, "/")
        return part[1] "/" part[2]
    }
    # The shortest way from a node back to it, by breadth: came[x] is the node before x.
    function circle_of(start,   queue, head, tail, at, to, i, came) {
        queue[tail = 1] = start
        for (head = 1; head <= tail; head++) {
            at = queue[head]
            for (i = 1; i <= arrow_n[at]; i++) {
                to = arrow[at, i]
                if (to == start)
                    return way(start, at, came)
                if (!(to in came)) {
                    came[to] = at
                    queue[++tail] = to
                }
            }
        }
        return ""
    }
    function way(start, last, came,   at, to, text) {
        text = ""
        for (to = start; ; to = at) {
            at = to == start && text == "" ? last : came[to]
            text = " -(" names[at, to] ")-> " to text
            shown[at] = 1
            if (at == start)
                return start text
        }
    }
    # Whether a header that the file includes, however indirectly, has the word before a "(".
    function is_declared(word, path,   queue, head, tail, i, reached) {
        queue[tail = 1] = path
        for (head = 1; head <= tail; head++) {
            if (head > 1 && (queue[head], word) in has)
                return 1
            for (i = 1; i <= header_n[queue[head]]; i++)
                if (!(header[queue[head], i] in reached)) {
                    reached[header[queue[head], i]] = 1
                    queue[++tail] = header[queue[head], i]
                }
        }
        return 0
    }
    function add_arrow(from, to, name) {
        if (!((from, to) in names))
            arrow[from, ++arrow_n[from]] = to
        if ((from, to, name) in named)
            return
        named[from, to, name] = 1
        if (++name_n[from, to] <= 3)
            names[from, to] = names[from, to] (name_n[from, to] > 1 ? ", " : "") name
        else if (name_n[from, to] == 4)
            names[from, to] = names[from, to] ", ..."
    }
    # A function of the file itself is meant by its name, and so is another of the same node.
    $1 == "F" {
        own[$2, $5] = 1
    }
    $1 == "I" {
        header[$2, ++header_n[$2]] = $3
    }
    $1 == "F" && $4 == "public" && $2 ~ /\.c$/ && $5 != "main" {
        node = node_of($2)
        if (!((node, $5) in defines)) {
            defines[node, $5] = 1
            definer[$5, ++definer_n[$5]] = node
        }
    }
    $1 == "W" {
        node = node_of($2)
        if (!(node in known)) {
            known[node] = 1
            order[++n] = node
        }
        if ($4)
            has[$2, $3] = 1
        user[++use_n] = $2
        word[use_n] = $3
        called[use_n] = $4
    }
    END {
        for (i = 1; i <= use_n; i++) {
            from = node_of(user[i])
            if (!(word[i] in definer_n) || (user[i], word[i]) in own || (from, word[i]) in defines)
                continue
            if (called[i] || is_declared(word[i], user[i]))
                for (j = 1; j <= definer_n[word[i]]; j++)
                    add_arrow(from, definer[word[i], j], word[i])
        }
        for (i = 1; i <= n; i++)
            if (!(order[i] in shown) && (text = circle_of(order[i])) != "")
                print "a circle of " what ": " text
    }'
}

check_circles() {
    circles files src/master src/pool src/control src/upgrade
    circles folders src
}
