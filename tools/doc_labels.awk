# awk -f doc_labels.awk HEADER...: prints each label of a public header that only repeats what
# rondo/rondo.h says once for every call, each status among its errors that every call may return and
# of which nothing more is said, and each call that returns a status without a comment that begins
# with what it does.
# SPDX-License-Identifier: Apache-2.0

# The words of a label, without the brackets' content.
function is_general(text,    count, words, i) {
    gsub(/[.,;]/, " ", text)
    count = split(text, words, " ")
    for (i = 1; i <= count; i++) {
        if (words[i] !~ /^(INVALID|NO_MEMORY|DRIVER|LOST|safe|legal)$/) {
            return 0
        }
    }
    return 1
}

function finish() {
    if (declaration ~ /RONDO_API/ && declaration ~ /rondo_status[ \n]+rondo_[a-z0-9_]+[ \n]*\(/) {
        name = declaration
        sub(/.*rondo_status[ \n]+/, "", name)
        sub(/[ \n]*\(.*/, "", name)
        if (name !~ /^rondo_status_/ && !has_comment) {
            print FILENAME ":" first_line ": " name " has no comment"
        } else if (begins_with_label) {
            print FILENAME ":" first_line ": the comment of " name " does not say what it does"
        }
    }
    declaration = ""
    has_comment = 0
}

# A status that every call may return, with nothing in brackets and in no sentence.
function find_bare(text) {
    while (gsub(/\([^()]*\)/, "#", text)) {
    }
    sub(/\..*/, "", text)
    return match(text, /(^|[,;] )(INVALID|NO_MEMORY|DRIVER|LOST) *([,;]|$)/) ? substr(text, RSTART, RLENGTH) : ""
}

function end_label(    bare) {
    if (label != "" && is_general(label_text)) {
        print FILENAME ":" label_line ": the label " label " says what holds for every call"
    } else if (label == "Errors" && (bare = find_bare(label_text)) != "") {
        gsub(/[^A-Z_]/, "", bare)
        print FILENAME ":" label_line ": " bare " is an error of every call, and nothing more is said"
    }
    label = ""
}

FNR == 1 { has_comment = 0; declaration = ""; label = "" }
/^\/\// {
    if (!has_comment) {
        begins_with_label = /^\/\/ [A-Z][a-z]+: +/
    }
    has_comment = 1
    if (match($0, /^\/\/ (Errors|Threads|Capture): +/)) {
        end_label()
        label = substr($0, 4, index($0, ":") - 4)
        label_line = FNR
        label_text = substr($0, RLENGTH + 1)
    } else if (label != "" && /^\/\/            /) {
        label_text = label_text " " substr($0, 3)
    } else {
        end_label()
    }
    next
}
{ end_label() }
/^[ \t]*$/ { has_comment = 0; next }
{
    if (declaration == "") {
        first_line = FNR
    }
    declaration = declaration " " $0
    if ($0 ~ /;[ \t]*(\/\/.*)?$/ || $0 ~ /^#/ || $0 ~ /[{}][ \t]*$/) {
        finish()
    }
}
