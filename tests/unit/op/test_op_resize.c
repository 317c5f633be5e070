// Awkward semantics of Resize and Upsample.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row resize_rows[] = {
    // Nearest prefers floor
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,7,3", "mode=s:nearest",
     "f32[1,1,7,3]:0,-4.5,-2,0,-4.5,-2,5,0.5,3,5,0.5,3,-1.5,5.5,-3.5,3.5,-1,1.5,3.5,-1,1.5"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,7,3",
     "mode=s:nearest nearest_mode=s:round_prefer_ceil "
     "coordinate_transformation_mode=s:asymmetric",
     "f32[1,1,7,3]:0,-4.5,-2,5,0.5,3,5,0.5,3,-1.5,5.5,-3.5,-1.5,5.5,-3.5,3.5,-1,1.5,3.5,-1,"
     "1.5"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,7,3",
     "mode=s:nearest nearest_mode=s:floor coordinate_transformation_mode=s:align_corners",
     "f32[1,1,7,3]:0,-4.5,-2,0,-4.5,-2,5,0.5,3,5,0.5,3,-1.5,5.5,-3.5,-1.5,5.5,-3.5,3.5,-1,"
     "1.5"},
    // Linear half pixel up
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,2,1.5", "mode=s:linear",
     "f32[1,1,8,6]:0,-2.25,-3.333334,1.333333,0.25,-2,1.25,-1,-2.5625,0.1874998,0.0625,"
     "-0.75,3.75,1.5,-1.020833,-2.104167,-0.3125,1.75,3.375,2.5625,1,-2,-0.6875,1.375,0.125,"
     "2.1875,3.5,0.5000004,-1.0625,-1.875,-0.25,1.8125,3.125,0.1250002,-1.4375,-2.25,2.25,"
     "1.4375,-0.1249998,-3.125,-1.8125,0.25,3.5,1.25,-1.75,-4.75,-2,1.5"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,1,6",
     "mode=s:linear coordinate_transformation_mode=s:pytorch_half_pixel",
     "f32[1,1,1,6]:0,-2.25,-3.333334,1.333333,0.25,-2"},
    // Linear one axis
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,4,7", "mode=s:linear",
     "f32[1,1,4,7]:0,-1.607143,-4.178572,-1,2.178572,-0.3928568,-2,5,3.392857,0.8214284,"
     "-1.75,-3.5,0.4999995,3,-1.5,1,5,3.25,0.6785716,-1.892857,-3.5,3.5,1.892857,-0.6785716,"
     "-3.25,-5,-1,1.5"},
    // Linear three axes
    {"Resize", 13, "f32[1,1,2,2,2]:~1 - - i64[5]:1,1,3", "mode=s:linear",
     "f32[1,1,3,3,3]:0,-0.5625,-1.125,0.3125,-0.25,-0.8125,0.625,0.0625,-0.5,0.625,0.0625,"
     "-0.5,0.21875,0.015625,-0.1875,-0.1875,-0.03125,0.125,1.25,0.6875,0.125,0.125,0.28125,"
     "0.4375,-1,-0.125,0.75"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,1.5,2",
     "mode=s:cubic exclude_outside=1 cubic_coeff_a=f:-0.5",
     "~1e-5 f32[1,1,6,8]:0.06811279,-1.352813,-4.365657,-3.446597,1.61621,2.296855,"
     "-1.161496,-2.792761,3.192042,1.718119,-1.404356,-2.519761,-1.408548,-0.3922317,"
     "0.468656,0.8754326,4.712248,3.996138,2.481595,0.0633764,-3.152026,-2.692915,1.169159,"
     "2.991557,-1.503302,0.3444433,4.259977,4.918232,2.0439,-0.4268366,-2.35818,-3.270969,"
     "0.6245675,1.164663,2.310507,1.529182,-1.259881,-2.254378,-1.50687,-1.154844,4.292763,"
     "2.929889,0.0451988,-2.893092,-5.682155,-4.519687,0.2583558,2.513351"},
    // Cubic half pixel down
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,3,2", "mode=s:cubic",
     "f32[1,1,3,2]:-2.020906,0.6569012,3.437012,-1.397949,1.766493,-2.327257"},
    // Numbers from onnx.reference.
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 f32[8]:0,0,0.4,-0.3,1,1,1.2,0.8 - i64[4]:1,1,3,4",
     "mode=s:linear coordinate_transformation_mode=s:tf_crop_and_resize "
     "extrapolation_value=f:9.5",
     "f32[1,1,3,4]:9.5,3.26,0.1500002,-1.12,9.5,0.9800004,1.549999,-1.56,9.5"},
    // Numbers from onnx.reference.
    {"Resize", 19, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,0.6",
     "mode=s:linear coordinate_transformation_mode=s:half_pixel_symmetric",
     "f32[1,1,2,2]:0.3333333,-0.777778,2.277778,-1.388889"},
    // Numbers from onnx.reference.
    {"Resize", 18, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,3,2", "mode=s:linear antialias=1",
     "f32[1,1,3,2]:-0.4034091,-0.4375,1.8125,-0.3125,0.8920454,-1.232954"},
    // Numbers from onnx.reference.
    {"Resize", 18, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,3,2",
     "mode=s:cubic antialias=1 exclude_outside=1",
     "f32[1,1,3,2]:-0.799674,-0.4850964,2.269425,-0.4065286,0.800227,-1.679365"},
    // Only the given axes: numbers from onnx.reference.
    {"Resize", 18, "f32[1,1,4,4]:~1*0.5 - - i64[2]:6,2", "mode=s:linear axes=I:3,2",
     "f32[1,1,2,6]:2.5,0.25,-1.791667,-0.9583333,-0.125,0.5,1,1.625,1.5,-1.5,-1.625,-1"},
    // Keeps the ratio not larger: numbers from onnx.reference.
    {"Resize", 18, "f32[1,1,2,3]:~1 - - i64[2]:7,9",
     "mode=s:nearest axes=I:2,3 keep_aspect_ratio_policy=s:not_larger",
     "f32[1,1,6,9]:0,0,0,-1.125,-1.125,-1.125,0.625,0.625,0.625,0,0,0,-1.125,-1.125,-1.125,"
     "0.625,0.625,0.625,0,0,0,-1.125,-1.125,-1.125,0.625,0.625,0.625,-0.5,-0.5,-0.5,1.25,"
     "1.25,1.25,0.125,0.125,0.125,-0.5,-0.5,-0.5,1.25,1.25,1.25,0.125,0.125,0.125,-0.5,-0.5,"
     "-0.5,1.25,1.25,1.25,0.125"},
    // Keeps the ratio not smaller: numbers from onnx.reference.
    {"Resize", 18, "f32[1,1,2,3]:~1 - - i64[2]:3,4",
     "mode=s:nearest axes=I:2,3 keep_aspect_ratio_policy=s:not_smaller",
     "f32[1,1,3,5]:0,0,-1.125,0.625,0.625,0,0,-1.125,0.625,0.625,-0.5,-0.5,1.25,0.125"},
    // Version 10 is asymmetric
    {"Resize", 10, "f32[1,1,4,4]:~1*0.5 f32[4]:1,1,1.5,2", "mode=s:linear",
     "f32[1,1,6,8]:0,-2.25,-4.5,-1,2.5,0.25,-2,-2,3.333333,1.083333,-1.166667,-1.5,"
     "-1.833333,-0.25,1.333333,1.333333,2.833333,2.5,2.166667,-0.08333319,-2.333333,-0.75,"
     "0.8333331,0.8333331,-1.5,2,5.5,3.25,1,-1.25,-3.5,-3.5,1.833334,1.5,1.166666,-1.083334,"
     "-3.333334,-1.75,-0.1666663,-0.1666663,3.5,1.25,-1,-3.25,-5.5,-2,1.5"},
    // Version 10 rounds by direction
    {"Resize", 10, "f32[1,1,4,4]:~1*0.5 f32[4]:1,1,0.6,1.6", "mode=s:nearest",
     "f32[1,1,2,6]:0,0,-4.5,-4.5,2.5,-2,-1.5,-1.5,5.5,5.5,1,-3.5"},
    // Extent is floored in f32
    {"Resize", 13, "f32[10]:~1 - f32[1]:0.6", "mode=s:nearest",
     "f32[6]:0,0.625,1.25,0.125,0.75,1.375"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,0,1", "mode=s:linear",
     "!BAD_DATA scales[2] is 0"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,nan,1", "mode=s:linear",
     "!BAD_DATA scales[2]"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - f32[4]:1,1,1e11", "mode=s:linear", "!BAD_DATA Resize"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,-3,4", "mode=s:linear",
     "!BAD_DATA sizes[2] is -3"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[2]:4", "mode=s:linear",
     "!BAD_DATA input sizes has 2 elements, 4 are expected"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,4", "mode=s:quartic",
     "!BAD_DATA attribute mode"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,4", "coordinate_transformation_mode=s:polar",
     "!BAD_DATA attribute coordinate_transformation_mode"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5 - - i64[4]:1,1,4",
     "coordinate_transformation_mode=s:tf_crop_and_resize", "!BAD_DATA input roi is missing"},
    {"Resize", 18, "f32[1,1,4,4]:~1*0.5 - - i64[2]:4", "axes=I:2,-2", "!BAD_DATA Resize"},
    {"Resize", 18, "f32[1,1,4,4]:~1*0.5 - - i64[1]:4", "axes=I:9", "!BAD_DATA axis"},
    {"Resize", 13, "f32[1,1,0,4]:~1 - - i64[4]:1,1,4", "mode=s:linear", "!BAD_DATA sizes[2]"},
    {"Resize", 13, "f32[1,1,4,4]:~1*0.5", "", "!BAD_DATA neither input scales nor input sizes"},
};
OP_ROWS_TEST(test_op_resize__resize, resize_rows)

