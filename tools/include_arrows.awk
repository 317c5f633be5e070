# awk -f rooms.awk -f include_arrows.awk rooms.txt FILE...: prints each include that the table does not allow.
# SPDX-License-Identifier: Apache-2.0

BEGIN {
    for (i = 1; i < ARGC; i++) {
        folder = ARGV[i]
        while (sub(/\/[^\/]*$/, "", folder)) {
            is_folder[folder] = 1
        }
    }
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, parts, "\"")
    target = parts[2]
    from = room_of(FILENAME)
    if (from == "") {
        print FILENAME ":" FNR ": this file is in no room of tools/rooms.txt"
        next
    }
    if (target ~ /^rondo\//) {
        next
    }
    if (target !~ /\//) {
        # Generated headers have no folder; a tool or example may include a neighbour.
        if (target ~ /^(onnx\.pb-c|(core_)?cu_sources)\.h$/ || from == "cli" || from == "examples") {
            next
        }
        print FILENAME ":" FNR ": write \"" target "\" with its room (\"room/file.h\")"
        next
    }
    folder = "src/core/" target
    sub(/\/[^\/]*$/, "", folder)
    own = "src/" target
    sub(/\/[^\/]*$/, "", own)
    to = room_of((folder in is_folder || target ~ /\/cu\//) ? "src/core/" target : \
        own in is_folder ? "src/" target : "src/models/" target)
    if (to == "") {
        print FILENAME ":" FNR ": \"" target "\" is in no room of tools/rooms.txt"
    } else if (to != from && index(allowed[from], " " to " ") == 0) {
        print FILENAME ":" FNR ": " from " must not include " to " (\"" target "\")"
    }
}
