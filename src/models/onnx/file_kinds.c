// onnx/file_kinds.c — see file_kinds.h.
//
// Sources: the file formats' own documents; ONNX Runtime's ort.fbs ("ORTM"), TensorFlow Lite's
// schema.fbs ("TFL3"), GGUF's and safetensors' specifications, Git LFS's pointer format.
// SPDX-License-Identifier: Apache-2.0

#include "onnx/file_kinds.h"

#include <stdbool.h>
#include <string.h>

typedef struct file_kind {
    size_t offset;
    const char *signature;
    size_t signature_bytes;
    const char *explanation;
} file_kind;

#define KIND(offset, signature, explanation) \
    { offset, signature, sizeof(signature) - 1, explanation }

static const file_kind kinds[] = {
    KIND(0, "version https://git-lfs",
         "a Git LFS pointer, not the file itself: run git lfs pull, or download it again"),
    KIND(4, "ORTM",
         "a model in ONNX Runtime's own format (.ort): use the .onnx file that it was made of"),
    KIND(4, "TFL3", "a TensorFlow Lite model: convert it with tf2onnx --tflite"),
    KIND(0, "GGUF", "a GGUF file (llama.cpp): export the original model to ONNX"),
    KIND(0, "\x89HDF", "an HDF5 file (Keras): convert the model with tf2onnx"),
    KIND(0, "\x93NUMPY", "a NumPy array (.npy): it goes to --input"),
    KIND(0, "ftrt", "a TensorRT engine: use the .onnx file that it was made of"),
    KIND(0, "\x1f\x8b", "compressed by gzip: unpack it first"),
    KIND(0, "BZh", "compressed by bzip2: unpack it first"),
    KIND(0, "\xfd\x37zXZ", "compressed by xz: unpack it first"),
    KIND(0, "\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"),
    KIND(0, "7z\xbc\xaf", "a 7-Zip archive: unpack it first"),
    KIND(257, "ustar", "a tar archive: unpack it first"),
    KIND(0, "ir_version:", "an ONNX model as text: save it with onnx.save_model in binary form"),
    KIND(0, "{\"irVersion\"", "an ONNX model as JSON: save it with onnx.save_model in binary form"),
};

static bool contains(const uint8_t *bytes, size_t byte_count, const char *word) {
    const size_t length = strlen(word);
    for (size_t i = 0; i + length <= byte_count; ++i) {
        if (memcmp(bytes + i, word, length) == 0) {
            return true;
        }
    }
    return false;
}

// Whether the bytes begin with `word`, in capitals or not, behind blanks.
static bool begins_with(const uint8_t *bytes, size_t byte_count, const char *word) {
    size_t at = 0;
    while (at < byte_count && bytes[at] != '\0' && strchr(" \t\r\n", bytes[at]) != NULL) {
        ++at;
    }
    for (; *word != '\0' && at < byte_count; ++word, ++at) {
        const int c = bytes[at] >= 'A' && bytes[at] <= 'Z' ? bytes[at] - 'A' + 'a' : bytes[at];
        if (c != *word) {
            return false;
        }
    }
    return *word == '\0';
}

static const char *explain_zip(const uint8_t *bytes, size_t byte_count) {
    enum { LOCAL_BYTES = 30, SEEN_BYTES = 512 };
    const size_t seen = byte_count < SEEN_BYTES ? byte_count : SEEN_BYTES;
    if (contains(bytes, seen, "data.pkl") || contains(bytes, seen, "/version") ||
        contains(bytes, seen, "archive/")) {
        return "a PyTorch file (.pt): export the model with torch.onnx.export";
    }
    if (contains(bytes, seen, ".npy")) {
        return "a NumPy archive (.npz): it goes to --input";
    }
    return "a zip archive: unpack it first";
}

// A length of the JSON header, 8 bytes little endian, and the header.
static bool is_safetensors(const uint8_t *bytes, size_t byte_count) {
    uint64_t header_bytes = 0;
    for (size_t i = 0; byte_count > 9 && i < 8; ++i) {
        header_bytes |= (uint64_t)bytes[i] << (8 * i);
    }
    return header_bytes > 1 && header_bytes <= byte_count - 8 && bytes[8] == '{';
}

const char *rondo__file_kind_explain(const uint8_t *bytes, size_t byte_count) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        const file_kind *kind = &kinds[i];
        if (byte_count >= kind->offset + kind->signature_bytes &&
            memcmp(bytes + kind->offset, kind->signature, kind->signature_bytes) == 0) {
            return kind->explanation;
        }
    }
    if (byte_count >= 4 && memcmp(bytes, "PK\3\4", 4) == 0) {
        return explain_zip(bytes, byte_count);
    }
    if (byte_count >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5) {
        return "a Python pickle: export the model from its framework (torch.onnx.export, skl2onnx)";
    }
    if (is_safetensors(bytes, byte_count)) {
        return "a safetensors file, weights without a graph: export the model to ONNX";
    }
    if (begins_with(bytes, byte_count, "<!doctype") || begins_with(bytes, byte_count, "<html")) {
        return "an HTML page, so the download failed: download it again, by its raw address";
    }
    if (begins_with(bytes, byte_count, "<?xml") || begins_with(bytes, byte_count, "<net ")) {
        return "an XML text (OpenVINO, PMML): use the ONNX model that it was made of";
    }
    return begins_with(bytes, byte_count, "{") ? "a JSON text" : NULL;
}
