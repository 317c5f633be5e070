// compare_bench.h — two measurements of `rondo bench --json` against each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_reader.h"

// True when the document is one that `rondo bench --json` wrote.
bool cli_is_bench(json_t *document);

// Prints the ratio of the medians of each mode and part, and whether it exceeds what chance does.
//
// slowdown   by how many percent the second may be slower
//
// Returns:   true when no latency of the second is slower than that, beyond chance.
bool cli_compare_benches(json_t *first, json_t *second, double slowdown);
