// See cuda_network.hpp. The matrix products are cuBLAS's, the rest are functions for each number of
// an array.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "cuda_network.hpp"

namespace fashion_cuda {

namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}
void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

// Row-major, as cblas has it: cuBLAS, which is column-major, computes the transpose of it all.
// c (rows x columns) = op(a) op(b) + beta c; inner is the dimension that is summed over.
template <class T>
void multiply(cublasHandle_t blas, bool transpose_a, bool transpose_b, std::size_t rows,
              std::size_t columns, std::size_t inner, const T* a, const T* b, T beta, T* c) {
  const auto m = static_cast<int>(rows), n = static_cast<int>(columns), k = static_cast<int>(inner);
  const auto op_a = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto op_b = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int lda = transpose_a ? m : k, ldb = transpose_b ? k : n;
  const T one = 1;
  if constexpr (sizeof(T) == sizeof(float))
    check(cublasSgemm(blas, op_b, op_a, n, m, k, &one, b, ldb, a, lda, &beta, c, n), "cublasSgemm");
  else
    check(cublasDgemm(blas, op_b, op_a, n, m, k, &one, b, ldb, a, lda, &beta, c, n), "cublasDgemm");
}

}  // namespace

template <class Body>
__global__ void for_each_kernel(std::size_t count, Body body) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) body(i);
}

// Enqueues body(i) for i in [0, count), in any order.
template <class Body>
void for_each(std::size_t count, cudaStream_t stream, Body body) {
  constexpr unsigned threads = 256;
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  void* arguments[] = {&count, &body};
  check(cudaLaunchKernel(for_each_kernel<Body>, dim3(blocks), dim3(threads), arguments, 0, stream),
        "cudaLaunchKernel");
}

template <class T>
std::shared_ptr<T> allocate(std::size_t count) {
  T* memory = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)), "cudaMalloc");
  return {memory, [](T* data) { cudaFree(data); }};
}

// Grows to what a batch needs.
template <class T>
class Scratch {
 public:
  T* of(std::size_t count) {
    if (count > size_) {
      data_ = allocate<T>(count);
      size_ = count;
    }
    return data_.get();
  }
  T* get() const { return data_.get(); }

 private:
  std::shared_ptr<T> data_;
  std::size_t size_ = 0;
};

void choose_gpu(int local_rank) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  check(cudaSetDevice(count == 1 ? 0 : local_rank), "cudaSetDevice");
}

