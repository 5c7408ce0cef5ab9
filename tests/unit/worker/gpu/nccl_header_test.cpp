// Our declarations against the real headers: a difference does not compile.
#include <cuda.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "worker/gpu/nccl_library.hpp"

namespace elasticrun::worker::gpu {
namespace {

// One of their functions can be called through a pointer of ours if each type is the same, or at
// least of the same size and kind.
template <class Theirs, class Ours>
constexpr bool alike = std::is_same_v<Theirs, Ours> ||
                       (sizeof(Theirs) == sizeof(Ours) &&
                        std::is_pointer_v<Theirs> == std::is_pointer_v<Ours> &&
                        std::is_class_v<Theirs> == std::is_class_v<Ours>);

template <class Theirs, class Ours>
struct Same : std::false_type {};
template <class R1, class... A1, class R2, class... A2>
struct Same<R1(A1...), R2 (*)(A2...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A1) == sizeof...(A2))
      return alike<R1, R2> && (alike<A1, A2> && ...);
    else
      return false;
  }();
};
template <class Theirs, class Ours>
constexpr bool same = Same<Theirs, Ours>::value;

using nccl::Functions;
static_assert(same<decltype(::ncclGetVersion), decltype(Functions::version)>);
static_assert(same<decltype(::ncclGetUniqueId), decltype(Functions::unique_id)>);
static_assert(same<decltype(::ncclCommInitRankConfig), decltype(Functions::init)>);
static_assert(same<decltype(::ncclCommAbort), decltype(Functions::abort)>);
static_assert(same<decltype(::ncclCommGetAsyncError), decltype(Functions::async_error)>);
static_assert(same<decltype(::ncclAllReduce), decltype(Functions::all_reduce)>);
static_assert(same<decltype(::ncclBroadcast), decltype(Functions::broadcast)>);
static_assert(same<decltype(::ncclSend), decltype(Functions::send)>);
static_assert(same<decltype(::ncclRecv), decltype(Functions::receive)>);
static_assert(same<decltype(::ncclGroupEnd), decltype(Functions::group_end)>);
#if NCCL_VERSION_CODE >= 22304
static_assert(same<decltype(::ncclCommInitRankScalable), decltype(Functions::init_scalable)>);
#endif
#if NCCL_VERSION_CODE >= 22703
static_assert(same<decltype(::ncclCommShrink), decltype(Functions::shrink)>);
static_assert(NCCL_SHRINK_DEFAULT == nccl::shrink_default);
#endif
#if NCCL_VERSION_CODE >= 22807
#endif

static_assert(ncclSuccess == static_cast<ncclResult_t>(nccl::success));
static_assert(ncclUnhandledCudaError == static_cast<ncclResult_t>(nccl::unhandled_cuda_error));
static_assert(ncclRemoteError == static_cast<ncclResult_t>(nccl::remote_error));
static_assert(ncclInProgress == static_cast<ncclResult_t>(nccl::in_progress));
static_assert(ncclInt8 == static_cast<ncclDataType_t>(nccl::int8));
static_assert(ncclFloat16 == static_cast<ncclDataType_t>(nccl::float16));
static_assert(ncclBfloat16 == static_cast<ncclDataType_t>(nccl::bfloat16));
static_assert(ncclFloat32 == static_cast<ncclDataType_t>(nccl::float32));
static_assert(ncclFloat64 == static_cast<ncclDataType_t>(nccl::float64));
static_assert(ncclSum == static_cast<ncclRedOp_t>(nccl::sum));
static_assert(sizeof(ncclUniqueId) == sizeof(nccl::UniqueId));

// Our config is a prefix of theirs.
static_assert(offsetof(ncclConfig_t, size) == offsetof(nccl::Config, size));
static_assert(offsetof(ncclConfig_t, magic) == offsetof(nccl::Config, magic));
static_assert(offsetof(ncclConfig_t, version) == offsetof(nccl::Config, version));
static_assert(offsetof(ncclConfig_t, blocking) == offsetof(nccl::Config, blocking));
static_assert(offsetof(ncclConfig_t, netName) == offsetof(nccl::Config, net_name));
static_assert(offsetof(ncclConfig_t, splitShare) == offsetof(nccl::Config, split_share));
static_assert(offsetof(ncclConfig_t, trafficClass) == offsetof(nccl::Config, traffic_class));
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
static_assert(std::has_unique_object_representations_v<nccl::Config>, "what NCCL reads is said");
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN);

using cuda::Driver;
static_assert(same<decltype(::cuInit), decltype(Driver::init)>);
static_assert(same<decltype(::cuDriverGetVersion), decltype(Driver::version)>);
static_assert(same<decltype(::cuDeviceGet), decltype(Driver::device)>);
static_assert(same<decltype(::cuDevicePrimaryCtxRetain), decltype(Driver::retain_context)>);
static_assert(same<decltype(::cuDevicePrimaryCtxRelease), decltype(Driver::release_context)>);
static_assert(same<decltype(::cuCtxSetCurrent), decltype(Driver::set_context)>);
static_assert(same<decltype(::cuMemAlloc), decltype(Driver::allocate)>);
static_assert(same<decltype(::cuMemFree), decltype(Driver::free)>);
static_assert(same<decltype(::cuMemcpyAsync), decltype(Driver::copy)>);
static_assert(same<decltype(::cuMemsetD8Async), decltype(Driver::fill)>);
static_assert(same<decltype(::cuPointerGetAttribute), decltype(Driver::pointer_attribute)>);
static_assert(same<decltype(::cuStreamCreate), decltype(Driver::create_stream)>);
static_assert(same<decltype(::cuStreamDestroy), decltype(Driver::destroy_stream)>);
static_assert(same<decltype(::cuEventCreate), decltype(Driver::create_event)>);
static_assert(same<decltype(::cuEventRecord), decltype(Driver::record_event)>);
static_assert(same<decltype(::cuEventQuery), decltype(Driver::query_event)>);
static_assert(same<decltype(::cuEventSynchronize), decltype(Driver::synchronize_event)>);
static_assert(same<decltype(::cuModuleLoadData), decltype(Driver::load_module)>);
static_assert(same<decltype(::cuModuleUnload), decltype(Driver::unload_module)>);
static_assert(same<decltype(::cuModuleGetFunction), decltype(Driver::function)>);
static_assert(same<decltype(::cuLaunchKernel), decltype(Driver::launch)>);
static_assert(CUDA_ERROR_NOT_READY == static_cast<CUresult>(cuda::not_ready));
static_assert(static_cast<int>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE) == cuda::attribute_memory_type);
static_assert(static_cast<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) == cuda::attribute_ordinal);
static_assert(static_cast<unsigned>(CU_MEMORYTYPE_DEVICE) == cuda::memory_type_device);
static_assert(static_cast<unsigned>(CU_STREAM_NON_BLOCKING) == cuda::stream_non_blocking);
static_assert(static_cast<unsigned>(CU_EVENT_DISABLE_TIMING) == cuda::event_no_timing);

TEST_CASE("the handle of the per-thread stream is that of the header") {
  CHECK(reinterpret_cast<std::uintptr_t>(CU_STREAM_PER_THREAD) == cuda::stream_of_thread);
}

TEST_CASE("a version is encoded as the header encodes it") {
  CHECK(nccl_version_text(NCCL_VERSION_CODE) == std::to_string(NCCL_MAJOR) + "." +
                                                    std::to_string(NCCL_MINOR) + "." +
                                                    std::to_string(NCCL_PATCH));
  CHECK(nccl::Config{}.size <= sizeof(ncclConfig_t));
}

}  // namespace
}  // namespace elasticrun::worker::gpu
