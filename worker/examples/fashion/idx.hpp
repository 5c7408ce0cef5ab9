// Fashion-MNIST (Xiao et al., 2017) from its four idx files, as Debian's dataset-fashion-mnist has
// them: 28 x 28 pixels of one byte, labels 0 .. 9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fashion {

inline constexpr std::size_t pixels_per_image = 28 * 28;
inline constexpr std::size_t classes = 10;

struct Dataset {
  std::vector<std::uint8_t> pixels;  // image after image
  std::vector<std::uint8_t> labels;

  std::size_t size() const { return labels.size(); }
};

// Reads DIRECTORY/SET-images-idx3-ubyte.gz and its labels; SET is "train" or "t10k". Keeps the
// first `limit` images (0: all). Throws std::runtime_error with one line that names the file.
Dataset read_dataset(const std::string& directory, const std::string& set, std::size_t limit = 0);

}  // namespace fashion