static const op_row upsample_rows[] = {
    {"Upsample", 9, "f32[1,1,4,4]:~1*0.5 f32[4]:1,1,1.5,2", "mode=s:linear",
     "f32[1,1,6,8]:0,-2.25,-4.5,-1,2.5,0.25,-2,-2,3.333333,1.083333,-1.166667,-1.5,"
     "-1.833333,-0.25,1.333333,1.333333,2.833333,2.5,2.166667,-0.08333319,-2.333333,-0.75,"
     "0.8333331,0.8333331,-1.5,2,5.5,3.25,1,-1.25,-3.5,-3.5,1.833334,1.5,1.166666,-1.083334,"
     "-3.333334,-1.75,-0.1666663,-0.1666663,3.5,1.25,-1,-3.25,-5.5,-2,1.5"},
};
OP_ROWS_TEST(test_op_resize__upsample, upsample_rows)

// tf_half_pixel_for_nn moves no batch and no channel; a crop leaves the extents to scales alone.
static const op_row leaves_other_axes_alone_rows[] = {
    {"Resize", 13, "f32[2,1,2]:0,1,10,11 - f32[3]:1,1,2",
     "mode=s:linear coordinate_transformation_mode=s:tf_half_pixel_for_nn",
     "f32[2,1,4]:0.25,0.75,1,1,10.25,10.75,11,11"},
    {"Resize", 13, "f32[2,2,1]:0,1,10,11 - - i64[3]:2,2,2",
     "mode=s:cubic coordinate_transformation_mode=s:tf_half_pixel_for_nn",
     "f32[2,2,2]:0,0,1,1,10,10,11,11"},
    {"Resize", 13, "f32[2,1,2]:0,1,10,11 - f32[3]:1,1,2",
     "nearest_mode=s:ceil coordinate_transformation_mode=s:tf_half_pixel_for_nn",
     "f32[2,1,4]:1,1,1,1,11,11,11,11"},
    {"Resize", 13, "f32[1,1,4]:0,1,2,3 f32[6]:0,0,0.25,1,1,0.75 f32[3]:1,1,0.75",
     "mode=s:linear coordinate_transformation_mode=s:tf_crop_and_resize",
     "f32[1,1,3]:0.75,1.5,2.25"},
};
OP_ROWS_TEST(test_op_resize__leaves_other_axes_alone, leaves_other_axes_alone_rows)

