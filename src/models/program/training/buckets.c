// program/training/buckets.c — which tensors ranks average or gather at once. See step_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "program/training/step_parts.h"

static int compare_bucketed(const void *a, const void *b) {
    const rondo__bucketed *x = a;
    const rondo__bucketed *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at)
                          : (x->index > y->index) - (x->index < y->index);
}

void rondo__buckets_sort(rondo__bucketed *list, size_t count) {
    qsort(list, count, sizeof *list, compare_bucketed);
}

size_t rondo__bucket_find_end(const rondo__bucketed *list, size_t count, size_t first,
                              size_t most_tensors, size_t most_bytes) {
    size_t end = first;
    size_t bytes = 0;
    do {
        bytes += list[end].bytes;
        end += 1;
    } while (end < count && end - first < most_tensors && bytes + list[end].bytes <= most_bytes &&
             list[end].dtype == list[first].dtype);
    return end;
}
