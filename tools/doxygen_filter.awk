# awk -f doxygen_filter.awk HEADER: a public header as Doxygen reads it (make docs). Comments keep their
# words; their form becomes Doxygen's:
#
#   the comment at the top           the file's text
#   // ---- title ----               a group of what follows, with the comment's text
#   a comment before a declaration   its text; the first sentence is the summary
#   name   text                      an item of the paragraph "Arguments"
#   Errors: ... Threads: ...         a paragraph with that title
#   an indented block                code
#   a comment behind a member        the member's text
# SPDX-License-Identifier: Apache-2.0

BEGIN { labels = "^(Shapes|Units|Returns|Errors|Ownership|Threads|Capture|Cost|Source):" }

# Characters that Markdown or HTML would take for its own.
function escape(text) {
    gsub(/\\/, "\\\\&", text)
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/[*#]/, "\\\\&", text)
    return text
}

function end_code() {
    if (in_code) {
        print "/// @endcode"
    }
    in_code = 0
}

function print_label(text,    name) {
    name = text
    sub(/:.*/, "", name)
    sub(/^[A-Za-z]+: */, "", text)
    print "/// @par " name
    print "/// " escape(text)
}

# One line of a comment, without its slashes. is_function: `name   text` is an argument.
function print_line(text, is_function,    rest, indent) {
    match(text, /^ */)
    indent = RLENGTH
    rest = substr(text, indent + 1)
    if (rest == "") {
        print "///"
        was_blank = 1
        return
    }
    if (indent >= 3 && (in_code || was_blank) && rest !~ /^- / && !in_list) {
        if (!in_code) {
            print "/// @code{.c}"
        }
        in_code = 1
        was_blank = 0
        print "/// " substr(text, 4)
        return
    }
    end_code()
    in_list = rest ~ /^- / || (in_list && indent >= 3)
    was_blank = 0
    if (rest ~ labels) {
        print_label(rest)
    } else if (is_function && indent == 1 && rest ~ /^[a-z_0-9]+  +[^ ]/) {
        match(rest, /^[a-z_0-9]+/)
        name = substr(rest, 1, RLENGTH)
        sub(/^[a-z_0-9]+ +/, "", rest)
        print (has_arguments ? "" : "/// @par Arguments\n") "/// - `" name "`: " escape(rest)
        has_arguments = 1
        in_list = 1
    } else if (match(rest, /  (Threads|Capture): /)) {
        at = RSTART
        print "/// " escape(substr(rest, 1, at - 1))
        print "///"
        print_label(substr(rest, at + 2))
    } else {
        print "/// " (in_list && rest !~ /^- / ? "  " : "") escape(rest)
    }
}

# first: the line of the comment to begin with.
function print_comment(first, is_function,    i) {
    was_blank = 0
    in_list = 0
    has_arguments = 0
    for (i = first; i <= count; i++) {
        print_line(comment[i], is_function)
    }
    end_code()
    if (is_function && is_fenced) {
        print "/// @par Experimental\n/// Define RONDO_EXPERIMENTAL before Rondo is included."
    }
}

function close_group() {
    if (in_group) {
        print "///@}"
        print ""
    }
    in_group = 0
}

# A comment that stands alone: the file's, a group's, or one that explains what follows in general.
function print_free() {
    if (is_top) {
        print "/// @file"
        sub(/^ rondo\/[a-z]+\.h — /, " ", comment[1])
        print_comment(1, 0)
        is_top = 0
    } else if (comment[1] ~ /^ ---- /) {
        close_group()
        title = comment[1]
        gsub(/^ -+ | -+$/, "", title)
        print "/// @name " toupper(substr(title, 1, 1)) substr(title, 2)
        print_comment(2, 0)
        print "///@{"
        in_group = 1
    } else {
        for (i = 1; i <= count; i++) {
            print "//" comment[i]
        }
    }
    count = 0
}

/^#if defined\(RONDO_EXPERIMENTAL\)/ { is_fenced = 1 }
/^#endif  \/\/ RONDO_EXPERIMENTAL/ { is_fenced = 0 }

FNR == 1 { count = 0; is_top = 1; in_group = 0 }

/^ *\/\/ clang-format/ || /SPDX-License-Identifier/ { next }

# A comment of its own line: kept until what follows tells what it belongs to.
/^ ? ? ? ?\/\// {
    margin = $0
    sub(/\/\/.*/, "", margin)
    text = $0
    sub(/^ *\/\//, "", text)
    if (count > 0 && text ~ /^ ---- /) {
        print_free()
    }
    comment[++count] = text
    next
}

count > 0 && (/^[ \t]*$/ || /^#(ifndef|include)/) {
    print_free()
}

count > 0 {
    print_comment(1, $0 ~ /RONDO_API|\(/)
    count = 0
}

/^RONDO_EXTERN_C_END/ { close_group() }

# The second line of a comment behind a member, and a comment behind code.
/^ +\/\// && !/^    \/\// {
    text = $0
    sub(/^ *\/\/ */, "", text)
    print "    ///< " escape(text)
    next
}

/[^ ] +\/\/ / && !/^#/ && !/\\$/ {
    at = match($0, / \/\/ /)
    print substr($0, 1, at - 1) " ///< " escape(substr($0, at + 4))
    next
}

{ print }
