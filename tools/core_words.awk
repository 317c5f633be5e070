# awk -f core_words.awk -v limit=N FOLDER/rondo.h HEADER...: prints a finding when the headers that
# rondo.h lists as its core, itself among them, have more than N words. Comment marks are not counted.
# SPDX-License-Identifier: Apache-2.0
FNR == 1 { folder = FILENAME; sub(/[^\/]*$/, "", folder); is_list = FILENAME ~ /\/rondo\.h$/ }
is_list && /^\/\/ Core/ { in_core = 1 }
is_list && /^\/\/ Advanced/ { in_core = 0 }
is_list && in_core && /^#include "/ { split($2, parts, "\""); sub(/.*\//, "", parts[2]); core[folder parts[2]] = 1 }
is_list || (FILENAME in core) {
    text = $0
    gsub(/\/\//, " ", text)
    count += split(text, words, " ")
}
END {
    if (count > limit) {
        print folder "rondo.h: the core tier has " count " words, the limit is " limit
    }
}
