// The CUDA runtime over the fake GPU: what the GPU example calls, so that the example compiles as
// plain C++ and trains without a GPU. A launch waits until its stream is empty, and then the
// calling thread does the work.
#pragma once

#include <cstddef>
#include <cstring>

#define __device__
#define __global__

struct CUstream_st;

extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int*);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuMemAlloc_v2(unsigned long long*, std::size_t);
int cuMemFree_v2(unsigned long long);
int cuMemcpyAsync(unsigned long long, unsigned long long, std::size_t, CUstream_st*);
int cuStreamCreate(CUstream_st**, unsigned);
int cuStreamDestroy_v2(CUstream_st*);
int cuStreamSynchronize(CUstream_st*);
}

using cudaError_t = int;
using cudaStream_t = CUstream_st*;
inline constexpr cudaError_t cudaSuccess = 0;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

struct dim3 {
  explicit dim3(unsigned count = 0) : x(count) {}
  unsigned x;
};
inline thread_local dim3 blockIdx, blockDim, threadIdx;

inline const char* cudaGetErrorString(cudaError_t) { return "fake trouble"; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  cuInit(0);
  return cuDeviceGetCount(count);
}
inline cudaError_t cudaSetDevice(int device) {
  void* context = nullptr;
  cuDevicePrimaryCtxRetain(&context, device);
  return cuCtxSetCurrent(context);
}
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  unsigned long long address = 0;
  const cudaError_t status = cuMemAlloc_v2(&address, bytes);
  *memory = reinterpret_cast<void*>(address);
  return status;
}
inline cudaError_t cudaFree(void* memory) {
  return cuMemFree_v2(reinterpret_cast<unsigned long long>(memory));
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  return cuMemcpyAsync(reinterpret_cast<unsigned long long>(to),
                       reinterpret_cast<unsigned long long>(from), bytes, stream);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cuStreamCreate(stream, 0); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return cuStreamDestroy_v2(stream); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return cuStreamSynchronize(stream);
}
template <class Body>
cudaError_t cudaLaunchKernel(void (*kernel)(std::size_t, Body), dim3 blocks, dim3 threads,
                             void** arguments, std::size_t, cudaStream_t stream) {
  cuStreamSynchronize(stream);
  blockDim = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads.x; ++threadIdx.x)
      kernel(*static_cast<std::size_t*>(arguments[0]), *static_cast<Body*>(arguments[1]));
  return cudaSuccess;
}
