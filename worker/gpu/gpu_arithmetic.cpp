// Arithmetic on the GPU: kernels that are enqueued on the program's stream.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "worker/gpu/arithmetic.hpp"
#include "worker/gpu/gpu.hpp"
#include "worker/gpu/side_stream.hpp"

namespace elasticrun::worker::gpu {
namespace {

constexpr char kernels_ptx[] =
#include "worker/gpu/gpu_kernels.inc"
    ;

constexpr unsigned threads = 256;  // threads of a block; the same as for dot in gpu_kernels.cu

// The number of blocks: enough to keep the memory of any GPU busy, each with enough to do.
unsigned blocks_for(std::size_t count, unsigned most) {
  constexpr std::size_t rows_of_block = 8;
  return static_cast<unsigned>(std::clamp<std::size_t>(count / (rows_of_block * threads), 1, most));
}

class GpuArithmetic final : public Arithmetic {
 public:
  explicit GpuArithmetic(std::shared_ptr<const Gpu> gpu)
      : gpu_(std::move(gpu)), sums_(*gpu_), side_(gpu_) {
    gpu_->enter();
    gpu_->check(gpu_->cuda().load_module(&module_, kernels_ptx), "cuModuleLoadData");
  }
  ~GpuArithmetic() override {
    if (module_ && gpu_->enter_to_free()) gpu_->cuda().unload_module(module_);
  }
  GpuArithmetic(const GpuArithmetic&) = delete;
  GpuArithmetic& operator=(const GpuArithmetic&) = delete;

  Memory allocate(std::size_t bytes) override {
    struct Owner {
      explicit Owner(std::shared_ptr<const Gpu> one) : gpu(std::move(one)), buffer(*gpu) {}
      const std::shared_ptr<const Gpu> gpu;
      GpuBuffer buffer;
    };
    const auto owner = std::make_shared<Owner>(gpu_);
    return {owner, owner->buffer.reserve(bytes)};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    gpu_->enter();
    gpu_->copy(to, from, bytes, gpu_->stream());
  }
  void clear(void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    gpu_->enter();
    gpu_->check(gpu_->cuda().fill(reinterpret_cast<cuda::Address>(to), 0, bytes, gpu_->stream()),
                "cuMemsetD8Async");
  }
  void scale(Numbers to, Numbers from, std::size_t count, double weight) override {
    if (to.type != from.type || weight != 1) return weigh("scale", to, from, count, weight);
    if (to.data != from.data) copy(to.data, from.data, count * size_of(to.type));
  }
  void add(Numbers to, Numbers from, std::size_t count, double weight) override {
    weigh("add", to, from, count, weight);
  }
  double dot(std::span<const Factors> rows) override;
  void write(void* to, std::span<const double> numbers) override {
    written_.assign(numbers.begin(), numbers.end());
    copy(to, written_.data(), written_.size() * sizeof(double));
  }
  void read(const void* from, std::span<double> numbers) override {
    gpu_->enter();
    gpu_->copy_and_wait(numbers.data(), from, numbers.size_bytes(), gpu_->stream());
  }
  void mark(std::size_t number) override { side_.mark(number); }
  void follow(std::span<const std::size_t> numbers) override { side_.follow(numbers); }
  void join() override { side_.join(); }
  // 0: every tensor counts as large. A launch for each tensor is paid in either case, and NCCL
  // reduces all tensors in one group.
  std::size_t large_bytes() const override { return 0; }
  DataType summed_as(DataType type) const override {
    return is_integer(type) ? DataType::float64 : type;
  }

 private:
  // Called on both threads that reduce.
  cuda::Function function(const std::string& name) {
    const std::lock_guard lock(mutex_);
    cuda::Function& found = functions_[name];
    if (!found)
      gpu_->check(gpu_->cuda().function(&found, module_, name.c_str()), "cuModuleGetFunction");
    return found;
  }
  // All kernels have four parameters.
  void launch(cuda::Function kernel, unsigned blocks, void* a, void* b, void* c, void* d) {
    void* parameters[] = {a, b, c, d};
    gpu_->enter();
    gpu_->check(gpu_->cuda().launch(kernel, blocks, 1, 1, threads, 1, 1, 0, gpu_->stream(),
                                    parameters, nullptr),
                "cuLaunchKernel");
  }
  // Kernels compute in double where one of the types is a double or an integer, else in float.
  void weigh(const char* what, Numbers to, Numbers from, std::size_t count, double weight) {
    constexpr unsigned most = 4096;
    if (count == 0) return;
    const cuda::Function kernel =
        function(fmt::format("{}_{}_from_{}", what, name_of(to.type), name_of(from.type)));
    const auto is_single = [](DataType type) {
      return type == DataType::float32 || has_16_bits(type);
    };
    const bool single = is_single(to.type) && is_single(from.type);
    auto weight32 = static_cast<float>(weight);
    void* const w = single ? static_cast<void*>(&weight32) : static_cast<void*>(&weight);
    launch(kernel, blocks_for(count, most), &to.data, &from.data, &count, w);
  }

  const std::shared_ptr<const Gpu> gpu_;
  cuda::Module module_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, cuda::Function> functions_;  // found so far
  GpuBuffer sums_;                                   // one sum for each block of dot
  std::vector<double> written_;                      // numbers on their way to the GPU
  SideStream side_;
};

double GpuArithmetic::dot(std::span<const Factors> rows) {
  constexpr unsigned most = 256;
  std::size_t blocks = 0;
  for (const Factors& row : rows) blocks += row.count > 0 ? blocks_for(row.count, most) : 0;
  if (blocks == 0) return 0;
  std::byte* sums = sums_.reserve(blocks * sizeof(double));
  for (Factors row : rows) {
    if (row.count == 0) continue;
    const unsigned own = blocks_for(row.count, most);
    launch(function(fmt::format("dot_{}", name_of(row.type))), own, &sums, &row.a, &row.b,
           &row.count);
    sums += own * sizeof(double);
  }
  std::vector<double> found(blocks);
  gpu_->copy_and_wait(found.data(), sums - blocks * sizeof(double), blocks * sizeof(double),
                      gpu_->stream());
  return std::accumulate(found.begin(), found.end(), 0.0);
}

}  // namespace

std::unique_ptr<Arithmetic> make_gpu_arithmetic(std::shared_ptr<const Gpu> gpu) {
  return std::make_unique<GpuArithmetic>(std::move(gpu));
}

}  // namespace elasticrun::worker::gpu
