// Writes arrays to a file that numpy.load (.npz) or torch.load (.pt) reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/ctl/array_formats.hpp"

namespace elasticrun::cli::ctl {

class ArrayArchive {
 public:
  // `path` ends in .npz or .pt. What is written lies beside it until the archive is whole.
  static Result<ArrayArchive> create(const std::string& path, std::vector<FlatArray> arrays);
  ~ArrayArchive();
  ArrayArchive(ArrayArchive&&) noexcept;

  // The bytes of all arrays, one array after the other, in pieces of any size.
  Result<void> write(std::span<const std::byte> bytes);
  // All bytes have been written: the file gets its name.
  Result<void> finish();

 private:
  struct Zip;
  explicit ArrayArchive(std::unique_ptr<Zip> zip);

  std::unique_ptr<Zip> zip_;
};

}  // namespace elasticrun::cli::ctl
