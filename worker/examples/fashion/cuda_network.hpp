// The network of network.hpp on a GPU: the same weights at the start, the same arithmetic,
// and everything that apply changes or the workers reduce in the GPU's memory.
//
// No type of CUDA's shows here, so that the page that documents the library is plain C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "idx.hpp"

namespace fashion_cuda {

// Of `local_rank` among the GPUs that this process is shown, or the only one; what follows in this
// thread is allocated there. Throws std::runtime_error, as everything here does when CUDA fails.
void choose_gpu(int local_rank);

// Images in the GPU's memory.
class Images {
 public:
  explicit Images(const fashion::Dataset& data);
  std::size_t size() const { return size_; }

  const std::uint8_t* pixels() const { return pixels_.get(); }
  const std::uint8_t* labels() const { return labels_.get(); }

 private:
  std::size_t size_;
  std::shared_ptr<std::uint8_t> pixels_, labels_;
};

// Sums over some images.
struct Figures {
  double loss = 0;
  double hits = 0;
};

template <class T>
struct Workspace;

template <class T>
class Network {
 public:
  Network(std::size_t hidden, const std::vector<T>& weights);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // On which all of it is enqueued: a cudaStream_t.
  void* stream() const;
  // In the GPU's memory, each as long as the weights.
  std::span<T> weights();
  std::span<T> velocity();
  std::span<T> gradients();

  // Enqueues the mean gradient over the samples; waits for the figures only.
  Figures backward(const Images& images, std::span<const std::uint64_t> samples);
  // Enqueues a step of gradient descent with momentum.
  void descend(double rate, double momentum);
  Figures evaluate(const Images& images);
  std::vector<T> copy_of_weights() const;

 private:
  const std::unique_ptr<Workspace<T>> space_;
};

}  // namespace fashion_cuda
