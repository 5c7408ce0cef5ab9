// A small classifier: 784 pixels, H rectified hidden units, 10 classes; softmax and cross-entropy.
//
// All parameters lie in one array, and so do all gradients, layer by layer.
// The matrix products are BLAS's, on one thread: the worker beside us has the other cores.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "idx.hpp"

namespace fashion {

// Sums over some images.
struct Figures {
  double loss = 0;
  double hits = 0;  // images whose likeliest class is the label
};

// c (rows x columns) = beta c + op(a) op(b), row-major; inner is the dimension that is summed over.
template <class T>
void multiply(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, std::size_t rows, std::size_t columns,
              std::size_t inner, const T* a, const T* b, T beta, T* c) {
  const auto m = static_cast<int>(rows), n = static_cast<int>(columns), k = static_cast<int>(inner);
  const int lda = op_a == CblasNoTrans ? k : m, ldb = op_b == CblasNoTrans ? n : k;
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a, lda, b, ldb, beta, c, n);
  else
    cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a, lda, b, ldb, beta, c, n);
}

template <class T>
class Network {
 public:
  // The same seed gives the same weights everywhere (He et al. 2015, uniform).
  Network(std::size_t hidden, std::uint64_t seed)
      : hidden_(hidden), weights_(pixels_per_image * hidden + hidden + hidden * classes + classes) {
    std::mt19937_64 bits(seed);
    const auto fill = [&](T* first, std::size_t count, std::size_t inputs) {
      const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
      std::generate_n(first, count, [&] {
        return static_cast<T>((static_cast<double>(bits() >> 11) * 0x1p-52 - 1) * bound);
      });
    };
    const Layers<T> layers = split(weights_.data());
    fill(layers.w1, pixels_per_image * hidden, pixels_per_image);
    fill(layers.w2, hidden * classes, hidden);
  }

  std::vector<T>& weights() { return weights_; }

  // The part of weights or gradients that belongs to the layer, 1 or 2.
  std::span<T> layer(int number, std::vector<T>& all) const {
    const std::span<T> both(all);
    const std::size_t first = (pixels_per_image + 1) * hidden_;
    return number == 1 ? both.first(first) : both.subspan(first);
  }

  // Leaves the mean gradient over the samples in `gradients` (laid out as the weights). Calls
  // ready(layer) as soon as that layer's gradient is there.
  template <class Ready>
  Figures backward(const Dataset& data, std::span<const std::uint64_t> samples,
                   std::span<T> gradients, Ready ready) {
    const std::size_t n = samples.size();
    const Figures figures = forward(data, samples);
    const Layers<T> g = split(gradients.data()), w = split(weights_.data());
    // Of softmax with cross-entropy: probability less one where the label is, over n for the mean.
    for (std::size_t i = 0; i < n; ++i) {
      output_[i * classes + data.labels[samples[i]]] -= 1;
      for (std::size_t c = 0; c < classes; ++c) output_[i * classes + c] /= static_cast<T>(n);
    }
    multiply<T>(CblasTrans, CblasNoTrans, hidden_, classes, n, active_.data(), output_.data(), 0,
                g.w2);
    sum_rows(output_, n, classes, g.b2);
    ready(2);
    back_.resize(n * hidden_);
    multiply<T>(CblasNoTrans, CblasTrans, n, hidden_, classes, output_.data(), w.w2, 0,
                back_.data());
    for (std::size_t k = 0; k < n * hidden_; ++k)
      if (active_[k] <= 0) back_[k] = 0;
    multiply<T>(CblasTrans, CblasNoTrans, pixels_per_image, hidden_, n, input_.data(), back_.data(),
                0, g.w1);
    sum_rows(back_, n, hidden_, g.b1);
    ready(1);
    return figures;
  }

  Figures evaluate(const Dataset& data) {
    Figures total;
    std::vector<std::uint64_t> samples;
    for (std::size_t first = 0; first < data.size(); first += 500) {
      samples.resize(std::min<std::size_t>(500, data.size() - first));
      for (std::size_t k = 0; k < samples.size(); ++k) samples[k] = first + k;
      const Figures figures = forward(data, samples);
      total.loss += figures.loss;
      total.hits += figures.hits;
    }
    return total;
  }

 private:
  template <class U>
  struct Layers {
    U *w1, *b1, *w2, *b2;
  };
  Layers<T> split(T* first) const {
    T* const b1 = first + pixels_per_image * hidden_;
    T* const w2 = b1 + hidden_;
    return {first, b1, w2, w2 + hidden_ * classes};
  }

  // Leaves the inputs, the hidden units and the probabilities of the classes for backward.
  Figures forward(const Dataset& data, std::span<const std::uint64_t> samples) {
    const std::size_t n = samples.size();
    const Layers<T> w = split(weights_.data());
    input_.resize(n * pixels_per_image);
    for (std::size_t i = 0; i < n; ++i)
      std::transform(&data.pixels[samples[i] * pixels_per_image],
                     &data.pixels[samples[i] * pixels_per_image] + pixels_per_image,
                     &input_[i * pixels_per_image], [](std::uint8_t pixel) {
                       // To mean 0 and deviation 1 over the training set.
                       return (static_cast<T>(pixel) / T{255} - T(0.286)) / T(0.353);
                     });
    repeat(w.b1, hidden_, n, active_);
    multiply<T>(CblasNoTrans, CblasNoTrans, n, hidden_, pixels_per_image, input_.data(), w.w1, 1,
                active_.data());
    for (T& unit : active_) unit = std::max(unit, T{0});
    repeat(w.b2, classes, n, output_);
    multiply<T>(CblasNoTrans, CblasNoTrans, n, classes, hidden_, active_.data(), w.w2, 1,
                output_.data());
    Figures figures;
    for (std::size_t i = 0; i < n; ++i)
      softmax(std::span(output_).subspan(i * classes, classes), data.labels[samples[i]], figures);
    return figures;
  }

  static void softmax(std::span<T> row, std::uint8_t label, Figures& figures) {
    const auto likeliest = std::ranges::max_element(row);
    figures.hits += likeliest - row.begin() == label;
    const T top = *likeliest;
    T sum = 0;
    for (T& x : row) sum += x = std::exp(x - top);
    for (T& x : row) x /= sum;
    figures.loss -= std::log(std::max(static_cast<double>(row[label]), 1e-30));
  }

  static void repeat(const T* row, std::size_t length, std::size_t times, std::vector<T>& out) {
    out.resize(length * times);
    for (std::size_t k = 0; k < times; ++k) std::copy_n(row, length, &out[k * length]);
  }
  static void sum_rows(const std::vector<T>& rows, std::size_t count, std::size_t length, T* out) {
    std::fill_n(out, length, T{0});
    for (std::size_t k = 0; k < count * length; ++k) out[k % length] += rows[k];
  }

  std::size_t hidden_;
  std::vector<T> weights_;
  std::vector<T> input_, active_, output_, back_;  // of the last batch
};

// Stochastic gradient descent with momentum: both arrays are state.
template <class T>
void descend(std::vector<T>& weights, std::vector<T>& velocity, const std::vector<T>& gradients,
             double rate, double momentum) {
  const auto mu = static_cast<T>(momentum), eta = static_cast<T>(rate);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    velocity[k] = mu * velocity[k] + gradients[k];
    weights[k] -= eta * velocity[k];
  }
}

}  // namespace fashion
