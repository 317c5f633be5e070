# awk -f doc_labels.awk HEADER...: prints each public status-returning function whose comment lacks the
# label Errors or Threads.

function finish() {
    if (declaration ~ /RONDO_API/ && declaration ~ /rondo_status[ \n]+rondo_[a-z0-9_]+[ \n]*\(/) {
        name = declaration
        sub(/.*rondo_status[ \n]+/, "", name)
        sub(/[ \n]*\(.*/, "", name)
        if (name !~ /^rondo_status_/) {
            if (comment !~ /Errors:/) {
                print FILENAME ":" first_line ": " name " does not say \"Errors:\""
            }
            if (comment !~ /Threads:/) {
                print FILENAME ":" first_line ": " name " does not say \"Threads:\""
            }
        }
    }
    declaration = ""
}

FNR == 1 { comment = ""; declaration = "" }
/^\/\// {
    if (!in_comment) {
        comment = ""
    }
    in_comment = 1
    comment = comment "\n" $0
    next
}
/^[ \t]*$/ { in_comment = 0; comment = ""; next }
{
    in_comment = 0
    if (declaration == "") {
        first_line = FNR
    }
    declaration = declaration " " $0
    if ($0 ~ /;[ \t]*(\/\/.*)?$/ || $0 ~ /^#/ || $0 ~ /[{}][ \t]*$/) {
        finish()
    }
}
