# awk -f rooms.awk -f SCRIPT rooms.txt ...: reads the table for scripts that need to know which room
# a file is in, and what that room may include: allowed["src/graph"] = " src/pool src/device ... ".
# SPDX-License-Identifier: Apache-2.0

function room_of(path,    folder) {
    folder = path
    while (sub(/\/[^\/]*$/, "", folder)) {
        if (folder in allowed) {
            return folder
        }
    }
    return ""
}

FILENAME ~ /rooms\.txt$/ {
    if ($0 !~ /^#/ && NF > 0) {
        room = $1
        sub(/:$/, "", room)
        allowed[room] = " "
        for (i = 2; i <= NF; i++) {
            allowed[room] = allowed[room] $i " "
        }
    }
    next
}
