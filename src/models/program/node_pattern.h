// program/node_pattern.h — patterns by which callers name nodes: * any characters, ? one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "program/program.h"

// Whether a text matches.
bool rondo__pattern_matches(const char *pattern, const char *text);

// Whether the node's name or its type of op matches. NULL matches everything.
bool rondo__node_matches(const rondo__node *node, const char *pattern);

// How many nodes match, those in bodies included.
size_t rondo__program_count_matches(const rondo_program *program, const char *pattern);
