# awk -f public_users.awk HEADER... FILE...: prints each public function that no FILE names outside of
# its comments, and for people on standard error how many there are. Headers are include/rondo/*.h;
# what they have behind RONDO_EXPERIMENTAL is only counted.
# SPDX-License-Identifier: Apache-2.0

# The line without comments; in_comment goes from line to line.
function strip(line,    at) {
    if (in_comment) {
        if (!(at = index(line, "*/"))) {
            return ""
        }
        line = substr(line, at + 2)
        in_comment = 0
    }
    sub(FILENAME ~ /\.py$/ ? "#.*" : "//.*", "", line)
    if (FILENAME !~ /\.py$/ && (at = index(line, "/*"))) {
        in_comment = !index(substr(line, at), "*/")
        line = substr(line, 1, at - 1)
    }
    return line
}

BEGIN { is_fenced = 0 }
FNR == 1 { in_comment = 0; is_header = FILENAME ~ /include\/rondo\/[a-z0-9_]+\.h$/ }
is_header && /^#if defined\(RONDO_EXPERIMENTAL\)/ { is_fenced = 1 }
is_header && /^#endif  \/\/ RONDO_EXPERIMENTAL/ { is_fenced = 0 }
{
    text = strip($0)
    declares = is_header && (declares || text ~ /^RONDO_API/)
    while (match(text, /rondo_[a-z0-9_]+/)) {
        name = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (!is_header) {
            used[name] = 1
        } else if (declares && text ~ /^\(/) {
            count[is_fenced]++
            declares = 0
            if (!is_fenced) {
                where[name] = FILENAME ":" FNR
            }
        }
    }
}
END {
    for (name in where) {
        if (!(name in used)) {
            print where[name] ": " name " has no user: an example, a command, a measurement or a binding"
        }
    }
    print "users: " count[0] + 0 " public functions, " count[1] + 0 " more are experimental" >"/dev/stderr"
}
