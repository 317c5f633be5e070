// Awkward semantics of GridSample, AffineGrid, RoiAlign and MaxRoiPool.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row grid_sample_rows[] = {
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:zeros align_corners=0",
     "f32[1,1,3,4]:0,0.4549997,0.1874999,0,0,0,-1.5,0,-0.09749992,0,0.8712504,0.3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:zeros align_corners=1",
     "f32[1,1,3,4]:-1.4525,1.263749,1.575,0.275,0.7312501,-0.65,-0.03750001,0.5062501,"
     "-0.5949999,1.49625,2.0425,1.3875"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:border align_corners=0",
     "f32[1,1,3,4]:-4.05,0.6999996,1.875,-0.8500006,-1.5,-1,-1.5,1.537501,-1.5,2.7,2.05,"
     "0.7499998"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:border align_corners=1",
     "f32[1,1,3,4]:-4.15,1.263749,2.25,1.1,1.125,-1,-0.03750001,2.025,-0.8499998,4.275001,"
     "2.149999,1.5"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:reflection align_corners=0",
     "~2e-5 f32[1,1,3,4]:-1.675,0.6999996,1.875,2.075,-1.337501,-1.01875,-1.5,-0.6687499,"
     "-1.5,2.51,2.05,0.7499998"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bilinear padding_mode=s:reflection align_corners=1",
     "f32[1,1,3,4]:-1.27375,1.263749,0.6674991,2.9,1.890625,-1.2625,-0.03750001,-1.93125,"
     "0.9050003,2.333125,1.85375,1.233751"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:zeros align_corners=0", "f32[1,1,3,4]:0,2.5,0,0,0,0,-2,0"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:zeros align_corners=1",
     "f32[1,1,3,4]:0,2.5,3,0,-1.5,2.5,-2,0,-1.5,0,2.5,3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:border align_corners=0",
     "f32[1,1,3,4]:-4.5,2.5,3,-1.5,-1.5,2.5,-2,3,-1.5,5.5,2.5,3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:border align_corners=1",
     "f32[1,1,3,4]:-4.5,2.5,3,-1.5,-1.5,2.5,-2,3,-1.5,5.5,2.5,3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:reflection align_corners=0",
     "f32[1,1,3,4]:-4.5,2.5,3,5.5,-1.5,2.5,-2,3,-1.5,5.5,2.5,3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:nearest padding_mode=s:reflection align_corners=1",
     "f32[1,1,3,4]:0.5,2.5,3,5.5,-1.5,2.5,-2,-4,-1.5,0.5,2.5,3"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:zeros align_corners=0",
     "~2e-5 f32[1,1,3,4]:0.4473829,1.235054,0.2513965,0.09603521,0.02673626,0.01782441,"
     "-1.667625,-0.1966064,-0.1812896,-0.3104808,1.542017,0.6896567"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:zeros align_corners=1",
     "~2e-5 f32[1,1,3,4]:-1.725007,2.063909,2.768723,0.1606015,0.4295001,-0.4643123,"
     "0.3206813,0.7974126,-1.453241,1.789527,2.493814,2.326192"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:border align_corners=0",
     "~2e-5 f32[1,1,3,4]:-4.55625,1.873772,2.693209,-0.933251,-1.500001,-1.000001,-1.546126,"
     "2.200128,-2.276749,3.27,3.04353,1.665604"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:border align_corners=1",
     "~2e-5 f32[1,1,3,4]:-4.639465,1.947073,3.602804,1.292773,1.057803,-0.79725,0.2906227,"
     "2.803769,-1.601032,5.035746,2.586947,2.565126"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:reflection align_corners=0",
     "~2e-5 f32[1,1,3,4]:-2.227594,2.06965,3.048827,2.524403,-1.372844,-1.038388,-1.546126,"
     "-1.257932,-3.214008,3.570666,3.702788,1.99719"},
    {"GridSample", 16, "f32[1,1,3,4]:~1*0.5 f32[1,3,4,2]:~5*0.15",
     "mode=s:bicubic padding_mode=s:reflection align_corners=1",
     "~2e-5 f32[1,1,3,4]:-2.21936,2.219317,1.619365,4.032641,1.697531,-1.833263,0.2303912,"
     "-2.742179,0.02818078,3.531089,2.324254,2.027681"},
    // Of three axes: numbers from onnx.reference.
    {"GridSample", 20, "f32[1,1,2,3,2]:~1*0.5 f32[1,2,2,2,3]:~5*0.15",
     "mode=s:linear padding_mode=s:reflection",
     "f32[1,1,2,2,2]:-1.3275,3.6,4.75,-2,3.25,0.5499998,0.6059999,4.2"},
    // NaN and infinity read at the low edge, as PyTorch; large numbers at the nearer edge.
    {"GridSample", 16, "f32[1,1,1,2]:1,2 f32[1,1,3,2]:nan,0,inf,0,1e30,0", "padding_mode=s:border",
     "f32[1,1,1,3]:1,1,2"},
    {"GridSample", 16, "f32[1,1,3,4]:~1 f32[1,3,4,2]:~5", "padding_mode=s:mirror",
     "!BAD_DATA attribute padding_mode"},
    {"GridSample", 16, "f32[1,1,3,4]:~1 f32[1,3,4,3]:~5", "", "!BAD_DATA grid of shape"},
    {"GridSample", 16, "f32[1,1,0,4]:~1 f32[1,3,4,2]:~5", "", "!BAD_DATA empty spatial axis"},
};
OP_ROWS_TEST(test_op_sampling__grid_sample, grid_sample_rows)

