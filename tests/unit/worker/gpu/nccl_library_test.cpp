// Loading the libraries of a GPU: each missing part is reported in one line.
#include "worker/gpu/nccl_library.hpp"

#include <doctest/doctest.h>

#include "tests/fakes/fake_gpu.hpp"
#include "worker/gpu/gpu.hpp"

namespace elasticrun::worker::gpu {
namespace {

std::string trouble(const GpuLibraryNames& names) {
  const auto loaded = load_gpu_libraries("n3", names);
  if (!loaded) return loaded.error().text;
  return (*loaded)->nccl_usable ? "" : (*loaded)->nccl_usable.error().text;
}

TEST_CASE("what a host lacks is named, together with what to do") {
  CHECK(trouble({.cuda = "libno-such-cuda.so.1", .nccl = FAKE_GPU}) ==
        "--backend nccl: no CUDA driver on n3: libno-such-cuda.so.1 not found; install the driver "
        "or use --backend gloo");
  CHECK(trouble({.cuda = FAKE_GPU, .nccl = "libno-such-nccl.so.2"}) ==
        "--backend nccl: no NCCL on n3: libno-such-nccl.so.2 not found; install NCCL 2.19 or newer "
        "or use --backend gloo");
  CHECK(trouble({.cuda = "libm.so.6", .nccl = FAKE_GPU}) ==
        "--backend nccl: no usable CUDA driver on n3: libm.so.6 lacks cuInit; install a newer "
        "driver or use --backend gloo");
  CHECK(trouble({.cuda = FAKE_GPU, .nccl = "libm.so.6"}) ==
        "--backend nccl: no usable NCCL on n3: libm.so.6 lacks ncclGetVersion; install NCCL 2.19 "
        "or newer or use --backend gloo");
  fake_gpu::set_version(21806);
  CHECK(trouble({.cuda = FAKE_GPU, .nccl = FAKE_GPU}) ==
        "--backend nccl: no usable NCCL on n3: " FAKE_GPU
        " is 2.18.6; install NCCL 2.19 or newer "
        "or use --backend gloo");
  fake_gpu::set_version(22809);
  fake_gpu::set_devices(0);
  CHECK(trouble({.cuda = FAKE_GPU, .nccl = FAKE_GPU}) ==
        "--backend nccl: no usable GPU on n3: cuInit: no CUDA-capable device is detected; look at "
        "nvidia-smi there or use --backend gloo");
  fake_gpu::set_devices(8);
}

TEST_CASE("functions of newer versions are optional") {
  const auto loaded = load_gpu_libraries("n3", {.cuda = FAKE_GPU, .nccl = FAKE_GPU});
  REQUIRE(loaded.has_value());
  CHECK((*loaded)->nccl_version == 22809);
  CHECK((*loaded)->driver_version == 13000);
  CHECK((*loaded)->devices == 8);
  CHECK(bool((*loaded)->nccl.shrink));
  const auto old = load_gpu_libraries("n3", {.cuda = FAKE_GPU_OLD, .nccl = FAKE_GPU_OLD});
  REQUIRE(old.has_value());
  CHECK_FALSE(bool((*old)->nccl.shrink));
  CHECK_FALSE(bool((*old)->nccl.init_scalable));
  CHECK(bool((*old)->nccl.init));
}

TEST_CASE("a worker without its own GPU gets an error") {
  const GpuLibraryNames fakes{.cuda = FAKE_GPU, .nccl = FAKE_GPU};
  fake_gpu::set_devices(2);
  const auto none = Gpu::open("n3", 2, fakes);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().text ==
        "--backend nccl: this is worker 2 of n3, which shows 2 GPUs; give it as many slots as "
        "GPUs");
  CHECK(Gpu::open("n3", 1, fakes).has_value());
  fake_gpu::set_devices(1);
  CHECK(Gpu::open("n3", 5, fakes).has_value());  // only the worker's own GPU is visible
  fake_gpu::set_devices(8);
}

TEST_CASE("the per-thread stream is replaced by one that NCCL's threads can use") {
  const auto gpu = Gpu::open("n3", 0, {.cuda = FAKE_GPU, .nccl = FAKE_GPU});
  REQUIRE(gpu.has_value());
  for (const std::uintptr_t handle : {0u, 1u, 2u, 4096u}) {
    const auto stream = reinterpret_cast<cuda::Stream>(handle);
    (*gpu)->use_stream(stream);
    CHECK((*gpu)->stream() == (handle == cuda::stream_of_thread ? nullptr : stream));
  }
}

TEST_CASE("versions are printed in their usual form") {
  CHECK(nccl_version_text(22809) == "2.28.9");
  CHECK(nccl_version_text(23102) == "2.31.2");
  CHECK(driver_version_text(13000) == "13.0");
  CHECK(driver_version_text(12080) == "12.8");
}

}  // namespace
}  // namespace elasticrun::worker::gpu
