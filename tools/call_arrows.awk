# awk -f rooms.awk -f calls.awk -f call_arrows.awk rooms.txt HEADER... SOURCE...: prints each use of
# another room's function or variable that the table does not allow, whatever header declares it.
# SPDX-License-Identifier: Apache-2.0

END {
    for (f = 1; f <= file_count; f++) {
        from = room_of(files[f])
        for (i = 1; i <= target_count[files[f]]; i++) {
            other = targets[files[f], i]
            to = room_of(other)
            if (to != from && index(allowed[from], " " to " ") == 0) {
                print files[f] ": " from " must not use " to " (" arrow[files[f], other] " of " other ")"
            }
        }
    }
}