Images::Images(const fashion::Dataset& data)
    : size_(data.size()),
      pixels_(allocate<std::uint8_t>(data.pixels.size())),
      labels_(allocate<std::uint8_t>(data.labels.size())) {
  check(cudaMemcpy(pixels_.get(), data.pixels.data(), data.pixels.size(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  check(cudaMemcpy(labels_.get(), data.labels.data(), data.labels.size(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
}

// All arrays in the GPU's memory, and who works on them.
template <class T>
struct Workspace {
  Workspace(std::size_t units, std::size_t parameters)
      : hidden(units),
        count(parameters),
        weights(allocate<T>(count)),
        velocity(allocate<T>(count)),
        gradients(allocate<T>(count)) {
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    check(cublasCreate(&blas), "cublasCreate");
    check(cublasSetStream(blas, stream), "cublasSetStream");
    check(cudaMemset(velocity.get(), 0, count * sizeof(T)), "cudaMemset");
    check(cudaMemset(gradients.get(), 0, count * sizeof(T)), "cudaMemset");
  }
  ~Workspace() {
    cublasDestroy(blas);
    cudaStreamDestroy(stream);
  }

  struct Layers {
    T *w1, *b1, *w2, *b2;
  };
  Layers split(T* first) const {
    T* const b1 = first + fashion::pixels_per_image * hidden;
    T* const w2 = b1 + hidden;
    return {first, b1, w2, w2 + hidden * fashion::classes};
  }
  // out (columns) = the sum of the rows.
  void sum_rows(const T* rows, std::size_t samples, std::size_t columns, T* out) {
    T* const one = ones.of(samples);
    for_each(samples, stream, [=] __device__(std::size_t i) { one[i] = 1; });
    multiply<T>(blas, false, false, 1, columns, samples, one, rows, 0, out);
  }

  const std::size_t hidden, count;
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;
  const std::shared_ptr<T> weights, velocity, gradients;
  Scratch<T> input, active, output, back, ones;  // of the last batch
  Scratch<std::uint64_t> samples;
  Scratch<double> losses, hits;  // of each image
};

// Leaves the inputs, the hidden units and the probabilities of the classes for backward.
template <class T>
void forward_pass(Workspace<T>& s, const Images& images, std::span<const std::uint64_t> chosen) {
  using fashion::classes, fashion::pixels_per_image;
  const std::size_t n = chosen.size(), hidden = s.hidden;
  const auto w = s.split(s.weights.get());
  std::uint64_t* const samples = s.samples.of(n);
  check(cudaMemcpyAsync(samples, chosen.data(), n * sizeof *samples, cudaMemcpyHostToDevice,
                        s.stream),
        "cudaMemcpyAsync");
  T* const input = s.input.of(n * pixels_per_image);
  const std::uint8_t* const pixels = images.pixels();
  for_each(n * pixels_per_image, s.stream, [=] __device__(std::size_t k) {
    const std::uint8_t pixel =
        pixels[samples[k / pixels_per_image] * pixels_per_image + k % pixels_per_image];
    input[k] = (static_cast<T>(pixel) / T{255} - T(0.286)) / T(0.353);
  });
  T* const active = s.active.of(n * hidden);
  for_each(n * hidden, s.stream, [=] __device__(std::size_t k) { active[k] = w.b1[k % hidden]; });
  multiply<T>(s.blas, false, false, n, hidden, pixels_per_image, input, w.w1, 1, active);
  for_each(n * hidden, s.stream,
           [=] __device__(std::size_t k) { active[k] = active[k] > T{0} ? active[k] : T{0}; });
  T* const output = s.output.of(n * classes);
  for_each(n * classes, s.stream, [=] __device__(std::size_t k) { output[k] = w.b2[k % classes]; });
  multiply<T>(s.blas, false, false, n, classes, hidden, active, w.w2, 1, output);
  double *const losses = s.losses.of(n), *const hits = s.hits.of(n);
  const std::uint8_t* const labels = images.labels();
  for_each(n, s.stream, [=] __device__(std::size_t i) {
    T* const row = output + i * classes;
    std::size_t likeliest = 0;
    for (std::size_t c = 1; c < classes; ++c)
      if (row[c] > row[likeliest]) likeliest = c;
    const T top = row[likeliest];
    T sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += row[c] = exp(row[c] - top);
    for (std::size_t c = 0; c < classes; ++c) row[c] /= sum;
    const std::size_t label = labels[samples[i]];
    const auto p = static_cast<double>(row[label]);
    losses[i] = -log(p > 1e-30 ? p : 1e-30);
    hits[i] = likeliest == label ? 1 : 0;
  });
}

template <class T>
Figures figures_of(const Workspace<T>& s, std::size_t samples) {
  std::vector<double> losses(samples), hits(samples);
  const std::size_t bytes = samples * sizeof(double);
  check(cudaMemcpyAsync(losses.data(), s.losses.get(), bytes, cudaMemcpyDeviceToHost, s.stream),
        "cudaMemcpyAsync");
  check(cudaMemcpyAsync(hits.data(), s.hits.get(), bytes, cudaMemcpyDeviceToHost, s.stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
  Figures sums;
  for (const double loss : losses) sums.loss += loss;
  for (const double hit : hits) sums.hits += hit;
  return sums;
}

template <class T>
Network<T>::Network(std::size_t hidden, const std::vector<T>& weights)
    : space_(std::make_unique<Workspace<T>>(hidden, weights.size())) {
  check(cudaMemcpy(space_->weights.get(), weights.data(), weights.size() * sizeof(T),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
}
template <class T>
Network<T>::~Network() = default;

template <class T>
void* Network<T>::stream() const {
  return space_->stream;
}
template <class T>
std::span<T> Network<T>::weights() {
  return {space_->weights.get(), space_->count};
}
template <class T>
std::span<T> Network<T>::velocity() {
  return {space_->velocity.get(), space_->count};
}
template <class T>
std::span<T> Network<T>::gradients() {
  return {space_->gradients.get(), space_->count};
}

template <class T>
Figures Network<T>::backward(const Images& images, std::span<const std::uint64_t> chosen) {
  using fashion::classes, fashion::pixels_per_image;
  Workspace<T>& s = *space_;
  forward_pass(s, images, chosen);
  const std::size_t n = chosen.size(), hidden = s.hidden;
  const auto g = s.split(s.gradients.get()), w = s.split(s.weights.get());
  const std::uint64_t* const samples = s.samples.get();
  const std::uint8_t* const labels = images.labels();
  T *const output = s.output.get(), *const active = s.active.get();
  // Of softmax with cross-entropy: probability less one where the label is, over n for the mean.
  for_each(n * classes, s.stream, [=] __device__(std::size_t k) {
    const bool is_label = k % classes == labels[samples[k / classes]];
    output[k] = (output[k] - (is_label ? T{1} : T{0})) / static_cast<T>(n);
  });
  multiply<T>(s.blas, true, false, hidden, classes, n, active, output, 0, g.w2);
  s.sum_rows(output, n, classes, g.b2);
  T* const back = s.back.of(n * hidden);
  multiply<T>(s.blas, false, true, n, hidden, classes, output, w.w2, 0, back);
  for_each(n * hidden, s.stream, [=] __device__(std::size_t k) {
    if (active[k] <= 0) back[k] = 0;
  });
  multiply<T>(s.blas, true, false, pixels_per_image, hidden, n, s.input.get(), back, 0, g.w1);
  s.sum_rows(back, n, hidden, g.b1);
  return figures_of(s, n);
}

template <class T>
void Network<T>::descend(double rate, double momentum) {
  const auto mu = static_cast<T>(momentum), eta = static_cast<T>(rate);
  T *const weights = space_->weights.get(), *const velocity = space_->velocity.get();
  const T* const gradients = space_->gradients.get();
  for_each(space_->count, space_->stream, [=] __device__(std::size_t k) {
    velocity[k] = mu * velocity[k] + gradients[k];
    weights[k] -= eta * velocity[k];
  });
}

template <class T>
Figures Network<T>::evaluate(const Images& images) {
  constexpr std::size_t batch = 500;
  Figures total;
  std::vector<std::uint64_t> samples;
  for (std::size_t first = 0; first < images.size(); first += batch) {
    samples.clear();
    for (std::size_t k = first; k < first + batch && k < images.size(); ++k) samples.push_back(k);
    forward_pass(*space_, images, samples);
    const Figures some = figures_of(*space_, samples.size());
    total.loss += some.loss;
    total.hits += some.hits;
  }
  return total;
}

template <class T>
std::vector<T> Network<T>::copy_of_weights() const {
  std::vector<T> copy(space_->count);
  check(cudaStreamSynchronize(space_->stream), "cudaStreamSynchronize");
  check(cudaMemcpy(copy.data(), space_->weights.get(), copy.size() * sizeof(T),
                   cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return copy;
}

template class Network<float>;
template class Network<double>;

}  // namespace fashion_cuda
