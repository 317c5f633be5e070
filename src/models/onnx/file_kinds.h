// onnx/file_kinds.h — recognises files that are no ONNX models, for messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

// "a Git LFS pointer, not the file itself: run git lfs pull", told by the first bytes; NULL when
// they say nothing. Only for files that could not be read as what they should be.
const char *rondo__file_kind_explain(const uint8_t *bytes, size_t byte_count);
