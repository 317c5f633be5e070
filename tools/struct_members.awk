# awk -v limit=N -f struct_members.awk FILE...: prints each struct or union of C files that has more
# than N members: what belongs together has a struct of its own. `int a, b;` are two members, a
# struct within counts as one, and one without a name as those it has. Pointers to functions do not
# count: a table of functions is an interface.

function begin(text) {
    depth += 1
    is_struct[depth] = text ~ /(^|[^A-Za-z_0-9])(struct|union)( +[A-Za-z_0-9]+)? *$/
    count[depth] = 0
    line[depth] = FNR
    sub(/ *$/, "", text)
    sub(/.*[^A-Za-z_0-9]/, "", text)
    name[depth] = text
}

function end() {
    if (depth > 0 && is_struct[depth] && count[depth] > limit) {
        print FILENAME ":" line[depth] ": struct " name[depth] " has " count[depth] \
            " members, the limit is " limit
    }
    inner = depth > 0 && is_struct[depth] ? count[depth] : 0
    depth -= depth > 0
}

function declare(text) {
    if (depth == 0 || !is_struct[depth]) {
        return
    }
    if (text ~ /\( *\*[^()]*\) *\(/) {
        return  # a pointer to a function
    }
    while (sub(/\([^()]*\)/, "", text)) {
    }
    count[depth] += text ~ /[^ ]/ ? 1 + gsub(/,/, "", text) : inner
}

FNR == 1 { depth = 0; pending = ""; inner = 0; is_macro = 0; is_comment = 0 }

is_macro || /^[ \t]*#/ { is_macro = /\\$/; next }

{
    rest = $0
    gsub(/\\./, "", rest)
    gsub(/'[^']*'|"[^"]*"/, "", rest)
    sub(/\/\/.*/, "", rest)
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", rest)
    if (is_comment) {
        if (!sub(/.*\*\//, "", rest)) {
            next
        }
        is_comment = 0
    }
    is_comment = sub(/\/\*.*/, "", rest)
    gsub(/[ \t]+/, " ", rest)
    while (match(rest, /[{};]/)) {
        pending = pending substr(rest, 1, RSTART - 1)
        mark = substr(rest, RSTART, 1)
        rest = substr(rest, RSTART + 1)
        if (mark == "{") {
            begin(pending)
        } else if (mark == "}") {
            end()
        } else {
            declare(pending)
            inner = 0
        }
        pending = ""
    }
    pending = pending rest " "
}
