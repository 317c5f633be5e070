// philox.cu - the text that programs put in front of their own kernels.
#include "philox.cuh"
