// What a reduction does with numbers, where they lie: loops on the CPU, kernels on the GPU.
//
// On the GPU everything is enqueued on the program's stream, behind what compute has enqueued, and
// nothing waits but dot and read. So one Reduction serves both, and gradients never leave the GPU.
//
// Why kernels of our own and not NCCL's ncclRedOpCreatePreMulSum, which weighs on the way: it keeps
// NCCL from NVLink SHARP, which only sums (ncclNvlsSupported in its source), and several calls of
// compute need the kernels anyway. Why not cuBLAS: another library of 500 MB that must be there.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "worker/collective/group.hpp"

namespace elasticrun::worker::gpu {

class Gpu;

class Arithmetic {
 public:
  using Memory = std::shared_ptr<std::byte>;
  struct Factors {
    const void* a = nullptr;
    const void* b = nullptr;
    std::size_t count = 0;
  };

  virtual ~Arithmetic() = default;

  // What follows throws std::bad_alloc here, and GroupBroken when the GPU has failed. All numbers
  // are of the type that the arithmetic was made for.
  virtual Memory allocate(std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(void* to, std::size_t bytes) = 0;
  // to = weight * from, in place as well; to += weight * from.
  virtual void scale(void* to, const void* from, std::size_t count, double weight) = 0;
  virtual void add(void* to, const void* from, std::size_t count, double weight) = 0;
  // The sum of all products, in double; ranks with the same numbers get the same sum.
  virtual double dot(std::span<const Factors> rows) = 0;
  // From and to memory of the host.
  virtual void write(void* to, std::span<const double> numbers) = 0;
  virtual void read(const void* from, std::span<double> numbers) = 0;

  // From here on copying a tensor costs more than reducing it by itself.
  virtual std::size_t large_bytes() const = 0;
};

std::unique_ptr<Arithmetic> make_host_arithmetic(collective::DataType type);
// Loads its kernels: some milliseconds at the first time. Throws GroupBroken.
std::unique_ptr<Arithmetic> make_gpu_arithmetic(std::shared_ptr<const Gpu> gpu,
                                                collective::DataType type);

}  // namespace elasticrun::worker::gpu
