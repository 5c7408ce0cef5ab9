// The idx format: a magic number, the sizes (both big-endian), then bytes. zlib reads it zipped or
// not.
#include "idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>

namespace fashion {
namespace {

class GzFile {
 public:
  explicit GzFile(std::string path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
    if (!file_)
      fail("cannot be opened; install the package dataset-fashion-mnist, or say --data DIRECTORY");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(path_ + ": " + why);
  }
  void read(std::span<std::uint8_t> bytes) {
    if (gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size())) !=
        static_cast<int>(bytes.size()))
      fail("ends too early, or is damaged; fetch it again");
  }
  std::uint32_t number() {
    std::array<std::uint8_t, 4> b{};
    read(b);
    return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

// Reads magic and number of items, and says how many of them to keep.
std::size_t open_items(GzFile& file, std::uint32_t magic, std::size_t limit) {
  if (file.number() != magic) file.fail("is not the idx file that belongs here");
  const std::size_t count = file.number();
  if (count == 0 || count > 1'000'000) file.fail("has an impossible number of items");
  return limit == 0 ? count : std::min(limit, count);
}

}  // namespace

Dataset read_dataset(const std::string& directory, const std::string& set, std::size_t limit) {
  Dataset data;
  GzFile images(directory + "/" + set + "-images-idx3-ubyte.gz");
  const std::size_t count = open_items(images, 0x803, limit);
  const std::uint32_t rows = images.number(), columns = images.number();
  if (rows != 28 || columns != 28) images.fail("does not hold images of 28 x 28");
  data.pixels.resize(count * pixels_per_image);
  images.read(data.pixels);

  GzFile labels(directory + "/" + set + "-labels-idx1-ubyte.gz");
  if (open_items(labels, 0x801, limit) != count) labels.fail("has not as many labels as images");
  data.labels.resize(count);
  labels.read(data.labels);
  if (std::ranges::any_of(data.labels, [](std::uint8_t label) { return label >= classes; }))
    labels.fail("has a label above 9");
  return data;
}

}  // namespace fashion
