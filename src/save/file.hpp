// One file of a save, written so that it is on the disk when it is whole, and read with a check of
// every byte.
//
// The disk is told to begin with each block as soon as it is written, so that the wait at the end
// is short. Why not O_DIRECT: it asks for aligned memory, which the program's own is not, and many
// network file systems do not have it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "net/sockets.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::save {

// Bytes handled at a time, between two looks at the rest of the world.
inline constexpr std::size_t block_bytes = 4u << 20;

// The hash of a file: XXH3 with 64 bits, as 16 hexadecimal digits.
class FileHash {
 public:
  FileHash();
  ~FileHash();
  FileHash(FileHash&&) noexcept;
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class FileWriter {
 public:
  // Makes a new file; an older one of that name is replaced.
  static Result<FileWriter> create(const std::string& folder, const std::string& name);

  Result<void> write(std::span<const std::byte> bytes);
  // Returns when the file is on the disk.
  Result<wire::saved::File> finish();

 private:
  FileWriter(net::Fd file, std::string path, std::string name)
      : file_(std::move(file)), path_(std::move(path)) {
    written_.name = std::move(name);
  }

  net::Fd file_;
  std::string path_;
  wire::saved::File written_;
  FileHash hash_;
};

// Writes one whole file. Errors name it.
Result<wire::saved::File> write_file(const std::string& folder, const std::string& name,
                                     std::string_view text);

// Calls `take` for one block of the file after the other. An error when the file has another size
// or another hash than `told` says; some blocks may have been taken by then.
Result<void> read_file(const std::string& folder, const wire::saved::File& told,
                       const std::function<void(std::span<const std::byte>)>& take);
// The same, for a file that is text.
Result<std::string> read_text(const std::string& folder, const wire::saved::File& told);

// What is renamed, made or removed in the folder is on the disk when this returns.
Result<void> sync_folder(const std::string& folder);

}  // namespace elasticrun::save
