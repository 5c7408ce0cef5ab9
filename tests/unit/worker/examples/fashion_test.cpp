// The example's arithmetic and file reader: gradients against differences, and damaged files.
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "idx.hpp"
#include "network.hpp"

namespace {

const auto quiet = [](int) {};  // nobody waits for a layer

using fashion::Dataset;
using fashion::Network;

Dataset small_dataset(std::size_t count) {
  Dataset data;
  std::mt19937 bits(5);
  for (std::size_t k = 0; k < count * fashion::pixels_per_image; ++k)
    data.pixels.push_back(static_cast<std::uint8_t>(bits()));
  for (std::size_t k = 0; k < count; ++k) data.labels.push_back(static_cast<std::uint8_t>(k % 10));
  return data;
}

// A temporary directory for a data set.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/fashion_test_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void write(const std::string& name, std::initializer_list<std::uint32_t> numbers,
             const std::string& bytes) const {
    std::string all;
    for (const std::uint32_t number : numbers)
      for (int shift = 24; shift >= 0; shift -= 8) all += static_cast<char>(number >> shift);
    all += bytes;
    const gzFile file = gzopen((path + "/" + name).c_str(), "wb");
    gzwrite(file, all.data(), static_cast<unsigned>(all.size()));
    gzclose(file);
  }

  std::string path;
};

const std::string images_name = "train-images-idx3-ubyte.gz";
const std::string labels_name = "train-labels-idx1-ubyte.gz";
const std::string two_images(2 * fashion::pixels_per_image, 'p');
const std::string two_labels("\x09\x03");

std::string error_of(const Folder& folder) {
  try {
    fashion::read_dataset(folder.path, "train");
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the gradient is the slope of the mean loss") {
  const Dataset data = small_dataset(12);
  const std::vector<std::uint64_t> samples{0, 3, 4, 7, 11};
  Network<double> network(6, 1);
  std::vector<double> gradients(network.weights().size(), 99), unused(gradients.size());
  const fashion::Figures at = network.backward(data, samples, gradients, quiet);
  CHECK(at.loss > 0);
  const auto mean_loss = [&] { return network.backward(data, samples, unused, quiet).loss / 5; };
  // Some weights of each layer: w1, b1, w2, b2 (the last 10).
  const std::size_t b1 = fashion::pixels_per_image * 6, w2 = b1 + 6, b2 = w2 + 60;
  for (const std::size_t k :
       {std::size_t{0}, std::size_t{777}, b1 - 1, b1, b1 + 5, w2, w2 + 33, b2 - 1, b2, b2 + 9}) {
    double& weight = network.weights()[k];
    const double kept = weight, h = 1e-6;
    weight = kept + h;
    const double above = mean_loss();
    weight = kept - h;
    const double below = mean_loss();
    weight = kept;
    CAPTURE(k);
    CHECK(gradients[k] == doctest::Approx((above - below) / (2 * h)).epsilon(1e-4));
  }
}

TEST_CASE("the gradient of a batch is the mean of its parts, weighted by their sizes") {
  const Dataset data = small_dataset(9);
  Network<double> network(4, 2);
  const std::vector<std::uint64_t> all{8, 1, 2, 6, 5}, first{8, 1, 2}, second{6, 5};
  const std::size_t size = network.weights().size();
  std::vector<double> whole(size), a(size), b(size);
  const double loss = network.backward(data, all, whole, quiet).loss;
  const double parts =
      network.backward(data, first, a, quiet).loss + network.backward(data, second, b, quiet).loss;
  CHECK(loss == doctest::Approx(parts));
  for (std::size_t k = 0; k < size; ++k)
    REQUIRE(whole[k] == doctest::Approx((3 * a[k] + 2 * b[k]) / 5).epsilon(1e-9));
}

TEST_CASE("the first weights are determined by the seed") {
  Network<float> one(8, 1), same(8, 1), other(8, 2);
  CHECK(one.weights() == same.weights());
  CHECK(one.weights() != other.weights());
}

TEST_CASE("a step downhill lowers the loss") {
  const Dataset data = small_dataset(10);
  const std::vector<std::uint64_t> samples{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Network<float> network(16, 3);
  std::vector<float> gradients(network.weights().size()), velocity(gradients.size());
  const double before = network.evaluate(data).loss;
  for (int k = 0; k < 100; ++k) {
    network.backward(data, samples, gradients, quiet);
    fashion::descend(network.weights(), velocity, gradients, 0.01, 0.9);
  }
  const fashion::Figures after = network.evaluate(data);
  CHECK(after.loss < before / 2);
  CHECK(after.hits == 10);
}

TEST_CASE("a data set is read") {
  Folder folder;
  folder.write(images_name, {0x803, 2, 28, 28}, two_images);
  folder.write(labels_name, {0x801, 2}, two_labels);
  const Dataset both = fashion::read_dataset(folder.path, "train");
  CHECK(both.size() == 2);
  CHECK(both.labels[0] == 9);
  CHECK(both.pixels.size() == two_images.size());
  CHECK(fashion::read_dataset(folder.path, "train", 1).size() == 1);
  CHECK(fashion::read_dataset(folder.path, "train", 99).size() == 2);
}

TEST_CASE("an error in a data set is reported with the file") {
  struct Case {
    const char* words;
    std::initializer_list<std::uint32_t> images;
    std::string pixels;
    std::initializer_list<std::uint32_t> labels;
    std::string classes;
  };
  const Case cases[] = {
      {"images-idx3-ubyte.gz: is not the idx file", {0x801, 2, 28, 28}, two_images, {}, ""},
      {"impossible number", {0x803, 0xffffffff, 28, 28}, two_images, {}, ""},
      {"28 x 28", {0x803, 2, 32, 32}, two_images, {}, ""},
      {"ends too early", {0x803, 3, 28, 28}, two_images, {}, ""},
      {"ends too early", {0x803}, "", {}, ""},
      {"labels-idx1-ubyte.gz: is not the idx file",
       {0x803, 2, 28, 28},
       two_images,
       {0x803, 2},
       two_labels},
      {"as many labels", {0x803, 2, 28, 28}, two_images, {0x801, 3}, "\x01\x01\x01"},
      {"label above 9", {0x803, 2, 28, 28}, two_images, {0x801, 2}, "\x01\x0a"},
  };
  for (const Case& c : cases) {
    Folder folder;
    folder.write(images_name, c.images, c.pixels);
    folder.write(labels_name, c.labels, c.classes);
    CAPTURE(c.words);
    const std::string error = error_of(folder);
    CAPTURE(error);
    CHECK(error.find(c.words) != std::string::npos);
    CHECK(error.starts_with(folder.path));
  }
  CHECK(error_of(Folder()).find("dataset-fashion-mnist") != std::string::npos);
}
