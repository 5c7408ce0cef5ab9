// See nccl_library.hpp. Only the driver shows whether there is a usable GPU: NCCL loads, and makes
// unique ids, on machines without one.
#include "worker/gpu/nccl_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace elasticrun::worker::gpu {
namespace {

// In older versions an abort waits only for the work that its own thread began (ncclGroupJobMainPtr
// in group.cc belonged to the thread, now to the communicator), and frees what an init still uses.
constexpr int oldest_nccl = 21900;

// A function of a library, and the pointer that receives its address.
struct Symbol {
  const char* name;
  void** place;
  bool needed = true;
};

template <class Function>
Symbol symbol(const char* name, Function& place, bool needed = true) {
  return {name, reinterpret_cast<void**>(&place), needed};
}

Error missing(const std::string& host, const std::string& what, const std::string& why,
              const std::string& remedy) {
  return Error{fmt::format("--backend nccl: no {} on {}: {}; {} or use --backend gloo", what, host,
                           why, remedy)};
}

// Why a library was not loaded. dlerror returns "NAME: what is wrong: the system's error text".
std::string reason_of(const std::string& name) {
  const char* said = ::dlerror();
  const std::string text = said ? said : "unknown error";
  if (text.find("No such file") != std::string::npos) return name + " not found";
  return text;
}

// Sets all pointers. The error is the name of the first needed function that the library lacks.
template <std::size_t count>
Result<void> resolve(void* library, const std::array<Symbol, count>& symbols) {
  for (const Symbol& one : symbols) {
    *one.place = ::dlsym(library, one.name);
    if (!*one.place && one.needed) return Error{one.name};
  }
  return {};
}

Result<void> resolve(void* library, cuda::Driver& d) {
  return resolve(library, std::array{symbol("cuInit", d.init),
                                     symbol("cuDriverGetVersion", d.version),
                                     symbol("cuDeviceGetCount", d.device_count),
                                     symbol("cuDeviceGet", d.device),
                                     symbol("cuDeviceGetName", d.device_name),
                                     symbol("cuDevicePrimaryCtxRetain", d.retain_context),
                                     symbol("cuDevicePrimaryCtxRelease_v2", d.release_context),
                                     symbol("cuCtxSetCurrent", d.set_context),
                                     symbol("cuGetErrorString", d.describe),
                                     symbol("cuMemAlloc_v2", d.allocate),
                                     symbol("cuMemFree_v2", d.free),
                                     symbol("cuMemcpyAsync", d.copy),
                                     symbol("cuMemsetD8Async", d.fill),
                                     symbol("cuPointerGetAttribute", d.pointer_attribute),
                                     symbol("cuStreamCreate", d.create_stream),
                                     symbol("cuStreamDestroy_v2", d.destroy_stream),
                                     symbol("cuEventCreate", d.create_event),
                                     symbol("cuEventDestroy_v2", d.destroy_event),
                                     symbol("cuEventRecord", d.record_event),
                                     symbol("cuEventQuery", d.query_event),
                                     symbol("cuEventSynchronize", d.synchronize_event),
                                     symbol("cuStreamWaitEvent", d.hold_stream),
                                     symbol("cuModuleLoadData", d.load_module),
                                     symbol("cuModuleUnload", d.unload_module),
                                     symbol("cuModuleGetFunction", d.function),
                                     symbol("cuLaunchKernel", d.launch)});
}

Result<void> resolve(void* library, nccl::Functions& f) {
  return resolve(
      library,
      std::array{symbol("ncclGetVersion", f.version), symbol("ncclGetErrorString", f.describe),
                 symbol("ncclGetLastError", f.last_error), symbol("ncclGetUniqueId", f.unique_id),
                 symbol("ncclCommInitRankConfig", f.init),
                 symbol("ncclCommInitRankScalable", f.init_scalable, false),
                 symbol("ncclCommShrink", f.shrink, false), symbol("ncclCommAbort", f.abort),
                 symbol("ncclCommGetAsyncError", f.async_error),
                 symbol("ncclGroupStart", f.group_start), symbol("ncclGroupEnd", f.group_end),
                 symbol("ncclAllReduce", f.all_reduce), symbol("ncclBroadcast", f.broadcast),
                 symbol("ncclSend", f.send), symbol("ncclRecv", f.receive)});
}

Result<void> load_driver(const std::string& host, const std::string& name, GpuLibraries& loaded) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return missing(host, "CUDA driver", reason_of(name), "install the driver");
  cuda::Driver& driver = loaded.cuda;
  if (const auto found = resolve(library, driver); !found)
    return missing(host, "usable CUDA driver", fmt::format("{} lacks {}", name, found.error().text),
                   "install a newer driver");
  if (const cuda::Status status = driver.init(0); status != cuda::success) {
    const char* text = nullptr;
    driver.describe(status, &text);
    return missing(host, "usable GPU", fmt::format("cuInit: {}", text ? text : "unknown error"),
                   "look at nvidia-smi there");
  }
  driver.version(&loaded.driver_version);
  driver.device_count(&loaded.devices);
  if (loaded.devices < 1)
    return missing(host, "usable GPU", "the driver shows none (CUDA_VISIBLE_DEVICES?)",
                   "look at nvidia-smi there");
  return {};
}

Result<void> load_nccl(const std::string& host, const std::string& name, GpuLibraries& loaded) {
  const std::string remedy = "install NCCL 2.19 or newer";
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return missing(host, "NCCL", reason_of(name), remedy);
  if (const auto found = resolve(library, loaded.nccl); !found)
    return missing(host, "usable NCCL", fmt::format("{} lacks {}", name, found.error().text),
                   remedy);
  loaded.nccl.version(&loaded.nccl_version);
  if (loaded.nccl_version < oldest_nccl)
    return missing(host, "usable NCCL",
                   fmt::format("{} is {}", name, nccl_version_text(loaded.nccl_version)), remedy);
  return {};
}

}  // namespace

bool is_loaded(const std::string& library) {
  void* const found = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (found) ::dlclose(found);
  return found != nullptr;
}

Result<std::shared_ptr<const GpuLibraries>> load_gpu_libraries(const std::string& host,
                                                               const GpuLibraryNames& names) {
  auto loaded = std::make_shared<GpuLibraries>();
  if (auto driver = load_driver(host, names.cuda, *loaded); !driver) return driver.error();
  if (auto library = load_nccl(host, names.nccl, *loaded); !library)
    loaded->nccl_usable = library.error();
  return std::shared_ptr<const GpuLibraries>(std::move(loaded));
}

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

std::string driver_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace elasticrun::worker::gpu
