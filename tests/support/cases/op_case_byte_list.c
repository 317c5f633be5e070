// The op cases of numbers in steps; see op_cases.h for their writing.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

// Products of bytes in each of their ways; the numbers wrap. A product of 130 x 150 x 400 has 18
// ways on tensor cores of Hopper, which are all the tiles there are, and 8 on those before it.
#define WAY(op, inputs, attributes, way) \
    { op, 10, inputs, "way=" #way " " attributes, 1 }
#define FEW_WAYS(op, inputs, attributes)                                 \
    WAY(op, inputs, attributes, 0), WAY(op, inputs, attributes, 4),      \
        WAY(op, inputs, attributes, 6), WAY(op, inputs, attributes, 11), \
        WAY(op, inputs, attributes, 14)
#define ALL_WAYS(op, inputs, attributes)                                  \
    FEW_WAYS(op, inputs, attributes), WAY(op, inputs, attributes, 1),     \
        WAY(op, inputs, attributes, 2), WAY(op, inputs, attributes, 3),   \
        WAY(op, inputs, attributes, 5), WAY(op, inputs, attributes, 7),   \
        WAY(op, inputs, attributes, 8), WAY(op, inputs, attributes, 9),   \
        WAY(op, inputs, attributes, 10), WAY(op, inputs, attributes, 12), \
        WAY(op, inputs, attributes, 13), WAY(op, inputs, attributes, 15), \
        WAY(op, inputs, attributes, 16), WAY(op, inputs, attributes, 17), \
        WAY(op, inputs, attributes, 18)

const op_case op_byte_cases[] = {
    {"QuantizeLinear", 13, "T[7,33]:n200 T[]:=0.75 u8[]:=131", "", 1},
    {"QuantizeLinear", 13, "f32[9]:=-2.5,-1.5,-0.5,0.5,1.5,2.5,3.5,300,-300 f32[]:=1 i8[]:=-128",
     "", 1},
    {"QuantizeLinear", 13, "T[2,5,7]:n300 T[5]:p i8[5]:n100", "axis=1", 1},
    {"QuantizeLinear", 13, "i32[6,16]:n3000 f32[1]:=9.5 i8[1]:=-3", "", 1},
    {"QuantizeLinear", 19, "T[3,40]:n400 T[]:=1.5", "", 1},
    {"QuantizeLinear", 19, "bf16[16] bf16[]:=0.0078125 u8[]:=200", "", 1},
    {"QuantizeLinear", 21, "T[4,9,3]:n20 T[4,3,3]:p i16[4,3,3]:n1000", "axis=1 block_size=3", 1},
    {"QuantizeLinear", 21, "T[4,10,3]:n20 T[4,4,3]:p u8[4,4,3]:i256", "axis=1 block_size=3", 1},
    {"QuantizeLinear", 21, "f32[5,6]:n60000 f32[5]:p u16[5]:i60000", "axis=0", 1},
    {"QuantizeLinear", 21, "f32[3,0] f32[]:=1.0", "", 1},
    {"DequantizeLinear", 13, "u8[7,33]:i256 T[]:=0.7 u8[]:=131", "", 1},
    {"DequantizeLinear", 13, "i8[2,5,7]:n128 T[5]:p i8[5]:n128", "axis=-2", 1},
    {"DequantizeLinear", 13, "i32[4,8]:n9999999 f32[8]:p", "", 1},
    {"DequantizeLinear", 21, "i16[4,9,3]:n9999 T[4,3,3]:p i16[4,3,3]:n1000", "axis=1 block_size=3",
     1},
    {"DequantizeLinear", 21, "u16[4,10,3]:i60000 f32[4,4,3]:p", "axis=1 block_size=3", 1},
    {"DynamicQuantizeLinear", 11, "f32[4,33]:n9", "", 3},
    {"DynamicQuantizeLinear", 11, "f32[3,5001]:n200", "", 3},
    {"DynamicQuantizeLinear", 11, "f32[70]:p", "", 3},
    {"DynamicQuantizeLinear", 11, "f32[3]:=-4.5,-1.25,-0.5", "", 3},
    {"DynamicQuantizeLinear", 11, "f32[6]:=0,0,0,0,0,0", "", 3},
    {"MatMulInteger", 10, "u8[5,33]:i256 i8[33,17]:n128", "", 1},
    {"MatMulInteger", 10, "i8[70,64]:n128 i8[64,130]:n128", "", 1},
    {"MatMulInteger", 10, "u8[4,40]:i256 u8[40,9]:k128 u8[]:=255 u8[]:=3", "", 1},
    {"MatMulInteger", 10, "u8[1,67]:i256 i8[67,9]:k128 u8[1]:i256 i8[9]:n128", "", 1},
    {"MatMulInteger", 10, "u8[66,36]:i256 i8[36,65]:k128 u8[]:=128 i8[]:=0", "", 1},
    {"MatMulInteger", 10, "i8[5,8]:n128 u8[8,3]:i256 i8[5]:n128 u8[3]:i256", "", 1},
    {"MatMulInteger", 10, "u8[2,3,7,16]:i256 u8[16,9]:k128 u8[42]:i256", "", 1},
    {"MatMulInteger", 10, "u8[2,1,7,17]:i256 i8[3,17,9]:n128 u8[14]:i256 i8[27]:n128", "", 1},
    {"MatMulInteger", 10, "u8[2,1,7,17]:i256 i8[3,17,9]:k128 u8[7]:i256 i8[9]:n128", "", 1},
    {"MatMulInteger", 10, "u8[16]:i256 i8[16]:n128", "", 1},
    {"MatMulInteger", 10, "u8[1,140000]:i256 u8[140000,2]:k128", "", 1},
    {"MatMulInteger", 10, "u8[5,140000]:i256 u8[140000,2]:i256", "", 1},
    {"QLinearMatMul", 10,
     "u8[5,33]:i256 f32[]:=0.01 u8[]:=120 u8[33,17]:k128 f32[]:=0.02 u8[]:=9 f32[]:=0.5 u8[]:=100",
     "", 1},
    {"QLinearMatMul", 10,
     "i8[2,70,36]:n128 f32[140]:=0.5,1.25,0.75 i8[140]:n128 i8[36,67]:n128 f32[67]:=1.5,0.1,0.9 "
     "i8[67]:n128 f32[]:=900 "
     "i8[]:=-7",
     "", 1},
    {"QLinearMatMul", 21,
     "u8[2,4,8]:i256 f16[]:=0.5 u8[]:=120 i8[2,8,3]:n128 f16[]:=0.25 i8[]:=0 f16[]:=8.0 u8[]:=1",
     "", 1},
    {"ConvInteger", 10, "u8[2,3,9,7]:i256 i8[10,3,3,3]:k128 u8[]:=127", "pads=1,1,1,1", 1},
    {"ConvInteger", 10, "u8[1,5,8,8]:i256 u8[70,5,1,1]:k128 u8[]:=3 u8[70]:i256", "", 1},
    {"ConvInteger", 10, "i8[1,8,12,12]:n128 i8[16,4,3,3]:n128 i8[]:=-128",
     "group=2 strides=2,2 pads=0,1,1,0", 1},
    {"ConvInteger", 10, "u8[2,6,9,9]:i256 i8[6,1,3,3]:k128 u8[]:=7 i8[6]:n128",
     "group=6 pads=1,1,1,1 dilations=2,2", 1},
    {"ConvInteger", 10, "u8[2,8,30]:i256 i8[12,8,5]:n128", "auto_pad=SAME_UPPER strides=2", 1},
    // strides of 4 go by 4 x 4 bytes, phases behind the eighth are found for each row
    {"ConvInteger", 10, "u8[2,3,9,24]:i256 i8[7,3,4,4]:n128 u8[]:=7", "strides=4,4", 1},
    {"ConvInteger", 10, "u8[1,3,9,31]:i256 i8[7,3,4,6]:n128 u8[]:=7", "strides=3,4 pads=1,2,3,5",
     1},
    {"ConvInteger", 10, "i8[1,2,5,17]:n128 i8[5,2,3,5]:n128", "strides=2,4 pads=0,9,0,7", 1},
    {"ConvInteger", 10, "u8[1,2,5,60]:i256 i8[5,2,3,13]:n128 u8[]:=9", "strides=1,11 pads=1,4,1,9",
     1},
    {"ConvInteger", 10, "u8[1,2,4,5,6]:i256 i8[9,2,2,3,2]:k128 u8[]:=200", "", 1},
    {"QLinearConv", 10,
     "u8[1,16,10,10]:i256 f32[]:=0.02 u8[]:=120 i8[24,16,3,3]:k128 f32[24]:p i8[24]:n128 "
     "f32[]:=80.0 u8[]:=128 i32[24]:n20000",
     "pads=1,1,1,1", 1},
    {"QLinearConv", 10,
     "u8[2,3,11,11]:i256 f32[]:=0.02 u8[]:=120 u8[66,3,3,3]:i256 f32[]:=0.01 u8[]:=99 f32[]:=0.7 "
     "u8[]:=3",
     "strides=2,2", 1},
    {"QLinearConv", 10,
     "u8[1,3,9,9]:i256 f32[]:=0.1 u8[]:=0 i8[8,3,2,2]:k2 f32[]:=0.05 i8[]:=0 f32[]:=0.09 u8[]:=3 "
     "i32[8]:n9",
     "", 1},
    {"QLinearConv", 10,
     "i8[1,8,9,9]:n128 f32[]:=0.02 i8[]:=-5 i8[8,1,5,5]:k128 f32[8]:p i8[8]:k1 f32[]:=40.0 i8[]:=9 "
     "i32[8]:n9000",
     "group=8 pads=2,2,2,2", 1},
    {"com.microsoft.DynamicQuantizeLSTM", 1,
     "f32[5,2,6] i8[1,6,32]:k128 i8[1,8,32]:k128 f32[1,64]:w - - - - f32[1]:=0.004 i8[1]:=3 "
     "f32[1]:=0.005",
     "hidden_size=8", 3},
    {"com.microsoft.DynamicQuantizeLSTM", 1,
     "f32[4,3,9] u8[2,9,44]:k128 u8[2,11,44]:k128 - - f32[2,3,11] f32[2,3,11] f32[2,33]:w "
     "f32[2]:=0.004,0.002 u8[2]:=128,9 f32[2]:=0.005,0.003 u8[2]:=100,140",
     "hidden_size=11 direction=bidirectional clip=0.4 input_forget=1", 3},
    {"com.microsoft.DynamicQuantizeLSTM", 1,
     "f32[3,1,3000] i8[1,3000,32]:k128 i8[1,8,32]:k128 - - - - - f32[1,32]:=0.0001,0.0002,0.0003 "
     "i8[1,32]:k128 "
     "f32[1,32]:=0.005,0.004,0.003 i8[1,32]:k128",
     "hidden_size=8 direction=reverse", 3},
    // ---- weights of a few bits: few rows, many, blocks that are not whole, all kinds of zeros
    {"com.microsoft.MatMulNBits", 1, "T[3,64] u8[40,2,16]:k128 T[40,2]:w",
     "K=64 N=40 bits=4 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[1,100] u8[70,4,16]:k128 T[280]:w u8[140]:k128 - T[70]:w",
     "K=100 N=70 bits=4 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[2,21,80] u8[33,5,8]:k128 T[33,5]:w T[33,5]:w",
     "K=80 N=33 bits=4 block_size=16", 1},
    {"com.microsoft.MatMulNBits", 1, "T[6,48] u8[17,3,16]:k128 T[17,3]:w u8[51]:k128",
     "K=48 N=17 bits=8 block_size=16", 1},
    {"com.microsoft.MatMulNBits", 1,
     "T[40,2100] u8[35,17,32]:k128 T[35,17]:w u8[175]:k128 - T[35]:w",
     "K=2100 N=35 bits=2 block_size=128", 1},
    {"com.microsoft.MatMulNBits", 1, "T[2,64] u8[9,2,16]:k128 T[9,2]:w - i32[64]:=0,1,1,0",
     "K=64 N=9 bits=4 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[2,64] u8[9,2,16]:i256 T[9,2]:w", "K=64 N=9 block_size=32",
     1},
    {"com.microsoft.MatMulNBits", 1, "T[13,136] u8[70,9,8]:k128 T[70,9]:w u8[350]:k128 - T[70]:w",
     "K=136 N=70 bits=4 block_size=16", 1},
    {"com.microsoft.MatMulNBits", 1, "T[90,192] u8[100,3,64]:k128 T[300]:w T[300]:w",
     "K=192 N=100 bits=8 block_size=64", 1},
    // parts of k to each block of a cluster
    {"com.microsoft.MatMulNBits", 1, "T[16,1024] u8[70,64,8]:k128 T[70,64]:w",
     "K=1024 N=70 block_size=16", 1},
    {"com.microsoft.MatMulNBits", 1, "T[66,1536] u8[40,24,32]:k128 T[40,24]:w",
     "K=1536 N=40 block_size=64", 1},
    // weights as the left operand: one tile and many, rows behind a tile, two of 64 rows
    {"com.microsoft.MatMulNBits", 1, "T[1,512] u8[40,8,32]:k128 T[40,8]:w u8[160]:k128",
     "K=512 N=40 block_size=64", 1},
    {"com.microsoft.MatMulNBits", 1, "T[20,96] u8[4300,3,16]:k128 T[4300,3]:w",
     "K=96 N=4300 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1,
     "T[50,2176] u8[36,17,64]:k128 T[36,17]:w u8[324]:k128 - T[36]:w", "K=2176 N=36 block_size=128",
     1},
    {"com.microsoft.MatMulNBits", 1, "T[16,4096] u8[70,128,16]:k128 T[70,128]:w",
     "K=4096 N=70 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1,
     "T[33,1536] u8[40,24,32]:k128 T[40,24]:w u8[480]:k128 - T[40]:w", "K=1536 N=40 block_size=64",
     1},
    {"com.microsoft.MatMulNBits", 1, "T[70,160] u8[66,5,8]:k128 T[66,5]:w",
     "K=160 N=66 bits=2 block_size=32", 1},
    // one row: parts of a warp's share, turns, several warps; what stands around it
    {"com.microsoft.MatMulNBits", 1, "T[1,64] u8[40,2,16]:k128 T[40,2]:w - - T[40]:w",
     "K=64 N=40 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[1,1984] u8[19,62,16]:k128 T[19,62]:w u8[589]:k128",
     "K=1984 N=19 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[1,9216] u8[18,72,64]:k128 T[18,72]:w u8[648]:k128",
     "K=9216 N=18 block_size=128", 1},
    {"rondo.BitsRow", 1, "f16[1,1,320] u8[33,10,16]:k128 f16[33,10]:w - - - f16[320]:w",
     "K=320 N=33 block_size=32 activation=relu", 1},
    {"rondo.BitsRow", 1,
     "f16[1,2112] u8[40,66,16]:k128 f16[40,66]:w - - - f16[2112]:w u8[40,66,16]:k128 f16[40,66]:w",
     "K=2112 N=40 block_size=32 activation=silu", 1},
    {"rondo.BitsRow", 1,
     "f16[1,256] u8[20,8,16]:k128 f16[20,8]:w u8[80]:k128 - - - u8[20,8,16]:k128 f16[20,8]:w "
     "u8[80]:k128",
     "K=256 N=20 block_size=32 activation=gelu", 1},
    // two to eight rows: one addend for all or one each, turns, two tiles of columns
    {"rondo.BitsRow", 1, "f16[3,1,320] u8[33,10,16]:k128 f16[33,10]:w - - f16[3,1,33] f16[320]:w",
     "K=320 N=33 block_size=32 activation=relu", 1},
    {"rondo.BitsRow", 1,
     "f16[8,2112] u8[40,66,16]:k128 f16[40,66]:w - - - f16[2112]:w u8[40,66,16]:k128 f16[40,66]:w",
     "K=2112 N=40 block_size=32 activation=silu", 1},
    {"rondo.BitsRow", 1,
     "f16[2,256] u8[20,8,16]:k128 f16[20,8]:w u8[80]:k128 - - - u8[20,8,16]:k128 f16[20,8]:w "
     "u8[80]:k128",
     "K=256 N=20 block_size=32 activation=gelu", 1},
    {"rondo.BitsRow", 1,
     "f16[25,320] u8[20,10,16]:k128 f16[20,10]:w - - - - u8[20,10,16]:k128 f16[20,10]:w",
     "K=320 N=20 block_size=32 activation=silu", 1},
    {"rondo.BitsRow", 1, "f16[13,4160] u8[40,65,32]:k128 f16[40,65]:w - - f16[13,40]",
     "K=4160 N=40 block_size=64", 1},
    {"com.microsoft.MatMulNBits", 1,
     "T[5,4224] u8[19,33,64]:k128 T[19,33]:w u8[323]:k128 - T[19]:w", "K=4224 N=19 block_size=128",
     1},
    {"com.microsoft.MatMulNBits", 1, "T[7,64] u8[8472,2,16]:k128 T[8472,2]:w",
     "K=64 N=8472 block_size=32", 1},
    {"com.microsoft.MatMulNBits", 1, "T[27,64] u8[8472,2,16]:k128 T[8472,2]:w",
     "K=64 N=8472 block_size=32", 1},
    {"com.microsoft.GatherBlockQuantized", 1, "u8[5,32,6]:i256 i32[4]:n5 T[5,2,12] u8[5,2,6]:i256",
     "block_size=16", 1},
    {"com.microsoft.GatherBlockQuantized", 1, "u8[9,16]:k128 i64[2,3]:n9 T[9,2]:w u8[9,1]:k128",
     "block_size=16", 1},
    {"com.microsoft.GatherBlockQuantized", 1, "u8[5,3,64]:i256 i32[4]:n5 T[5,3,2]",
     "block_size=32 bits=8 quantize_axis=2", 1},
    {"com.microsoft.FusedMatMul", 1, "T[3,5,7] T[3,9,5]", "transA=1 transB=1 alpha=0.5", 1},
    {"com.microsoft.TransposeMatMul", 1, "T[2,5,7] T[9,7]", "transB=1", 1},
    {"rondo.QLinearAdd", 1,
     "u8[2,5,700]:i256 f32[]:=0.013 u8[]:=117 u8[2,5,700]:i256 f32[]:=0.021 u8[]:=9 f32[]:=0.03 "
     "u8[]:=120",
     "", 1},
    {"rondo.QLinearAdd", 1,
     "i8[3,33]:n128 f32[1]:=0.5 i8[1]:=-7 u8[3,33]:i256 f32[]:=0.25 u8[]:=200 f32[]:=0.7 i8[]:=3",
     "", 1},
    {"rondo.QLinearAdd", 1,
     "u16[9,41]:i60000 f32[]:=0.001 u16[]:=30000 i16[9,41]:n9999 f32[]:=0.002 i16[]:=-5 "
     "f32[]:=0.003 "
     "u16[]:=20000",
     "", 1},
    {"rondo.QLinearAdd", 1,
     "u8[4,1,6]:i256 f32[]:=0.01 u8[]:=100 u8[5,1]:i256 f32[]:=0.02 u8[]:=50 f32[]:=0.02 u16[]:=7",
     "", 1},
    {"rondo.MaxPool", 17, "u8[2,9,8,16]:i256",
     "channels_last=1 kernel_shape=3,3 strides=2,2 dilations=1,1 pads=1,1,1,1", 1},
    {"rondo.MaxPool", 17, "i8[1,9,8,5]:n128",
     "channels_last=1 kernel_shape=2,4 strides=1,2 dilations=1,1 pads=0,1,0,2", 1},
    // ---- in each way: zero points by row and column, all pairs of types
    ALL_WAYS("MatMulInteger", "u8[130,400]:i256 u8[400,150]:k128 u8[130]:i256 u8[150]:i256", ""),
    FEW_WAYS("MatMulInteger", "i8[130,400]:n128 i8[400,150]:k128 i8[]:=-128 i8[150]:n128", ""),
    FEW_WAYS("MatMulInteger", "u8[65,132]:i256 i8[132,72]:k128 u8[]:=255", ""),
    FEW_WAYS("MatMulInteger", "i8[17,33]:n128 u8[33,70]:k128 i8[17]:n128 u8[]:=3", ""),
    FEW_WAYS("MatMulInteger", "u8[3,48]:i256 u8[48,9]:k128 u8[3]:i256 u8[9]:i256", ""),
    // computed weights
    FEW_WAYS("MatMulInteger", "u8[34,72]:i256 u8[72,67]:i256 u8[]:=9 u8[67]:i256", ""),
    FEW_WAYS("MatMulInteger", "u8[2,20,72]:i256 i8[72,40]:n128 u8[40]:i256 i8[]:=-7", ""),
    // sums that leave 31 bits on their way
    FEW_WAYS("MatMulInteger", "u8[5,70000]:=255 u8[70000,9]:=255 u8[]:=250 u8[]:=251", ""),
    // ---- steps
    ALL_WAYS("QLinearMatMul",
             "u8[130,400]:i256 f32[]:=0.01 u8[]:=120 i8[400,152]:k128 f32[152]:=0.02,0.01,0.005 "
             "i8[152]:n128 f32[]:=0.5 u8[]:=100",
             ""),
    FEW_WAYS("QLinearMatMul",
             "i8[70,36]:n128 f32[70]:=0.5,1.25,0.75 i8[70]:n128 i8[36,67]:k128 "
             "f32[67]:=1.5,0.1,0.9 i8[67]:n128 f32[]:=900 i8[]:=-7",
             ""),
    FEW_WAYS("QLinearMatMul",  // quotients in the middle of two steps
             "i8[40,16]:n3 f32[]:=0.5 i8[]:=0 i8[16,24]:k3 f32[]:=1 i8[]:=0 f32[]:=1 i8[]:=3", ""),
    FEW_WAYS("QLinearMatMul",  // quotients in the middle of two steps once they are rounded to f32
             "u8[40,16]:i256 f32[]:=0.1 u8[]:=0 i8[16,24]:k3 f32[]:=0.05 i8[]:=0 f32[]:=0.09 "
             "u8[]:=3",
             ""),
    FEW_WAYS("QLinearMatMul",
             "u8[40,16]:i256 f32[40]:=0.1,0.3,0.7 u8[40]:=0 i8[16,24]:k3 f32[24]:=0.05,0.1 "
             "i8[24]:=0 f32[]:=0.09 u8[]:=3",
             ""),
    FEW_WAYS("QLinearMatMul",  // a product of scales that is 0 in f32
             "i8[40,16]:n3 f32[]:=1e-25 i8[]:=0 i8[16,24]:k3 f32[]:=1e-25 i8[]:=0 f32[]:=1e-38 "
             "i8[]:=3",
             ""),
    FEW_WAYS("QLinearMatMul",
             "u8[40,16]:i256 f32[]:=0 u8[]:=1 u8[16,24]:k128 f32[]:=1 u8[]:=0 f32[]:=0 u8[]:=3",
             ""),
    // ---- real numbers
    ALL_WAYS("rondo.MatMulInteger",
             "u8[130,400]:i256 i8[400,148]:k128 u8[]:i256 - f32[]:p f32[148]:p f32[148] "
             "f32[130,148]:n90000",
             "activation=silu"),
    FEW_WAYS("rondo.MatMulInteger",
             "u8[2,3,40]:i256 i8[40,9]:k128 u8[]:i256 i8[9]:n128 f32[1]:p - f32[9]",
             "activation=relu"),
    FEW_WAYS("rondo.MatMulInteger",
             "i8[50,44]:n128 u8[44,33]:k128 - u8[]:=77 - f32[33]:p - f32[50,33]",
             "activation=gelu"),
    FEW_WAYS("rondo.MatMulInteger", "u8[1,512]:i256 i8[512,40]:k128 u8[]:=3 - f32[]:p f32[]:p", ""),
    WAY("rondo.MatMulInteger", "u8[3,40]:i256 i8[40,9]:k128 u8[]:=3 -", "", 0),
    WAY("rondo.MatMulInteger", "u8[2,3,8]:i256 i8[2,8,5]:k128 - - f32[]:p f32[5]:p f32[5]", "", 0),
    // ---- convolutions with channels last
    ALL_WAYS("rondo.ConvInteger",
             "u8[2,9,7,32]:i256 i8[40,32,3,3]:k128 u8[]:=127 i8[40]:n128 f32[]:p f32[40]:p f32[40] "
             "f32[2,9,7,40]",
             "channels_last=1 pads=1,1,1,1 activation=silu"),
    FEW_WAYS("rondo.ConvInteger", "u8[2,9,8,24]:i256 u8[24,24,3,2]:k128 u8[]:=3 u8[]:=131",
             "channels_last=1 pads=0,1,2,1 strides=2,1 dilations=1,2"),
    FEW_WAYS("rondo.ConvInteger",
             "u8[1,11,10,20]:i256 i8[66,20,3,3]:k128 u8[]:=200 - f32[]:=0.01 f32[]:=0.3 f32[66]",
             "channels_last=1 pads=2,1,1,2 strides=2,2 bias_in_steps=1 activation=relu"),
    FEW_WAYS("rondo.ConvInteger",
             "i8[2,13,12,3]:n128 i8[32,3,7,7]:k128 i8[]:=-7 i8[32]:n128 f32[]:p",
             "channels_last=1 pads=3,3,3,3 strides=2,2"),
    FEW_WAYS("rondo.ConvInteger",
             "u8[3,6,5,48]:i256 i8[30,48,1,1]:k128 u8[]:=9 - f32[]:p f32[30]:p", "channels_last=1"),
    FEW_WAYS("rondo.ConvInteger", "u8[1,6,5,30]:i256 i8[16,30,1,1]:k128 u8[]:=9 i8[]:=1 f32[]:p",
             "channels_last=1 strides=2,1"),
    FEW_WAYS("rondo.ConvInteger", "u8[1,6,5,16]:i256 i8[20,16,3,3]:n128 u8[]:=9 i8[20]:n128",
             "channels_last=1 pads=1,1,1,1"),
    WAY("rondo.ConvInteger", "u8[2,8,9,8]:i256 i8[12,4,3,3]:k128 u8[]:=9 - f32[]:p - f32[12]",
        "channels_last=1 pads=1,1,1,1 group=2", 0),
    WAY("rondo.ConvInteger", "u8[2,8,9,6]:i256 i8[16,3,3,3]:k128 u8[]:=9 i8[16]:n128",
        "channels_last=1 pads=1,1,1,1 group=2", 0),
    WAY("rondo.ConvInteger",
        "u8[2,8,9,6]:i256 i8[6,1,3,3]:k128 u8[]:=9 i8[6]:n128 f32[]:p f32[6]:p f32[6] f32[2,8,9,6]",
        "channels_last=1 pads=1,1,1,1 group=6", 0),
    WAY("rondo.ConvInteger",
        "u8[2,6,8,9]:i256 i8[16,6,3,3]:k128 u8[]:=9 - f32[]:p f32[16]:p f32[16] f32[2,16,8,9]",
        "channels_last=0 pads=1,1,1,1 bias_in_steps=1", 0),
    WAY("rondo.ConvInteger",
        "u8[2,6,19]:i256 i8[6,1,3]:k128 u8[]:=9 - f32[]:p f32[6]:p - f32[2,6,19]",
        "channels_last=0 pads=1,1 group=6 activation=sigmoid", 0),
    FEW_WAYS("rondo.QLinearConv",
             "u8[1,10,10,16]:i256 f32[]:=0.02 u8[]:=120 i8[24,16,3,3]:k128 f32[24]:p i8[24]:n128 "
             "f32[]:=80.0 u8[]:=128 i32[24]:n20000",
             "channels_last=1 pads=1,1,1,1"),
    FEW_WAYS("rondo.QLinearConv",
             "i8[2,11,11,64]:n128 f32[]:=0.02 i8[]:=-9 i8[70,64,3,3]:k128 f32[]:=0.01 i8[]:=0 "
             "f32[]:=0.7 i8[]:=3 i32[70]:=2147483647,-2147483647,500",
             "channels_last=1 strides=2,2"),
    WAY("rondo.QLinearConv",
        "i8[1,9,9,8]:n128 f32[]:=0.02 i8[]:=-5 i8[8,1,5,5]:k128 f32[8]:p i8[8]:k1 f32[]:=40.0 "
        "i8[]:=9 i32[8]:n9000",
        "channels_last=1 group=8 pads=2,2,2,2", 0),
};

const size_t op_byte_case_count = sizeof(op_byte_cases) / sizeof(op_byte_cases[0]);