static const op_row affine_grid_rows[] = {
    // Numbers from onnx.reference.
    {"AffineGrid", 20, "f32[1,2,3]:~3*0.25 i64[4]:1,1,2,3", "align_corners=1",
     "f32[1,2,3,2]:3.75,-1,3.5,-2.25,3.25,-3.5,-1.25,3.5,-1.5,2.25,-1.75,1"},
    // Of three axes: numbers from onnx.reference.
    {"AffineGrid", 20, "f32[1,3,4]:~3*0.25 i64[5]:1,1,2", "",
     "f32[1,2,2,2,3]:-0.375,1.25,-2.875,-0.625,3.5,-3.875,-2.875,1.25,-0.375,-3.125,3.5,"
     "-1.375,0.625,-1,-2.625,0.375,1.25,-3.625,-1.875,-1,-0.125,-2.125,1.25,-1.125"},
    {"AffineGrid", 20, "f32[1,2,3]:~3 i64[4]:2,1,2,3", "", "!BAD_DATA theta of shape"},
};
OP_ROWS_TEST(test_op_sampling__affine_grid, affine_grid_rows)

// Places are f32, and so is each step to them.
static const op_row places_are_narrow_rows[] = {
    {"GridSample", 20,
     "f32[1,1,4,7]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27 "
     "f32[1,2,3,2]:-0.428571433,0,-0.428571433,-0.142857149,0.285714298,0.714285731,"
     "-0.142857149,0,0.142857149,-0.428571433,0.571428597,-0.714285731",
     "mode=s:nearest", "f32[1,1,2,3]:15,8,25,16,11,5"},
    {"GridSample", 20,
     "f32[1,1,6,8]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"
     "28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47 "
     "f32[1,2,3,2]:-0.5,0.833333313,-0.666666687,-0.166666672,-1,-0.333333343,0.666666687,"
     "-0.333333343,-0.333333343,0.666666687,0,-1",
     "mode=s:nearest", "f32[1,1,2,3]:42,17,8,14,34,4"},
    // A grid of f64 has places of f64: numbers from exact fractions
    {"GridSample", 20, "f64[1,1,1,9]:0,1,2,3,4,5,6,7,8 f64[1,1,2,2]:-0.6666666,0,-0.6666667,0",
     "mode=s:nearest", "f64[1,1,1,2]:1,1"},
    // How many samples a bin has
    {"RoiAlign", 16, "f32[1,1,4,3]:0,1,2,3,4,5,6,7,8,9,10,11 f32[1,4]:0,4,15,10 i64[1]",
     "spatial_scale=f:0.2 output_height=2 coordinate_transformation_mode=s:output_half_pixel",
     "f32[1,1,2,1]:4.633333,6.433333"},
    {"RoiAlign", 16, "f32[1,1,5,3]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14 f32[1,4]:8,3,23,17 i64[1]",
     "spatial_scale=f:0.2 output_height=2", "f32[1,1,2,1]:2.8,5.6"},
    // Where cells end, and what half a cell is rounded to
    {"MaxRoiPool", 1, "f32[1,1,4,4]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 f32[1,5]:0,3,5,16,8",
     "pooled_shape=I:2,2 spatial_scale=f:0.7", "f32[1,1,2,2]"},
    {"MaxRoiPool", 1,
     "f32[1,1,6,7]:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"
     "28,29,30,31,32,33,34,35,36,37,38,39,40,41 "
     "f32[1,5]:0,1,3,15,14",
     "pooled_shape=I:1,4 spatial_scale=f:0.7", "f32[1,1,1,4]:38,41,41,0"},
};
OP_ROWS_TEST(test_op_sampling__places_are_narrow, places_are_narrow_rows)

