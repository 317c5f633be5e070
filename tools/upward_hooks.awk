# awk -f rooms.awk -f upward_hooks.awk rooms.txt hooks.txt HEADER... SOURCE...: prints each function
# pointer of a lower room that a higher room sets, so that what is below calls what is above without
# saying so.
#
# Allowed are tables: a higher room may fill a constant (`static const rondo__participant_type x =
# {.finish = ...}`) and hand it down, since the type says what is asked of whoever stands above.
# Allowed are functions that a caller passes as an argument, too. A finding is
#   1. an assignment, outside of room R and those below it, to a member that is a function pointer in
#      a struct of a header of R, or its initialiser in anything but a constant;
#   2. a variable at file scope that can be set to a function, or to a table of functions, of another
#      room. (Types of public headers are the caller's callbacks, and do not count.)
# What is a hook on purpose stands in hooks.txt with its reason: "struct.member: why" or
# "variable: why".
#
# It reads text: structs and typedefs begin in column 0, and a member is known by its name alone. A
# name that a struct of the file, of its own room or of a public header has, too, is taken for that.
# SPDX-License-Identifier: Apache-2.0

function strip(line) {
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    sub(/\/\/.*/, "", line)
    return line
}

FILENAME ~ /hooks\.txt$/ {
    if ($0 !~ /^#/ && NF > 0) {
        known = $1
        sub(/:$/, "", known)
        is_known[known] = 1
    }
    next
}

# Whether the line begins a struct, whose name goes to `type`.
function line_opens_struct() {
    if (line !~ /^(typedef )?struct [a-z_0-9]+ [{]/) {
        return 0
    }
    type = line
    sub(/ [{].*/, "", type)
    sub(/.* /, "", type)
    return 1
}

{ line = strip($0) }

FNR == 1 {
    room = room_of(FILENAME)
    type = ""
    head = ""
    is_constant = 0
    depth = 0
}

# Members of structs: every name, and those that are function pointers.
type != "" || line_opens_struct() {
    name = ""
    if (match(line, /\(\*[a-z_0-9]+\)\(/)) {
        name = substr(line, RSTART + 2, RLENGTH - 4)
        is_pointer = 1
    } else if (type != "" && line ~ /;[ \t]*$/) {
        count = split(line, words, /[ \t;,*]+/)
        is_pointer = count > 2 && words[2] in is_function_type
        name = words[count] == "" ? words[count - 1] : words[count]
        sub(/\[.*/, "", name)
    }
    if (name != "" && type != "" && FILENAME ~ /^src\/.*\.h$/ && is_pointer) {
        holders[name] = holders[name] " " type
        room_of_type[type] = room
    }
    if (name != "") {
        is_member[FILENAME ~ /\.h$/ ? room : FILENAME, name] = 1
    }
    if (line ~ /^}/) {
        type = ""
    }
}

FILENAME ~ /\.h$/ {
    if (line ~ /^typedef [^;{]*\(\*[a-z_0-9]+\)\(/ && FILENAME ~ /^src\//) {
        name = line
        sub(/\)\(.*/, "", name)
        sub(/.*\(\*/, "", name)
        is_function_type[name] = 1
    }
    next
}

# The structs of a lower room, none of this room's or of one around it, that have this member.
function note(name,    i, count, list, below) {
    if (((room, name) in is_member) || ((FILENAME, name) in is_member) ||
        (("include/rondo", name) in is_member)) {
        return
    }
    count = split(holders[name], list, " ")
    for (i = 1; i <= count; i++) {
        below = room_of_type[list[i]]
        if (index(room "/", below "/") == 1) {
            return
        }
    }
    for (i = 1; i <= count; i++) {
        below = room_of_type[list[i]]
        if (index(allowed[room], " " below " ") != 0 && !((list[i] "." name) in is_known)) {
            print FILENAME ":" FNR ": sets " list[i] "." name ", a function pointer of " below
        }
    }
}

# A variable at file scope: a declaration that neither declares a function nor makes a constant.
function check_variable(head,    text, word, name) {
    text = head
    gsub(/_Atomic\(/, "(", text)
    if (text ~ /^(typedef|extern|struct [a-z_0-9]+;|#)/ || text ~ /[A-Za-z_0-9]\(/ ||
        text ~ /^(static )?const [a-z_0-9]+ [a-z_0-9]+/ || text ~ /= *[{]/) {
        return
    }
    name = text
    sub(/[ \t]*(=.*)?;[ \t]*$/, "", name)
    sub(/\[.*/, "", name)
    sub(/.*[ *)]/, "", name)
    while (match(text, /rondo__[a-z_0-9]+/)) {
        word = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (((word in is_function_type) || (word in room_of_type)) && !(name in is_known)) {
            print FILENAME ":" FNR ": " name " can be set to a function (" word ")"
        }
    }
}

{
    if (depth == 0) {
        head = line ~ /^[A-Za-z_]/ ? line : head " " line
        is_constant = head ~ /(^|[ (])const /
        if (head ~ /;[ \t]*$/) {
            check_variable(head)
            head = ""
        }
    }
    rest = line
    while (match(rest, /(\.|->)[a-z_0-9]+ *=[^=]/)) {
        before = substr(rest, 1, RSTART - 1)
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH - 1)
        sub(/^(\.|->)/, "", name)
        sub(/ *=.*/, "", name)
        if (name in holders && !(is_constant && before !~ /[a-z_0-9\])]$/)) {
            note(name)
        }
    }
    opened = gsub(/[{]/, "", line)
    depth += opened - gsub(/}/, "", line)
    depth = depth < 0 || $0 ~ /^}/ ? 0 : depth
}
