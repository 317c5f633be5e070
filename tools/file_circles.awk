# awk -f calls.awk -f file_circles.awk HEADER... SOURCE...: prints each circle of .c files that use each
# other, by one shortest way around with a function for each arrow. All rooms are looked at together,
# so that a circle through two rooms is found as well.
# SPDX-License-Identifier: Apache-2.0

# Tarjan's search for strongly connected parts; part[] gets the number of each file's.
function search(file,    i, to) {
    order[file] = low[file] = ++step
    stack[++depth] = file
    on_stack[file] = 1
    for (i = 1; i <= target_count[file]; i++) {
        to = targets[file, i]
        if (!(to in order)) {
            search(to)
            low[file] = low[to] < low[file] ? low[to] : low[file]
        } else if (on_stack[to] && order[to] < low[file]) {
            low[file] = order[to]
        }
    }
    if (low[file] == order[file]) {
        part_count++
        do {
            to = stack[depth--]
            on_stack[to] = 0
            part[to] = part_count
            part_size[part_count]++
        } while (to != file)
    }
}

# Prints the shortest way from `start` around to itself.
function print_circle(start,    queue, from, first, last, file, i, to, way) {
    queue[1] = start
    first = last = 1
    while (first <= last) {
        file = queue[first++]
        for (i = 1; i <= target_count[file]; i++) {
            to = targets[file, i]
            if (part[to] == part[start] && !(to in from)) {
                from[to] = file
                queue[++last] = to
            }
        }
    }
    way = ""
    to = start
    do {
        file = from[to]
        way = "\n    " file " -> " to " (" arrow[file, to] ")" way
        to = file
    } while (to != start)
    print start ": in a circle of " part_size[part[start]] " files; one way around:" way
}

END {
    for (f = 1; f <= file_count; f++) {
        if (!(files[f] in order)) {
            search(files[f])
        }
    }
    for (f = 1; f <= file_count; f++) {
        if (part_size[part[files[f]]] > 1 && !(part[files[f]] in is_printed)) {
            is_printed[part[files[f]]] = 1
            print_circle(files[f])
        }
    }
}