// With sizes a coordinate is a quotient of whole numbers: a tie is one, and a whole number is not
// the one below. Numbers from exact fractions. With scales it is f32: numbers from ONNX Runtime.
static const op_row nearest_of_ties_rows[] = {
    {"Resize", 13, "f32[7]:0,1,2,3,4,5,6 - - i64[1]:9",
     "nearest_mode=s:floor coordinate_transformation_mode=s:half_pixel",
     "f32[9]:0,0,1,2,3,3,4,5,6"},
    {"Resize", 13, "f32[14]:0,1,2,3,4,5,6,7,8,9,10,11,12,13 - - i64[1]:9",
     "nearest_mode=s:round_prefer_ceil coordinate_transformation_mode=s:half_pixel",
     "f32[9]:0,2,3,5,7,8,10,11,13"},
    {"Resize", 13, "f32[14]:0,1,2,3,4,5,6,7,8,9,10,11,12,13 - - i64[1]:9",
     "nearest_mode=s:round_prefer_ceil coordinate_transformation_mode=s:pytorch_half_pixel",
     "f32[9]:0,2,3,5,7,8,10,11,13"},
    {"Resize", 13, "f32[15]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14 - - i64[1]:11",
     "nearest_mode=s:ceil coordinate_transformation_mode=s:half_pixel",
     "f32[11]:1,2,3,5,6,7,9,10,12,13,14"},
    {"Resize", 13, "f32[20]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19 - - i64[1]:6",
     "nearest_mode=s:round_prefer_ceil coordinate_transformation_mode=s:half_pixel",
     "f32[6]:1,5,8,11,15,18"},
    {"Resize", 13, "f32[20]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19 - - i64[1]:6",
     "nearest_mode=s:round_prefer_floor coordinate_transformation_mode=s:half_pixel_symmetric",
     "f32[6]:1,4,8,11,14,18"},
    {"Resize", 13, "f32[14]:0,1,2,3,4,5,6,7,8,9,10,11,12,13 - - i64[1]:9",
     "nearest_mode=s:floor coordinate_transformation_mode=s:tf_half_pixel_for_nn",
     "f32[9]:0,2,3,5,7,8,10,11,13"},
    {"Resize", 13, "f32[10]:0,1,2,3,4,5,6,7,8,9 - f32[1]:0.6",
     "nearest_mode=s:floor coordinate_transformation_mode=s:half_pixel", "f32[6]:0,2,3,5,6,8"},
    {"Resize", 13, "f32[7]:0,1,2,3,4,5,6 - f32[1]:0.9",
     "nearest_mode=s:round_prefer_floor coordinate_transformation_mode=s:pytorch_half_pixel",
     "f32[6]:0,1,2,3,4,6"},
    {"Resize", 13, "f32[14]:0,1,2,3,4,5,6,7,8,9,10,11,12,13 - f32[1]:0.2",
     "nearest_mode=s:floor coordinate_transformation_mode=s:asymmetric", "f32[2]:0,5"},
    {"Resize", 13, "f32[10]:0,1,2,3,4,5,6,7,8,9 - f32[1]:0.2",
     "nearest_mode=s:ceil coordinate_transformation_mode=s:half_pixel_symmetric", "f32[2]:2,7"},
    {"Resize", 13, "f32[6]:0,1,2,3,4,5 f32[2]:0,0.3 f32[1]:0.7",
     "nearest_mode=s:round_prefer_floor coordinate_transformation_mode=s:tf_crop_and_resize "
     "extrapolation_value=f:-7",
     "f32[4]:0,0,1,1"},
};
OP_ROWS_TEST(test_op_resize__nearest_of_ties, nearest_of_ties_rows)

