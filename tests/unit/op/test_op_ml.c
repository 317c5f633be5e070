// The ops of ai.onnx.ml. Expected values are ONNX Runtime's, except where it is said.
// SPDX-License-Identifier: Apache-2.0

#include "op/op.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_ml__tables) {
    const op_row rows[] = {
        {"ai.onnx.ml.Scaler", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2", "offset=F:1 scale=F:2",
         "f32[3,3]:0,-6,4,-2,-2,-2,-4,-12,2"},
        {"ai.onnx.ml.Scaler", 1, "i64[3,3]:1,-2,3,0,0,0,-1,-5,2", "offset=F:1,2,3 scale=F:2,1,0.5",
         "f32[3,3]:0,-4,0,-2,-2,-1.5,-4,-7,-0.5"},
        {"ai.onnx.ml.Scaler", 1, "f32[2,3]:1,-2,3,4,5,6", "offset=F:1,2,3 scale=F:2",
         "f32[2,3]:0,-8,0,6,6,6"},
        {"ai.onnx.ml.Scaler", 1, "f32[2,3]:1,-2,3,4,5,6", "offset=F:1 scale=F:1,2,3",
         "f32[2,3]:0,-6,6,3,8,15"},
        {"ai.onnx.ml.Scaler", 1, "f32[2,3]", "offset=F:1,2,3 scale=F:1,2", "!BAD_DATA 3 columns"},
        {"ai.onnx.ml.Scaler", 1, "f32[3]:1,-2,3", "offset=F:1,2,3 scale=F:2,1,1", "f32[3]:0,-4,0"},
        // The difference is f32: numbers from ONNX Runtime
        {"ai.onnx.ml.Scaler", 1, "f32[2]:16777216,0.7", "offset=F:-1,0.1 scale=F:3,0.1",
         "~0 f32[2]:50331648,0.06"},
        {"ai.onnx.ml.Normalizer", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2", "norm=s:MAX",
         "f32[3,3]:0.3333333,-0.6666667,1,0,0,0,-0.5,-2.5,1"},
        {"ai.onnx.ml.Normalizer", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2", "norm=s:L1",
         "f32[3,3]:0.1666667,-0.3333333,0.5,0,0,0,-0.125,-0.625,0.25"},
        {"ai.onnx.ml.Normalizer", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2", "norm=s:L2",
         "f32[3,3]:0.2672612,-0.5345225,0.8017837,0,0,0,-0.1825742,-0.9128709,0.3651484"},
        {"ai.onnx.ml.Normalizer", 1, "f64[3]:1,-2,3", "norm=s:L2",
         "f32[3]:0.2672612,-0.5345225,0.8017837"},
        {"ai.onnx.ml.Binarizer", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2", "threshold=f:0.5",
         "f32[3,3]:1,0,1,0,0,0,0,0,1"},
        {"ai.onnx.ml.Imputer", 1, "f32[2,3]:1,nan,3,nan,0,0",
         "imputed_value_floats=F:9,8,7 replaced_value_float=f:nan", "f32[2,3]:1,8,3,9,0,0"},
        {"ai.onnx.ml.Imputer", 1, "f32[2,3]:1,nan,3,nan,0,0", "imputed_value_floats=F:9",
         "f32[2,3]:1,nan,3,nan,9,9"},
        {"ai.onnx.ml.Imputer", 1, "i64[1,2]:1,2", "imputed_value_int64s=I:9 replaced_value_int64=2",
         "i64[1,2]:1,9"},
        {"ai.onnx.ml.FeatureVectorizer", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2 f32[3,1]:1,2,3",
         "inputdimensions=I:2,2", "f32[3,4]:1,-2,1,0,0,0,2,0,-1,-5,3,0"},
        {"ai.onnx.ml.FeatureVectorizer", 1, "i64[3]:1,2,3", "inputdimensions=I:2", "f32[1,2]:1,2"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[3,2]:0.25,0.5,0.125,0.0625,0.25,0.75",
         "coefficients=F:0.1,0.2,0.3,0.4 intercepts=F:0.1,0.05 targets=2 post_transform=s:NONE",
         "f32[3,2]:0.225,0.325,0.125,0.1125,0.275,0.425"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[3,2]:0.25,0.5,0.125,0.0625,0.25,0.75",
         "coefficients=F:0.1,0.2,0.3,0.4 intercepts=F:0.1,0.05 targets=2 "
         "post_transform=s:LOGISTIC",
         "f32[3,2]:0.5560139,0.5805423,0.5312093,0.5280954,0.56832,0.6046791"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[3,2]:0.25,0.5,0.125,0.0625,0.25,0.75",
         "coefficients=F:0.1,0.2,0.3,0.4 intercepts=F:0.1,0.05 targets=2 "
         "post_transform=s:SOFTMAX",
         "f32[3,2]:0.4750208,0.5249792,0.503125,0.496875,0.4625702,0.5374298"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[3,2]:0.25,0.5,0.125,0.0625,0.25,0.75",
         "coefficients=F:0.1,0.2,0.3,0.4 intercepts=F:0.1,0.05 targets=2 "
         "post_transform=s:SOFTMAX_ZERO",
         "f32[3,2]:0.4750208,0.5249792,0.503125,0.496875,0.4625702,0.5374298"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[3,2]:0.25,0.5,0.125,0.0625,0.25,0.75",
         "coefficients=F:0.1,0.2,0.3,0.4 intercepts=F:0.1,0.05 targets=2 post_transform=s:PROBIT",
         "f32[3,2]:-0.7555236,-0.4537928,-1.150535,-1.213519,-0.597823,-0.1891206"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[2]:1,-2", "coefficients=F:0.1,0.2", "f32[1,1]:-0.3"},
        {"ai.onnx.ml.LinearClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.1,0.2 intercepts=F:0.1 classlabels_strings=S:n,p "
         "post_transform=s:NONE",
         "string[3]:n,p,p f32[3,2]:1.2,-0.2,0.8,0.2,0.4,0.6"},
        {"ai.onnx.ml.LinearClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.1,0.2 intercepts=F:0.1 classlabels_strings=S:n,p "
         "post_transform=s:LOGISTIC",
         "string[3]:n,p,p f32[3,2]:0.549834,0.450166,0.450166,0.549834,0.3543437,0.6456563"},
        {"ai.onnx.ml.LinearClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.1,0.2 intercepts=F:0.1 classlabels_strings=S:n,p "
         "post_transform=s:SOFTMAX",
         "string[3]:n,p,p f32[3,2]:1.2,-0.2,0.8,0.2,0.4,0.6"},
        {"ai.onnx.ml.LinearClassifier", 1, "f64[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.1,0.2,0.3,-0.4,0,0.5 intercepts=F:0.1,0,0.2 classlabels_ints=I:7,8,9 "
         "post_transform=s:SOFTMAX_ZERO",
         "i64[3]:8,9,9 f32[3,3]:0.1916403,0.7031853,0.1051744,0.3340173,0.2874914,0.3784912,"
         "0.2423289,0.02967473,0.7279963"},
        {"ai.onnx.ml.LinearClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.1,0.2 intercepts=F:0.1 post_transform=s:NONE",
         "i64[3]:0,1,1 f32[3,1]:-0.2,0.2,0.6"},
        {"ai.onnx.ml.FeatureVectorizer", 1, "f32[2,1]:1,2 i64[2,2]:3,4,5,6",
         "inputdimensions=I:1,3", "f32[2,4]:1,3,4,0,2,5,6,0"},
        {"ai.onnx.ml.Scaler", 1, "f32[2,3]", "offset=F:1,2 scale=F:1,2", "!BAD_DATA for 3 columns"},
        {"ai.onnx.ml.Scaler", 1, "f32[2,3]", "offset=F:1", "!BAD_DATA 1 offsets and 0 scales"},
        {"ai.onnx.ml.Scaler", 1, "f32[1,2,3]", "offset=F:1 scale=F:1", "!UNSUPPORTED rank above 2"},
        {"ai.onnx.ml.Scaler", 1, "bool[2,3]", "offset=F:1 scale=F:1", "!UNSUPPORTED type bool"},
        {"ai.onnx.ml.Normalizer", 1, "f32[1,2]", "norm=s:L3", "!UNSUPPORTED attribute norm"},
        {"ai.onnx.ml.Imputer", 1, "f32[1,3]", "imputed_value_floats=F:1,2", "!BAD_DATA 2 values"},
        {"ai.onnx.ml.Imputer", 1, "f32[1,3]", "imputed_value_int64s=I:1", "!BAD_DATA 0 values"},
        {"ai.onnx.ml.FeatureVectorizer", 1, "f32[2,1] f32[3,1]", "inputdimensions=I:1,1",
         "!BAD_DATA inputs 0 and 1 have other rows"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[1,3]", "coefficients=F:1,2",
         "!BAD_DATA 2 coefficients"},
        {"ai.onnx.ml.LinearRegressor", 1, "f32[1,1]", "coefficients=F:1 post_transform=s:CUBE",
         "!UNSUPPORTED attribute post_transform"},
        {"ai.onnx.ml.LinearClassifier", 1, "f32[1,1]",
         "coefficients=F:1,2,3 intercepts=F:1,2,3 classlabels_ints=I:1,2",
         "!BAD_DATA 2 labels for 3"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_ml__labels) {
    const op_row rows[] = {
        {"ai.onnx.ml.ArrayFeatureExtractor", 1, "f32[3,3]:1,-2,3,0,0,0,-1,-5,2 i64[2]:2,0", "",
         "f32[3,2]:3,1,0,0,2,-1"},
        {"ai.onnx.ml.ArrayFeatureExtractor", 1, "string[2]:a,b i64[1,1]:1", "", "string[1,1]:b"},
        {"ai.onnx.ml.OneHotEncoder", 1, "i64[2,2]:1,5,2,1", "cats_int64s=I:1,2",
         "f32[2,2,2]:1,0,0,0,0,1,1,0"},
        {"ai.onnx.ml.OneHotEncoder", 1, "string[2]:a,z", "cats_strings=S:z,a", "f32[2,2]:0,1,1,0"},
        {"ai.onnx.ml.OneHotEncoder", 1, "f32[2]:1.7,2", "cats_int64s=I:1,2", "f32[2,2]:1,0,0,1"},
        {"ai.onnx.ml.LabelEncoder", 1, "string[2]:a,q", "classes_strings=S:z,a", "i64[2]:1,-1"},
        {"ai.onnx.ml.LabelEncoder", 1, "i64[3]:0,1,7", "classes_strings=S:z,a default_string=s:D",
         "string[3]:z,a,D"},
        {"ai.onnx.ml.LabelEncoder", 2, "string[2]:a,q", "keys_strings=S:z,a values_int64s=I:5,6",
         "i64[2]:6,-1"},
        {"ai.onnx.ml.LabelEncoder", 2, "f32[3]:1,nan,2",
         "keys_floats=F:1,nan values_strings=S:one,nan", "string[3]:one,_Unused,_Unused"},
        {"ai.onnx.ml.LabelEncoder", 2, "i64[2]:1,9", "keys_int64s=I:1,2 values_floats=F:0.5,0.25",
         "f32[2]:0.5,-0"},
        {"ai.onnx.ml.LabelEncoder", 2, "i64[2]:1,9",
         "keys_int64s=I:1,1 values_int64s=I:3,4 default_int64=77", "i64[2]:3,77"},
        {"ai.onnx.ml.LabelEncoder", 4, "f64[4]:1,nan,2,-0",
         "keys_tensor=T:f64[3]:1,nan,0 values_tensor=T:string[3]:one,nan,zero "
         "default_tensor=T:string[1]:def",
         "string[4]:one,nan,def,zero"},
        {"ai.onnx.ml.CategoryMapper", 1, "string[2]:a,q", "cats_int64s=I:5,6 cats_strings=S:a,b",
         "i64[2]:5,-1"},
        {"ai.onnx.ml.CategoryMapper", 1, "i64[2]:5,1", "cats_int64s=I:5,6 cats_strings=S:a,b",
         "string[2]:a,_Unused"},
        {"ai.onnx.ml.LabelEncoder", 4, "i64[2]:1,5",
         "keys_tensor=T:i64[2]:1,2 values_tensor=T:i16[2]:7,8 default_tensor=T:i16[1]:-3",
         "i16[2]:7,-3"},
        {"ai.onnx.ml.LabelEncoder", 2, "i64[1]:1", "keys_strings=S:a values_int64s=I:1",
         "!UNSUPPORTED input 0 of type i64"},
        {"ai.onnx.ml.LabelEncoder", 2, "i64[1]:1", "keys_int64s=I:1,2 values_int64s=I:1",
         "!BAD_DATA 2 keys have 1 values"},
        {"ai.onnx.ml.LabelEncoder", 4, "i64[1]:1",
         "keys_int64s=I:1 values_int64s=I:1 default_tensor=T:f32[1]:1",
         "!BAD_DATA attribute default_tensor must be one i64"},
        {"ai.onnx.ml.OneHotEncoder", 1, "i64[1]:5", "cats_int64s=I:1,2 zeros=0",
         "!BAD_DATA element 0 is an unknown category"},
        {"ai.onnx.ml.OneHotEncoder", 1, "string[1]", "cats_int64s=I:1", "!UNSUPPORTED input 0"},
        {"ai.onnx.ml.ArrayFeatureExtractor", 1, "f32[1,3] i64[1]:3", "",
         "!BAD_DATA index 3 is outside [0, 3)"},
        {"ai.onnx.ml.CategoryMapper", 1, "string[1]", "cats_strings=S:a", "!BAD_DATA are missing"},
        {"ai.onnx.ml.ZipMap", 1, "f32[2,2]:1,2,3,4", "classlabels_strings=S:a,b",
         "f32[2,2]:1,2,3,4"},
        {"ai.onnx.ml.ZipMap", 1, "f32[2,3]", "classlabels_int64s=I:1,2",
         "!BAD_DATA scores of shape [2, 3] have 2 labels"},
    };
    OP_ROWS_CHECK(rows);
}

TEST(test_op_ml__support_vectors) {
    const op_row rows[] = {
        {"ai.onnx.ml.SVMRegressor", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:1.8,0.4 support_vectors=F:1,2.2,1.9,-1 rho=F:1 n_supports=2 "
         "kernel_type=s:LINEAR kernel_params=F:0.3,0.2,2",
         "f32[3,1]:-3.56,3.17,9.120001"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:-0.2,-0.1 support_vectors=F:0.4,0.1,1.5,0.8 rho=F:0.1 n_supports=2 "
         "kernel_type=s:POLY kernel_params=F:0.3,0.2,2",
         "f32[3,1]:0.08359,0.06216625,0.07212999"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.4,0.3 support_vectors=F:1.5,-0.2,0.3,-0.9 rho=F:-2.6 n_supports=2 "
         "kernel_type=s:RBF kernel_params=F:0.3,0.2,2",
         "f32[3,1]:-2.279456,-2.121794,-2.595273"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:0.7,0.9 support_vectors=F:-0.7,2.3,-1.5,0 rho=F:-0.2 n_supports=2 "
         "kernel_type=s:SIGMOID kernel_params=F:0.3,0.2,2",
         "f32[3,1]:-1.038646,-0.03958739,1.004753"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "coefficients=F:1.5,1.5 rho=F:0.2 one_class=1 kernel_params=F:0,0,0", "f32[3,1]:-1,1,1"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_ints=I:5,6 vectors_per_class=I:1,2 coefficients=F:0.4,-0.9,-2 "
         "support_vectors=F:-0.3,0.2,1.2,1.2,-0.4,-0.3 rho=F:-1 kernel_type=s:RBF "
         "kernel_params=F:0.3,0,3 post_transform=s:NONE",
         "i64[3]:6,6,6 f32[3,2]:1.451599,-1.451599,2.695265,-2.695265,1.115279,-1.115279"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_ints=I:5,6 vectors_per_class=I:1,2 coefficients=F:-1.4,-1.7,2 "
         "support_vectors=F:-0.5,-0.4,-1.3,0.8,-1.6,-0.2 rho=F:-0.9 kernel_type=s:RBF "
         "kernel_params=F:0.3,0,3 post_transform=s:LOGISTIC",
         "i64[3]:6,6,6 f32[3,2]:0.7620997,0.2379003,0.8698645,0.1301355,0.7763805,0.2236195"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_ints=I:5,6 vectors_per_class=I:1,2 coefficients=F:0.4,-0.5,-1.2 "
         "support_vectors=F:-0,0.4,0.1,0.3,-0.6,-0.4 rho=F:-0.7 kernel_type=s:RBF "
         "kernel_params=F:0.3,0,3 post_transform=s:SOFTMAX",
         "i64[3]:6,6,6 f32[3,2]:1.985856,-0.9858558,2.542944,-1.542944,1.735706,-0.7357063"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_ints=I:5,6 vectors_per_class=I:1,2 coefficients=F:-0.4,-0.8,-1.7 "
         "support_vectors=F:0.2,-0.4,-1.6,0.5,-0.9,0.1 rho=F:0.7 kernel_type=s:RBF "
         "kernel_params=F:0.3,0,3 post_transform=s:NONE prob_a=F:-1.5 prob_b=F:0.2",
         "i64[3]:5,6,5 f32[3,2]:0.5901071,0.4098929,0.2001738,0.7998261,0.6141232,0.3858768"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_strings=S:a,b,c vectors_per_class=I:1,2,1 "
         "coefficients=F:0.1,1.1,-1.2,0.4,-0.7,-0.9,-0.6,-0.3 "
         "support_vectors=F:0.1,-1.2,0.9,0.5,-1.5,1.5,1.9,1.2 rho=F:-0.2,-1.1,1.1 "
         "kernel_type=s:LINEAR kernel_params=F:0,0,0",
         "string[3]:a,a,a f32[3,3]:5.34,-3.05,4.04,0.8575,-0.425,0.4325001,-7.11,2.17,-3.55"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_strings=S:a,b,c vectors_per_class=I:1,2,1 "
         "coefficients=F:-0.4,1.2,0.2,1,0.4,0.7,0,1.8 "
         "support_vectors=F:0.1,0.4,1.9,-1.3,-1.3,1,-1.2,1.9 rho=F:-0.4,-0.7,1.9 "
         "kernel_type=s:LINEAR kernel_params=F:0,0,0 prob_a=F:-1.5,-1,-2 prob_b=F:0.2,0.1,0",
         "string[3]:c,a,b f32[3,3]:0.002282951,0.0001861051,0.9975311,0.3228953,0.5412646,"
         "0.13584,6.099324e-10,1,5.999601e-08"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[3,2]:1,-2,0.5,0.25,-1,3",
         "classlabels_ints=I:5,6,7 coefficients=F:1.5,1.9,0.9,-0.9,1.9,-0.3 rho=F:0.8 "
         "post_transform=s:SOFTMAX kernel_params=F:0,0,0",
         "i64[3]:6,5,5 f32[3,3]:0.003691078,0.5478045,0.4485044,0.4824933,0.1774994,0.3400073,"
         "0.9986802,0.0004091941,0.0009106785"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[1,2]", "coefficients=F:1,2 rho=F:1 kernel_type=s:CUBIC",
         "!UNSUPPORTED attribute kernel_type"},
        {"ai.onnx.ml.SVMRegressor", 1, "f32[1,2]", "coefficients=F:1 rho=F:1 n_supports=1",
         "!BAD_DATA 0 support vectors"},
        {"ai.onnx.ml.SVMClassifier", 1, "f32[1,1]",
         "coefficients=F:1,1 rho=F:1 support_vectors=F:1,1 vectors_per_class=I:1,2 "
         "classlabels_ints=I:1,2",
         "!BAD_DATA do not fit each other"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
