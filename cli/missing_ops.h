// missing_ops.h — which ops models need that Rondo lacks, counted over many models.
#ifndef RONDO_CLI_MISSING_OPS_H
#define RONDO_CLI_MISSING_OPS_H

#include <stddef.h>

// Prints the table for `rondo test --list-unsupported` over model directories; returns the exit
// status.
int cli_list_missing_ops(char *const *directories, size_t count);

#endif  // RONDO_CLI_MISSING_OPS_H
