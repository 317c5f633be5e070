// random_tensor.h — test data: the same for a seed everywhere.
#ifndef RONDO_CLI_RANDOM_TENSOR_H
#define RONDO_CLI_RANDOM_TENSOR_H

#include <stdint.h>

#include "rondo/tensor.h"

// Fills a tensor: reals in [-1, 1), whole numbers 0 or 1, since those are most often ids, lengths
// and masks, where both are in range. What is no number is left as it is.
void cli_random_fill(rondo_tensor *tensor, uint64_t seed);

#endif  // RONDO_CLI_RANDOM_TENSOR_H
