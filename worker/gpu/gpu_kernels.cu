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

template <class T>
__device__ void scale(T* to, const T* from, Count count, T weight) {
  for (Count i = first(); i < count; i += stride()) to[i] = weight * from[i];
}

template <class T>
__device__ void add(T* to, const T* from, Count count, T weight) {
  for (Count i = first(); i < count; i += stride()) to[i] += weight * from[i];
}

template <class T>
__device__ void dot(double* sums, const T* a, const T* b, Count count) {
  __shared__ double part[256];
  double sum = 0;
  for (Count i = first(); i < count; i += stride())
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  part[threadIdx.x] = sum;
  for (unsigned width = 128; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

}  // namespace elasticrun_kernels

using namespace elasticrun_kernels;

extern "C" {

__global__ void scale_float32(float* to, const float* from, Count count, float weight) {
  scale(to, from, count, weight);
}
__global__ void scale_float64(double* to, const double* from, Count count, double weight) {
  scale(to, from, count, weight);
}
__global__ void add_float32(float* to, const float* from, Count count, float weight) {
  add(to, from, count, weight);
}
__global__ void add_float64(double* to, const double* from, Count count, double weight) {
  add(to, from, count, weight);
}
__global__ void dot_float32(double* sums, const float* a, const float* b, Count count) {
  dot(sums, a, b, count);
}
__global__ void dot_float64(double* sums, const double* a, const double* b, Count count) {
  dot(sums, a, b, count);
}

}  // extern "C"
