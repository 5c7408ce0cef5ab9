// The kernels of gpu_arithmetic.cpp. scripts/gpu-kernels makes gpu_kernels.ptx of them, which is in
// the repository and becomes part of the library, so that neither its build nor its use needs a
// CUDA toolkit: the driver translates PTX for whatever GPU there is.
//
// Any grid is right for all but dot, whose order of summing is its grid: blocks of 256 threads, and
// a sum for each block.

// A named one: the names of an unnamed one follow from the path of this file, and the PTX is compared.
namespace elasticrun_kernels {

using Count = unsigned long long;

__device__ Count first() { return blockIdx.x * Count{blockDim.x} + threadIdx.x; }
__device__ Count stride() { return gridDim.x * Count{blockDim.x}; }

// Numbers of 16 bits are only kept in memory.
struct bfloat16 {
  unsigned short bits;
};
struct float16 {
  unsigned short bits;
};
using float32 = float;
using float64 = double;
using int32 = int;
using int64 = long long;

template <class C>
struct Widened {
  template <class T>
  static __device__ C of(T x) {
    return static_cast<C>(x);
  }
  static __device__ C of(bfloat16 x) {
    return static_cast<C>(__uint_as_float(static_cast<unsigned>(x.bits) << 16));
  }
  static __device__ C of(float16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return static_cast<C>(wide);
  }
};

// Rounded to the nearest, ties to even.
template <class C>
__device__ void store(C x, float& to) {
  to = static_cast<float>(x);
}
template <class C>
__device__ void store(C x, double& to) {
  to = static_cast<double>(x);
}
template <class C>
__device__ void store(C x, int32& to) {
  to = static_cast<int32>(llrint(static_cast<double>(x)));
}
template <class C>
__device__ void store(C x, int64& to) {
  to = llrint(static_cast<double>(x));
}
template <class C>
__device__ void store(C x, bfloat16& to) {
  const unsigned bits = __float_as_uint(static_cast<float>(x));
  const bool is_number = (bits & 0x7fffffffu) <= 0x7f800000u;
  to.bits = static_cast<unsigned short>(
      (is_number ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u) >> 16);
}
template <class C>
__device__ void store(C x, float16& to) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(static_cast<float>(x)));
}

template <class To, class From, class C>
__device__ void scale(To* to, const From* from, Count count, C weight) {
  for (Count i = first(); i < count; i += stride()) store(weight * Widened<C>::of(from[i]), to[i]);
}

template <class To, class From, class C>
__device__ void add(To* to, const From* from, Count count, C weight) {
  for (Count i = first(); i < count; i += stride())
    store(Widened<C>::of(to[i]) + weight * Widened<C>::of(from[i]), to[i]);
}

template <class T>
__device__ void dot(double* sums, const T* a, const T* b, Count count) {
  __shared__ double part[256];
  double sum = 0;
  for (Count i = first(); i < count; i += stride())
    sum += Widened<double>::of(a[i]) * Widened<double>::of(b[i]);
  part[threadIdx.x] = sum;
  for (unsigned width = 128; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

}  // namespace elasticrun_kernels

using namespace elasticrun_kernels;

#define SCALE(TO, FROM, C)                                                                        \
  __global__ void scale_##TO##_from_##FROM(TO* to, const FROM* from, Count count, C weight) {     \
    scale(to, from, count, weight);                                                               \
  }
#define ADD(TO, FROM, C)                                                                          \
  __global__ void add_##TO##_from_##FROM(TO* to, const FROM* from, Count count, C weight) {       \
    add(to, from, count, weight);                                                                 \
  }
#define DOT(T)                                                                                    \
  __global__ void dot_##T(double* sums, const T* a, const T* b, Count count) {                    \
    dot(sums, a, b, count);                                                                       \
  }

extern "C" {

SCALE(float32, float32, float)
SCALE(float64, float64, double)
SCALE(bfloat16, bfloat16, float)
SCALE(float16, float16, float)
SCALE(float32, bfloat16, float)
SCALE(float32, float16, float)
SCALE(bfloat16, float32, float)
SCALE(float16, float32, float)
SCALE(float64, int32, double)
SCALE(float64, int64, double)
SCALE(int32, float64, double)
SCALE(int64, float64, double)
ADD(float32, float32, float)
ADD(float64, float64, double)
ADD(float32, bfloat16, float)
ADD(float32, float16, float)
DOT(float32)
DOT(float64)
DOT(bfloat16)
DOT(float16)

}  // extern "C"
