# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2016,SC2119,SC2120,SC2154 # read by tests/lint
# Calls do not run in a circle: neither among the folders of src/, nor among files. An arrow runs
# from a file to the files with the public functions that the file calls, or names where an included
# header declares them. A header counts as the .c file of the same name.

# Writes the shortest path of each circle, with the names of the calls. `circles sizes` writes the
# number of files of each group in which all reach one another instead.
circles() {
    facts FIW src | sort | awk -F '\t' -v what="${1-}" '
    function folder_of(path,   part) {
        split(path, part, "/")
        return part[2]
    }
    function file_of(path) {
        sub(/\.[ch]$/, "", path)
        return path
    }
    function node_of(graph, path) {
        return graph ":" (graph == "folders" ? "src/" folder_of(path) : file_of(path))
    }
    function add_arrow(graph, user, definer, name,   from, to) {
        from = node_of(graph, user)
        to = node_of(graph, definer)
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
    # The headers that a file includes, however indirectly.
    function reach(path,   queue, head, tail, i) {
        queue[tail = 1] = path
        for (head = 1; head <= tail; head++)
            for (i = 1; i <= header_n[queue[head]]; i++)
                if (!((path, header[queue[head], i]) in reached)) {
                    reached[path, header[queue[head], i]] = 1
                    queue[++tail] = header[queue[head], i]
                }
        has_reached[path] = 1
    }
    # Whether an included header has the word before a "(".
    function is_declared(word, path,   i) {
        if (!(path in has_reached))
            reach(path)
        for (i = 1; i <= declarer_n[word]; i++)
            if ((path, declarer[word, i]) in reached)
                return 1
        return 0
    }
    # Tarjan: component[x] is the same for nodes that reach one another, and size[] their number.
    function visit(at,   i, to) {
        number[at] = low[at] = ++numbers
        stack[++stack_n] = at
        for (i = 1; i <= arrow_n[at]; i++) {
            to = arrow[at, i]
            if (!(to in number)) {
                visit(to)
                if (low[to] < low[at])
                    low[at] = low[to]
            } else if (!(to in component) && number[to] < low[at])
                low[at] = number[to]
        }
        if (low[at] < number[at])
            return
        do {
            to = stack[stack_n--]
            component[to] = at
            size[at]++
        } while (to != at)
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
                if (!(to in came) && component[to] == component[start]) {
                    came[to] = at
                    queue[++tail] = to
                }
            }
        }
    }
    function plain(node) {
        sub(/^[a-z]*:/, "", node)
        return node
    }
    function way(start, last, came,   at, to, text) {
        text = ""
        for (to = start; ; to = at) {
            at = to == start && text == "" ? last : came[to]
            text = " -(" names[at, to] ")-> " plain(to) text
            shown[at] = 1
            if (at == start)
                return plain(start) text
        }
    }
    function show(graph,   i, node) {
        for (i = 1; i <= node_n; i++) {
            node = nodes[i]
            if (index(node, graph ":") == 1 && size[component[node]] > 1 && !(node in shown))
                print "a circle of " graph ": " circle_of(node)
        }
    }
    # A function of the file itself is meant by its name, and so is another of the same node.
    $1 == "F" {
        own[$2, $5] = 1
    }
    $1 == "I" {
        header[$2, ++header_n[$2]] = $3
    }
    $1 == "F" && $4 == "public" && $2 ~ /\.c$/ && $5 != "main" && !(($5, $2) in is_definer) {
        is_definer[$5, $2] = 1
        definer[$5, ++definer_n[$5]] = $2
        defines[file_of($2), $5] = defines[folder_of($2), $5] = 1
    }
    $1 == "W" {
        if (!($2 in known)) {
            known[$2] = 1
            for (graph = 1; graph <= 2; graph++) {
                node = node_of(graph == 1 ? "files" : "folders", $2)
                if (!(node in is_node)) {
                    is_node[node] = 1
                    nodes[++node_n] = node
                }
            }
        }
        if (!($3 in definer_n))
            next
        if ($4 && $2 ~ /\.h$/)
            declarer[$3, ++declarer_n[$3]] = $2
        user[++use_n] = $2
        word[use_n] = $3
        called[use_n] = $4
    }
    END {
        for (i = 1; i <= use_n; i++) {
            if ((user[i], word[i]) in own || !(called[i] || is_declared(word[i], user[i])))
                continue
            for (j = 1; j <= definer_n[word[i]]; j++) {
                if (!((file_of(user[i]), word[i]) in defines))
                    add_arrow("files", user[i], definer[word[i], j], word[i])
                if (!((folder_of(user[i]), word[i]) in defines))
                    add_arrow("folders", user[i], definer[word[i], j], word[i])
            }
        }
        for (i = 1; i <= node_n; i++)
            if (!(nodes[i] in number))
                visit(nodes[i])
        if (what != "sizes") {
            show("files")
            show("folders")
            exit
        }
        for (i = 1; i <= node_n; i++)
            if (nodes[i] ~ /^files:/ && size[component[nodes[i]]] > 1 &&
                component[nodes[i]] == nodes[i])
                print size[nodes[i]]
    }'
}

check_circles() {
    circles
}
