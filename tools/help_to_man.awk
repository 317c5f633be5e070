# rondo COMMAND --help | awk -v version=0.1.0 -f help_to_man.awk: the man page of a command (or of the
# tool, from rondo --help). The help text is the source, so that the two agree.
# SPDX-License-Identifier: Apache-2.0

function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    sub(/^[.']/, "\\\\\\&&", text)
    return text
}

NR == 1 {
    name = $0
    sub(/ - .*/, "", name)
    summary = $0
    sub(/^.* - /, "", summary)
    page = name
    gsub(/ /, "-", page)
    printf ".TH %s 1 \"\" \"rondo %s\" \"User Commands\"\n", toupper(page), version
    printf ".SH NAME\n%s \\- %s\n", escape(page), escape(summary)
    next
}
/^Usage: / {
    sub(/^Usage: /, "")
    printf ".SH SYNOPSIS\n.B %s\n", escape($0)
    section = "description"
    is_first = 1
    next
}
/^(Options|Commands|Variables):$/ {
    sub(/:$/, "")
    printf ".SH %s\n", toupper($0)
    section = "table"
    next
}
/^[ \t]*$/ || /^Exit status:/ { next }
section == "description" {
    if (is_first) {
        print ".SH DESCRIPTION"
        is_first = 0
    }
    print escape($0)
    next
}
# A row starts in column 3; what it says starts in column 27, or on the next lines.
section == "table" && /^  [^ ]/ {
    row = substr($0, 3)
    split_at = match(row, /  +/)
    term = split_at ? substr(row, 1, split_at - 1) : row
    said = split_at ? substr(row, RSTART + RLENGTH) : ""
    printf ".TP\n.B %s\n", escape(term)
    if (said != "") {
        print escape(said)
    }
    next
}
section == "table" && /^   / {
    sub(/^ +/, "")
    print escape($0)
    next
}
section == "table" {
    print ".SH NOTES"
    section = "notes"
}
{ print escape($0) ; print ".br" }
END {
    print ".SH EXIT STATUS\n0 done, 1 failed, 2 misuse, 130 interrupted (Ctrl\\-C)."
    print ".SH SEE ALSO\n.BR rondo (1),\n.BR rondo\\-environment (1)"
}