// Nearest only moves elements: no number between loses the last bits of 64-bit integers.
static const op_row nearest_is_exact_rows[] = {
    {"Resize", 13, "i64[2]:9007199254740993,-9007199254740993 - f32[1]:2",
     "coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor",
     "i64[4]:9007199254740993,9007199254740993,-9007199254740993,-9007199254740993"},
    {"Upsample", 9, "u64[1,1,1,1]:9007199254740993 f32[4]:1,1,1,2", "",
     "u64[1,1,1,2]:9007199254740993,9007199254740993"},
    {"Resize", 13, "i64[1,3]:9007199254740993,2,3 f32[4]:0,0,1,2 f32[2]:1,1",
     "coordinate_transformation_mode=s:tf_crop_and_resize extrapolation_value=f:7",
     "i64[1,3]:9007199254740993,3,7"},
};
OP_ROWS_TEST(test_op_resize__nearest_is_exact, nearest_is_exact_rows)

// Cubic weights overshoot; what no integer of the type holds is the nearest limit, in 64 bits too.
TEST(test_op_resize__integers_saturate) {
#define CROPPED(input, value, expected)                                          \
    {                                                                            \
        "Resize", 13, input " f32[2]:1,2 f32[1]:1",                              \
            "coordinate_transformation_mode=s:tf_crop_and_resize mode=s:linear " \
            "extrapolation_value=f:" value,                                      \
            expected                                                             \
    }
    static const op_row rows[] = {
        {"Resize", 13, "u64[4]:9,9,0,0 - f32[1]:2",
         "coordinate_transformation_mode=s:asymmetric mode=s:cubic", "u64[8]:9,10,9,4,0,0,0,0"},
        {"Resize", 13, "u32[4]:9,9,0,0 - f32[1]:2",
         "coordinate_transformation_mode=s:asymmetric mode=s:cubic", "u32[8]:9,10,9,4,0,0,0,0"},
        CROPPED("u64[2]:1,2", "-5", "u64[2]:2,0"),
        CROPPED("u64[2]:1,2", "1e30", "u64[2]:2,18446744073709551615"),
        CROPPED("i64[2]:1,2", "1e30", "i64[2]:2,9223372036854775807"),
        CROPPED("i64[2]:1,2", "-1e30", "i64[2]:2,-9223372036854775808"),
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
