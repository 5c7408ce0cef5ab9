// Arithmetic on the GPU: kernels that are enqueued on the program's stream.
#include <algorithm>
#include <numeric>
#include <vector>

#include "worker/gpu/arithmetic.hpp"
#include "worker/gpu/gpu.hpp"

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

template <class T>
class GpuArithmetic final : public Arithmetic {
 public:
  explicit GpuArithmetic(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)), sums_(*gpu_) {
    gpu_->enter();
    gpu_->check(gpu_->cuda().load_module(&module_, kernels_ptx), "cuModuleLoadData");
    const bool single = sizeof(T) == sizeof(float);
    scale_ = function(single ? "scale_float32" : "scale_float64");
    add_ = function(single ? "add_float32" : "add_float64");
    dot_ = function(single ? "dot_float32" : "dot_float64");
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
  void scale(void* to, const void* from, std::size_t count, double weight) override {
    if (static_cast<T>(weight) != T{1}) return weigh(scale_, to, from, count, weight);
    if (to != from) copy(to, from, count * sizeof(T));
  }
  void add(void* to, const void* from, std::size_t count, double weight) override {
    weigh(add_, to, from, count, weight);
  }
  double dot(std::span<const Factors> rows) override;
  void write(void* to, std::span<const double> numbers) override {
    written_.assign(numbers.begin(), numbers.end());
    copy(to, written_.data(), written_.size() * sizeof(T));
  }
  void read(const void* from, std::span<double> numbers) override {
    read_.resize(numbers.size());
    gpu_->enter();
    gpu_->copy_and_wait(read_.data(), from, read_.size() * sizeof(T), gpu_->stream());
    std::copy(read_.begin(), read_.end(), numbers.begin());
  }
  // 0: every tensor counts as large. A launch for each tensor is paid in either case, and NCCL
  // reduces all tensors in one group.
  std::size_t large_bytes() const override { return 0; }

 private:
  cuda::Function function(const char* name) {
    cuda::Function found = nullptr;
    gpu_->check(gpu_->cuda().function(&found, module_, name), "cuModuleGetFunction");
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
  void weigh(cuda::Function kernel, void* to, const void* from, std::size_t count, double weight) {
    constexpr unsigned most = 4096;
    if (count == 0) return;
    T w = static_cast<T>(weight);
    launch(kernel, blocks_for(count, most), &to, &from, &count, &w);
  }

  const std::shared_ptr<const Gpu> gpu_;
  cuda::Module module_ = nullptr;
  cuda::Function scale_ = nullptr, add_ = nullptr, dot_ = nullptr;
  GpuBuffer sums_;                 // one sum for each block of dot
  std::vector<T> written_, read_;  // numbers on their way to the GPU, and from it
};

template <class T>
double GpuArithmetic<T>::dot(std::span<const Factors> rows) {
  constexpr unsigned most = 256;
  std::size_t blocks = 0;
  for (const Factors& row : rows) blocks += row.count > 0 ? blocks_for(row.count, most) : 0;
  if (blocks == 0) return 0;
  std::byte* sums = sums_.reserve(blocks * sizeof(double));
  for (Factors row : rows) {
    if (row.count == 0) continue;
    const unsigned own = blocks_for(row.count, most);
    launch(dot_, own, &sums, &row.a, &row.b, &row.count);
    sums += own * sizeof(double);
  }
  std::vector<double> found(blocks);
  gpu_->copy_and_wait(found.data(), sums - blocks * sizeof(double), blocks * sizeof(double),
                      gpu_->stream());
  return std::accumulate(found.begin(), found.end(), 0.0);
}

}  // namespace

std::unique_ptr<Arithmetic> make_gpu_arithmetic(std::shared_ptr<const Gpu> gpu,
                                                collective::DataType type) {
  if (type == collective::DataType::float32)
    return std::make_unique<GpuArithmetic<float>>(std::move(gpu));
  return std::make_unique<GpuArithmetic<double>>(std::move(gpu));
}

}  // namespace elasticrun::worker::gpu
