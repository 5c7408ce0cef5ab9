// The arithmetic of a reduction, done where the numbers lie: loops on the CPU, kernels on the GPU.
//
// On the GPU everything is enqueued on the program's stream, after what compute has enqueued, and
// only dot and read wait. So one Reduction serves both, and gradients never leave the GPU.
//
// Why kernels of our own and not NCCL's ncclRedOpCreatePreMulSum, which applies weights on the way:
// it keeps NCCL from using NVLink SHARP, which only sums (ncclNvlsSupported in its source), and
// several calls of compute need the kernels anyway. Why not cuBLAS: it is another library of 500 MB
// that would have to be installed.
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
  using DataType = collective::DataType;
  // Where numbers lie, and of which type they are.
  struct Numbers {
    void* data = nullptr;
    DataType type = DataType::float64;
  };
  // Two rows of `count` numbers to multiply element by element.
  struct Factors {
    const void* a = nullptr;
    const void* b = nullptr;
    DataType type = DataType::float64;
    std::size_t count = 0;
  };

  virtual ~Arithmetic() = default;

  // allocate throws std::bad_alloc; all of the following throw GroupBroken when the GPU has failed.
  virtual Memory allocate(std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(void* to, std::size_t bytes) = 0;
  // scale: to = weight * from (to may be from); add: to += weight * from. `count` elements, of one
  // type, or of two that summed_as or gathered_as connects.
  virtual void scale(Numbers to, Numbers from, std::size_t count, double weight) = 0;
  virtual void add(Numbers to, Numbers from, std::size_t count, double weight) = 0;
  // The sum of all products, in double; ranks with the same numbers get the same bits.
  virtual double dot(std::span<const Factors> rows) = 0;
  // write copies numbers of float64 from host memory to `to`, read copies them from `from` to host
  // memory.
  virtual void write(void* to, std::span<const double> numbers) = 0;
  virtual void read(const void* from, std::span<double> numbers) = 0;

  // For work on another thread of the library's beside the program's work, on a GPU on a stream of
  // its own; on the host there is nothing to wait for. mark, on any thread, and one at a time:
  // remembers under a number how far the program's stream is. follow, on the other thread: what it
  // does from now on comes after these marks. join, on the program's thread: what the program
  // enqueues from now on comes after what the other thread has done.
  virtual void mark(std::size_t) {}
  virtual void follow(std::span<const std::size_t>) {}
  virtual void join() {}

  // From this number of bytes on, copying a tensor costs more than reducing it by itself.
  virtual std::size_t large_bytes() const = 0;
  // The type in which numbers of this type are summed over the world.
  virtual DataType summed_as(DataType type) const = 0;
  // The type in which several calls of compute are added up here, without rounding in between.
  static DataType gathered_as(DataType type) {
    return has_16_bits(type) ? DataType::float32 : type;
  }
};

std::unique_ptr<Arithmetic> make_host_arithmetic();
// Loads its kernels, which takes some milliseconds the first time. Throws GroupBroken.
std::unique_ptr<Arithmetic> make_gpu_arithmetic(std::shared_ptr<const Gpu> gpu);

}  // namespace elasticrun::worker::gpu
