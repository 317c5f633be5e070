# Ops are known by identity outside of their room and the importer: no table is keyed by a name of
# src/models/op/op_list.h, which comes first, and nothing compares the name of an op.
# SPDX-License-Identifier: Apache-2.0
FNR == 1 { is_list = FILENAME ~ /op_list\.h$/ }
is_list {
    while (match($0, /X\([A-Z]+, [A-Za-z0-9]+\)/)) {
        name = substr($0, RSTART, RLENGTH - 1)
        sub(/.*, /, "", name)
        names[name] = 1
        $0 = substr($0, RSTART + RLENGTH)
    }
    next
}
/str(n|case|ncase)?cmp\([^;]*def(->|\.)name/ || /def(->|\.)name\[/ {
    print FILENAME ":" FNR ": compares the name of an op; compare def->id"
}
!/= \{"/ && match($0, /\{"[A-Za-z0-9]+"/) {
    name = substr($0, RSTART + 2, RLENGTH - 3)
    if (name in names) {
        print FILENAME ":" FNR ": a table keyed by the name of an op; use its identity, or a column of its row (op/op.h)"
    }
}
