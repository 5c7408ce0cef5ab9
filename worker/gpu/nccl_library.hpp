// The CUDA driver and NCCL, loaded when a job needs them: one libelasticrun serves machines with
// and without a GPU, and is built without their headers.
//
// This file declares the part of cuda.h and nccl.h that we use, with our names; a test compares it
// with the real headers where they are installed. Why the driver and not the CUDA runtime: every
// machine with a GPU has libcuda.so.1, while the runtime is often linked into the program or comes
// in some Python package; and the contexts and streams of the runtime are the driver's.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"

// The struct tags of cuda.h and nccl.h, so that a program's handles have the same types as ours.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct ncclComm;

namespace elasticrun::worker::gpu {

namespace cuda {

using Status = int;  // CUresult
inline constexpr Status success = 0;
inline constexpr Status not_ready = 600;
using Device = int;
using Address = unsigned long long;  // CUdeviceptr
using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Module = CUmod_st*;
using Function = CUfunc_st*;
inline constexpr int attribute_memory_type = 2;        // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr int attribute_ordinal = 9;            // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr unsigned memory_type_device = 2;      // CU_MEMORYTYPE_DEVICE
inline constexpr unsigned stream_non_blocking = 1;     // CU_STREAM_NON_BLOCKING
inline constexpr unsigned event_no_timing = 2;         // CU_EVENT_DISABLE_TIMING
inline constexpr std::uintptr_t stream_of_thread = 2;  // CU_STREAM_PER_THREAD

// Functions of libcuda.so.1, in the versions to which cuda.h maps the plain names.
struct Driver {
  Status (*init)(unsigned) = nullptr;
  Status (*version)(int*) = nullptr;
  Status (*device_count)(int*) = nullptr;
  Status (*device)(Device*, int) = nullptr;
  Status (*device_name)(char*, int, Device) = nullptr;
  Status (*retain_context)(Context*, Device) = nullptr;
  Status (*release_context)(Device) = nullptr;
  Status (*set_context)(Context) = nullptr;
  Status (*describe)(Status, const char**) = nullptr;
  Status (*allocate)(Address*, std::size_t) = nullptr;
  Status (*free)(Address) = nullptr;
  Status (*copy)(Address, Address, std::size_t, Stream) = nullptr;
  Status (*fill)(Address, unsigned char, std::size_t, Stream) = nullptr;
  Status (*pointer_attribute)(void*, int, Address) = nullptr;
  Status (*create_stream)(Stream*, unsigned) = nullptr;
  Status (*destroy_stream)(Stream) = nullptr;
  Status (*create_event)(Event*, unsigned) = nullptr;
  Status (*destroy_event)(Event) = nullptr;
  Status (*record_event)(Event, Stream) = nullptr;
  Status (*query_event)(Event) = nullptr;
  Status (*synchronize_event)(Event) = nullptr;
  Status (*hold_stream)(Stream, Event, unsigned) = nullptr;
  Status (*load_module)(Module*, const void* image) = nullptr;
  Status (*unload_module)(Module) = nullptr;
  Status (*function)(Function*, Module, const char* name) = nullptr;
  Status (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream,
                   void** parameters, void** extra) = nullptr;
};

}  // namespace cuda

namespace nccl {

using Comm = ncclComm*;
enum Status : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};
enum Type : int { int8 = 0, float16 = 6, float32 = 7, float64 = 8, bfloat16 = 9 };
enum Operation : int { sum = 0 };
struct UniqueId {
  char internal[128];
};
inline constexpr int shrink_default = 0;

// ncclConfig_t as it was in NCCL 2.26, which every other version accepts: it reads `size` bytes, or
// as many as it knows, and has its own defaults for what came after `version`. There must be no
// padding at the end: 2.26 would read it.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;
  int blocking = 0;
  int cga_cluster_size = INT_MIN;  // INT_MIN: not set
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int traffic_class = INT_MIN;
};

// Functions of libnccl.so.2; those that an older version lacks are null.
struct Functions {
  Status (*version)(int*) = nullptr;
  const char* (*describe)(Status) = nullptr;
  const char* (*last_error)(Comm) = nullptr;
  Status (*unique_id)(UniqueId*) = nullptr;
  Status (*init)(Comm*, int size, UniqueId, int rank, Config*) = nullptr;
  Status (*init_scalable)(Comm*, int size, int rank, int ids, UniqueId*, Config*) = nullptr;
  Status (*shrink)(Comm, int* excluded, int count, Comm*, Config*, int flags) = nullptr;
  Status (*abort)(Comm) = nullptr;
  Status (*async_error)(Comm, Status*) = nullptr;
  Status (*group_start)() = nullptr;
  Status (*group_end)() = nullptr;
  Status (*all_reduce)(const void*, void*, std::size_t, Type, Operation, Comm,
                       cuda::Stream) = nullptr;
  Status (*broadcast)(const void*, void*, std::size_t, Type, int root, Comm,
                      cuda::Stream) = nullptr;
  Status (*send)(const void*, std::size_t, Type, int peer, Comm, cuda::Stream) = nullptr;
  Status (*receive)(void*, std::size_t, Type, int peer, Comm, cuda::Stream) = nullptr;
};

}  // namespace nccl

// The libraries to load; tests name other files.
struct GpuLibraryNames {
  std::string cuda = "libcuda.so.1";
  std::string nccl = "libnccl.so.2";
};

struct GpuLibraries {
  cuda::Driver cuda;
  nccl::Functions nccl;      // usable when nccl_usable
  int driver_version = 0;    // CUDA version that the driver supports: 13000 is 13.0
  int nccl_version = 0;      // 22809 is 2.28.9
  int devices = 0;           // number of devices that this process may use, > 0
  Result<void> nccl_usable;  // an error says why NCCL cannot be used
};

// Whether some part of this process has already loaded this library.
bool is_loaded(const std::string& library);

// Loads both libraries and initialises the driver; they stay loaded. An error says what this host
// lacks for a GPU; a missing NCCL is no error (see nccl_usable), for the GPU's memory can be used.
Result<std::shared_ptr<const GpuLibraries>> load_gpu_libraries(const std::string& host,
                                                               const GpuLibraryNames& names = {});

// A version as text: "2.28.9"; "13.0".
std::string nccl_version_text(int version);
std::string driver_version_text(int version);

}  // namespace elasticrun::worker::gpu