static const op_row roi_align_rows[] = {
    // Align version 10 has no half pixel
    {"RoiAlign", 10, "f32[1,1,4,4]:~1 f32[2,4]:0,0,6,7,2,1,3,2 i64[2]",
     "output_height=2 output_width=2 spatial_scale=f:0.5",
     "f32[2,1,2,2]:0.1601562,-0.1740723,0.326416,-0.4626465,-0.2890625,-0.4921875,0.15625,"
     "-0.40625"},
    // Align half pixel samples
    {"RoiAlign", 16, "f32[2,1,4,4]:~1 f32[2,4]:0,0,3,3,-1,1.5,5,2 i64[2]:1,0",
     "output_height=2 output_width=3 sampling_ratio=2",
     "f32[2,1,2,3]:-0.2529297,0.3574219,0.1533203,-0.4550781,0.04296875,0.1757812,1.046875,"
     "-0.28125,0.546875,0.640625,0.03125,0.140625"},
    {"RoiAlign", 16, "f32[1,1,4,4]:~1 f32[1,4]:0,0,3 i64[1]:7", "",
     "!BAD_DATA batch_indices[0] is 7"},
    {"RoiAlign", 16, "f32[1,1,4,4]:~1 f32[1,4]:0,0,1e30,3 i64[1]", "", "!BAD_DATA box 0"},
    {"RoiAlign", 16, "f32[1,1,4,4]:~1 f32[1,4]:0,0,3 i64[1]", "output_height=0",
     "!BAD_DATA attribute output_height is 0"},
};
OP_ROWS_TEST(test_op_sampling__roi_align, roi_align_rows)

static const op_row max_roi_pool_rows[] = {
    {"MaxRoiPool", 1, "f32[1,2,4,4]:~1 f32[2,5]:0,0,0,6,6,0,2,3,5,4",
     "pooled_shape=I:2,2 spatial_scale=f:0.5",
     "f32[2,2,2,2]:1.25,0.75,1.375,0.375,1,1.125,0.625,1.25,1.375,0.25,1.375,0.25,0.625,"
     "1.25,0.625,1.25"},
    {"MaxRoiPool", 1, "f32[1,1,4,4]:~1 f32[1,5]:-1,0,0,3", "pooled_shape=I:1,1",
     "!BAD_DATA names batch -1"},
};
OP_ROWS_TEST(test_op_sampling__max_roi_pool, max_roi_pool_rows)

TEST(test_op_sampling__crop_and_resize) {
#define OF_FOUR "f32[1,1,2,2]:1,2,3,4 "
    static const op_row rows[] = {
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:0,0,1,1 i32[1]:0 i32[2]:3,3", "",
         "f32[1,1,3,3]:1,1.5,2,2,2.5,3,3,3.5,4"},
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:-0.5,0,1,0.5 i32[1]:0 i32[2]:2,3",
         "extrapolation_value=f:9", "f32[1,1,2,3]:9,9,9,3,3.25,3.5"},
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:0.2,0.4,1,0.8 i32[1]:0 i32[2]:2,2",
         "mode=s:nearest", "f32[1,1,2,2]:1,2,3,4"},
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:0.5,0.25,0.75,0.5 i32[1]:0 i32[2]:1,1",
         "", "f32[1,1,1,1]:2.625"},
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:0,0,1,1 i32[1]:1 i32[2]:2,2", "",
         "!BAD_DATA batch_indices[0] is 1"},
        {"com.microsoft.CropAndResize", 1, OF_FOUR "f32[1,4]:0,0,1,1 i32[1]:0 i32[2]:0,2", "",
         "!BAD_DATA crop_size holds 0"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
