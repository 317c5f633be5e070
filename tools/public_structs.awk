# awk -f public_structs.awk HEADER...: prints each type of a public header that breaks the ABI rule.
#
# A struct that crosses the boundary may grow in a later release, so it begins with its size:
# `size_t struct_size`, which tells the library what a program was built against. One that never
# changes says so in the comment above it or behind its first line: "ABI: fixed". Types whose members
# are not shown need neither. An enumeration is an int32_t beside an enum without a name, because the
# width of an enum is the compiler's choice.
# SPDX-License-Identifier: Apache-2.0

function fail(text) {
    print FILENAME ":" first_line ": struct " name " " text
}

FNR == 1 { comment = ""; name = "" }

/^(typedef )?enum [A-Za-z_]/ {
    print FILENAME ":" FNR ": an enum with a name; write typedef int32_t rondo_x; enum { ... };"
}

name == "" && /^[ \t]*\/\// { comment = comment $0; next }

name == "" && /^(typedef )?(struct|union)( [A-Za-z_0-9]+)? [{]/ {
    name = $0
    sub(/ [{].*/, "", name)
    sub(/.* /, "", name)
    first_line = FNR
    is_fixed = (comment $0) ~ /ABI: fixed/
    if (/[}].*;/) {  # all of it in one line
        if (!is_fixed && $0 !~ /[{] *size_t struct_size;/) {
            fail("neither begins with size_t struct_size nor is marked \"ABI: fixed\"")
        }
        name = ""
    }
    comment = ""
    next
}

name == "" { comment = ""; next }

/^[}]/ { name = ""; next }

!/^[ \t]*(\/\/.*)?$/ && name != "" && !is_checked[FILENAME, name]++ {
    is_sized = $0 ~ /^ +size_t struct_size;/
    if (!is_sized && !is_fixed) {
        fail("neither begins with size_t struct_size nor is marked \"ABI: fixed\"")
    } else if (is_sized && is_fixed) {
        fail("has a struct_size and is marked \"ABI: fixed\"")
    }
}
