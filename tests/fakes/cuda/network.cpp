// The network of the example on GPUs, as plain C++ over the fake GPU.
#include "tests/fakes/cuda/cublas_v2.h"
#include "worker/examples/fashion/cuda_network.cu"
