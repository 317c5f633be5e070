// Awkward semantics of DFT, STFT, windows and the mel matrix.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row dft_rows[] = {
    // Of a power of two
    {"DFT", 17, "f32[1,8,1]:~1", "axis=1",
     "f32[1,8,2]:0.125,0,-1.25,0.142767,1.625,1.25,-1.25,3.392767,1.625,-6.556708e-8,-1.25,"
     "-3.392767,1.625,-1.25,-1.25,-0.1427668"},
    // Of six onesided
    {"DFT", 17, "f32[1,6,1]:~1", "axis=1 onesided=1",
     "~1e-5 f32[1,4,2]:0.3750001,3.874302e-7,-0.9374987,1.623797,-0.9375004,0.5412666,3.375,"
     "-1.411153e-6"},
    // Of four times three, and of two times five: powers of a root of one
    {"DFT", 17, "f32[1,12,1]:0,1,0,0,0,0,0,0,0,0,0,0", "axis=1 onesided=1",
     "f32[1,7,2]:1,0,0.8660254,-0.5,0.5,-0.8660254,0,-1,-0.5,-0.8660254,-0.8660254,-0.5,-1,0"},
    {"DFT", 17, "f32[1,10,1]:0,0,0,1,0,0,0,0,0,0", "axis=1 onesided=1",
     "f32[1,6,2]:1,0,-0.309017,-0.95105652,-0.809017,0.58778525,0.809017,0.58778525,0.309017,"
     "-0.95105652,-1,0"},
    // Pads with zeros: numbers from onnx.reference.
    {"DFT", 17, "f32[3,2,2]:~1 i64[]:5", "axis=0",
     "f32[5,2,2]:0.875,0.375,-0.125,-0.625,1.616739,-3.167172,0.3127091,1.243763,-2.361382,"
     "-1.892607,2.784285,-0.5516033,0.1070769,0.290149,0.2382579,-2.202702,-0.2374342,"
     "-1.23037,-0.08525153,-0.3644576"},
    // Cuts: numbers from onnx.reference.
    {"DFT", 20, "f32[1,6,2]:~1 i64[]:4", "",
     "f32[1,4,2]:0.875,-0.75,-2.5,-2.875,1.625,-1.25,0,0.375"},
    // Inverse divides: numbers from onnx.reference.
    {"DFT", 17, "f32[1,4,2]:~1", "axis=1 inverse=1",
     "f32[1,4,2]:0.21875,-0.1875,0,0.09375,0.40625,-0.3125,-0.625,-0.71875"},
    // Inverse to real: numbers from numpy.fft.irfft.
    {"DFT", 20, "f32[1,4,2]:~1", "inverse=1 onesided=1",
     "f32[1,6,1]:0.4583333,0.1707532,-0.2987447,0.375,-0.6595886,-0.04575318"},
    // Numbers from numpy.fft.irfft, which cuts the spectrum.
    // Inverse to real of odd length
    {"DFT", 20, "f32[1,4,2]:~1 i64[]:5", "inverse=1 onesided=1",
     "f32[1,5,1]:0.75,-0.1664322,0.1173641,-0.2128556,-0.4880763"},
    // Version 20 takes the axis as input: numbers from onnx.reference.
    {"DFT", 20, "f32[2,3,2,1]:~1 - i64[]", "",
     "f32[2,3,2,2]:-1,0,-0.375,0,0.25,0,0.875,0,1.5,0,-0.75,0,1,0,-1.875,0,1,0,-1.875,0,1,0,"
     "1,0"},
    {"DFT", 17, "f32[1,6,1]:~1 i64[]", "", "!BAD_DATA input dft_length"},
    {"DFT", 17, "f32[1,6,1]:~1", "axis=-1", "!BAD_DATA axis is the last one"},
    {"DFT", 17, "f32[1,6,3]:~1", "", "!BAD_DATA last extent must be 1 or 2"},
    {"DFT", 17, "f32[1,6,1]:~1 i64[]:2305843009213693952", "", "!BAD_DATA input dft_length"},
};
OP_ROWS_TEST(test_op_signal__dft, dft_rows)

static const op_row stft_rows[] = {
    // Onesided with window
    {"STFT", 17, "f32[1,10,1]:~1 i64[]:3 f32[4]:0.25,1,0.5,0.75", "",
     "f32[1,3,3,2]:-1.1875,0,-0.3125,0.75,1.8125,-1.311342e-7,0.4375,0,-0.1875001,-2,"
     "-0.5625,4.371139e-8,1.34375,0,-0.0624999,0.28125,-2.21875,1.557218e-7"},
    // Complex: numbers from onnx.reference.
    {"STFT", 17, "f32[1,6,2]:~1 i64[]:2 - i64[]:3", "onesided=0",
     "f32[1,2,3,2]:1.875,-1.5,-1.478766,-0.3962341,-0.3962341,-1.478766,-0.125,2.25,"
     "1.396234,-0.3962341,2.478766,-1.478766"},
    {"STFT", 17, "f32[1,6,1]:~1 i64[]", "", "!BAD_DATA input frame_step"},
    {"STFT", 17, "f32[1,6,1]:~1 i64[]:1 - i64[]:7", "",
     "!BAD_DATA a frame has 7 samples, the signal 6"},
};
OP_ROWS_TEST(test_op_signal__stft, stft_rows)

static const op_row hann_window_rows[] = {
    {"HannWindow", 17, "i64[]:5", "periodic=0", "f32[5]:0,0.5,1,0.5,0"},
    // The period is 0; the angle counts as 0.
    // 0 / 0 in the function body of the standard.
    {"HannWindow", 17, "i64[]:1", "periodic=0", "f32[1]:nan"},
    {"HannWindow", 17, "i64[]:-1", "", "!BAD_DATA input size"},
};
OP_ROWS_TEST(test_op_signal__hann_window, hann_window_rows)

static const op_row hamming_window_rows[] = {
    // Periodic in doubles
    {"HammingWindow", 17, "i64[]:5", "output_datatype=11",
     "f64[5]:0.0869565,0.4024053,0.9128121,0.9128121,0.4024053"},
};
OP_ROWS_TEST(test_op_signal__hamming_window, hamming_window_rows)

static const op_row blackman_window_rows[] = {
    {"BlackmanWindow", 17, "i64[]:5", "",
     "f32[5]:1.490116e-8,0.2007702,0.8492299,0.8492299,0.2007702"},
};
OP_ROWS_TEST(test_op_signal__blackman_window, blackman_window_rows)

static const op_row mel_weight_matrix_rows[] = {
    {"MelWeightMatrix", 17, "i64[]:4 i64[]:16 i64[]:8192 f32[] f32[]:4096", "",
     "f32[9,4]:1,0,0,0,0,1,0,0,0,0,1,0,0,0,0,1,0,0,0,0.5,0"},
    {"MelWeightMatrix", 17, "i64[]:4 i64[]:16 i64[]:100 f32[] f32[]:4096", "",
     "!BAD_DATA sample_rate 100"},
    {"MelWeightMatrix", 17, "i64[] i64[]:16 i64[]:100 f32[] f32[]:40", "",
     "!BAD_DATA input num_mel_bins"},
};
OP_ROWS_TEST(test_op_signal__mel_weight_matrix, mel_weight_matrix_rows)

TEST_MAIN()
