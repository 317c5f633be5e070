# awk -f doc_labels.awk HEADER...: prints each label of a public header that only repeats what
# rondo/rondo.h says once for every call, and each call that returns a status without a comment.
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
        }
    }
    declaration = ""
    has_comment = 0
}

function end_label() {
    if (label != "" && is_general(label_text)) {
        print FILENAME ":" label_line ": the label " label " says what holds for every call"
    }
    label = ""
}

FNR == 1 { has_comment = 0; declaration = ""; label = "" }
/^\/\// {
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
