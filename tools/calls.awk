# awk -f calls.awk -f SCRIPT HEADER... SOURCE...: reads which file uses what of which other, for scripts
# that look at the arrows: targets[file, 1..target_count[file]] and arrow[file, other] = a name.
#
# A file depends on another when it mentions a function that the other defines, be it called or put
# into a table, or a variable of its that can change, and also when it uses a macro or an inline
# function of a header that does. Constant data is no arrow: a list of tables (backends, families of
# ops) names what is above it on purpose, and who reads the list knows only the type of its entries.
#
# It reads text, so it relies on the formatter: what is defined for others begins in column 0 and
# ends with a brace in column 0. Names that a macro puts together are not seen.
# SPDX-License-Identifier: Apache-2.0

# The line without comments, strings and characters; in_comment holds across lines.
function strip(line,    out, i, c, two) {
    out = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (two == "//") {
            break
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (c == "\"" || c == "'") {
            out = out c c
            i++
            while (i <= length(line) && substr(line, i, 1) != c) {
                i += substr(line, i, 1) == "\\" ? 2 : 1
            }
        } else {
            out = out c
        }
    }
    return out
}

# Notes every name in `text` as mentioned by `user`, but for members.
function note_names(user, text,    before, name) {
    before = ""
    while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
        before = before substr(text, 1, RSTART - 1)
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (before !~ /(\.|->)$/ && !((user, name) in is_noted)) {
            is_noted[user, name] = 1
            names[user, ++name_count[user]] = name
        }
        before = "x"
    }
}

# The name that a definition gives: the first before a parenthesis that is no macro.
function get_name(head,    name) {
    while (match(head, /[A-Za-z_][A-Za-z0-9_]* *\(/)) {
        name = substr(head, RSTART, RLENGTH)
        head = substr(head, RSTART + RLENGTH)
        sub(/ *\($/, "", name)
        if (name ~ /[a-z]/) {
            return name
        }
    }
    return ""
}

# A definition of the file's outermost level has begun: `head` is all of it before the brace.
function begin_definition(head,    name) {
    name = head ~ /\(/ && head !~ /^(typedef|struct|enum|union|extern)[^(]*$/ && head !~ /=/ \
        ? get_name(head) : ""
    owner = FILENAME
    if (name == "") {
        return
    }
    if (is_header) {
        owner = "inline " name
        inlines[name] = 1
    } else if (head !~ /(^|[ \n])static[ \n]/ && !(name in home)) {
        home[name] = FILENAME
    }
}

# A variable of the outermost level that other files may change.
function begin_variable(head) {
    if (head !~ /(^|[ \n])(static|extern|typedef|const|struct|enum|union)[ \n]/ && head !~ /\(/) {
        sub(/[ \t]*(=.*)?;[ \t]*$/, "", head)
        sub(/\[.*/, "", head)
        sub(/.*[ *]/, "", head)
        if (head ~ /^[a-z]/ && !(head in home)) {
            home[head] = FILENAME
        }
    }
}

FNR == 1 {
    in_comment = 0
    in_body = 0
    in_define = 0
    head = ""
    is_header = FILENAME ~ /\.h$/
    if (!is_header) {
        files[++file_count] = FILENAME
    }
}

{
    line = strip($0)
    if (in_define || line ~ /^[ \t]*#/) {
        if (!in_define && match(line, /^[ \t]*#[ \t]*define[ \t]+[A-Za-z_][A-Za-z0-9_]*/)) {
            macro = substr(line, RSTART, RLENGTH)
            sub(/.*[ \t]/, "", macro)
            line = substr(line, RSTART + RLENGTH)
            inlines[macro] = 1
            in_define = 1
        }
        if (in_define) {
            note_names("inline " macro, line)
        }
        in_define = in_define && line ~ /\\$/
        next
    }
    if (in_body) {
        note_names(owner, line)
        if (line ~ /^[}]/) {
            in_body = 0
            head = ""
        }
        next
    }
    head = head == "" ? line : head "\n" line
    if (line ~ /[{][ \t]*$/) {
        begin_definition(head)
        note_names(owner, is_header ? "" : head)
        in_body = 1
    } else if (line ~ /[;}][ \t]*$/) {
        if (!is_header) {
            begin_variable(head)
            note_names(FILENAME, head ~ /=/ ? head : "")
        }
        head = ""
    } else if (line == "") {
        head = ""
    }
}

# Notes that `file` depends on the home of each name that `user` mentions.
function add_arrows(file, user,    i, name) {
    if ((file, user) in is_followed) {
        return
    }
    is_followed[file, user] = 1
    for (i = 1; i <= name_count[user]; i++) {
        name = names[user, i]
        if (name in home) {
            if (home[name] != file && !((file, home[name]) in arrow)) {
                arrow[file, home[name]] = name
                targets[file, ++target_count[file]] = home[name]
            }
        } else if (name in inlines) {
            add_arrows(file, "inline " name)
        }
    }
}

END {
    for (f = 1; f <= file_count; f++) {
        add_arrows(files[f], files[f])
    }
}
