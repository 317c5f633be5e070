// kernel/turn.h — matrices in memory, turned: rows become columns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// to[column * to_pitch + row] = from[row * from_pitch + column], for elements of `element_bytes`.
//
// Units:      pitches in elements.
void rondo__turn(const void *from, size_t from_pitch, void *to, size_t to_pitch, size_t rows,
                 size_t columns, size_t element_bytes);
