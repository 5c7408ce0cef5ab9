// See array_archive.hpp.
#include "cli/ctl/array_archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.hpp"
#include "net/sockets.hpp"

namespace elasticrun::cli::ctl {
namespace {

constexpr std::size_t write_bytes = 1u << 30;  // minizip counts the bytes of a call with 32 bits

// An empty file in place of what is there. A link that others have made there leads nowhere; false:
// errno says why there is no file.
bool made_anew(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return false;
  const net::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  return file.get() >= 0;
}

// What has been written to the file is on the disk; false: errno says why not.
bool synced(const std::string& path) {
  const net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && ::fsync(file.get()) == 0;
}

}  // namespace

struct ArrayArchive::Zip {
  std::string path;
  std::string beside;  // where it is written
  bool numpy = false;  // .npz; otherwise .pt
  std::vector<FlatArray> arrays;
  zipFile file = nullptr;
  bool in_member = false;
  std::size_t next = 0;    // array whose member is opened next
  std::uint64_t left = 0;  // bytes that the open member still gets

  ~Zip() {
    if (!file) return;
    zipClose(file, nullptr);
    ::unlink(beside.c_str());
  }

  Error failed() const {
    return Error{fmt::format("cannot write {}: {}", path, net::error_text(errno ? errno : EIO))};
  }

  Result<void> open_member(const std::string& name, std::uint64_t bytes) {
    if (in_member && zipCloseFileInZip(file) != ZIP_OK) return failed();
    zip_fileinfo info{};
    info.dosDate = 1u << 5 | 1u;  // 1 January 1980: the same save makes the same file
    constexpr uLong utf8 = 1u << 11;
    const int large = bytes >= 0xffff'0000;
    if (zipOpenNewFileInZip4_64(file, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0, 0,
                                -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr, 0, 0, utf8,
                                large) != ZIP_OK)
      return failed();
    in_member = true;
    return {};
  }

  Result<void> put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), write_bytes));
      if (zipWriteInFileInZip(file, part.data(), static_cast<unsigned>(part.size())) != ZIP_OK)
        return failed();
      bytes = bytes.subspan(part.size());
    }
    return {};
  }

  Result<void> add_text(const std::string& name, const std::string& text) {
    if (auto opened = open_member(name, text.size()); !opened) return opened;
    return put(std::as_bytes(std::span(text)));
  }

  // The member of the next array, up to its elements.
  Result<void> open_array() {
    ER_CHECK(next < arrays.size());
    const std::size_t i = next++;
    const FlatArray& array = arrays[i];
    left = array.bytes();
    if (!numpy) return open_member(fmt::format("archive/data/{}", i), left);
    const std::string header = npy_header(array);
    if (auto opened = open_member(array.name + ".npy", header.size() + left); !opened)
      return opened;
    return put(std::as_bytes(std::span(header)));
  }
};

ArrayArchive::ArrayArchive(std::unique_ptr<Zip> zip) : zip_(std::move(zip)) {}
ArrayArchive::~ArrayArchive() = default;
ArrayArchive::ArrayArchive(ArrayArchive&&) noexcept = default;

Result<ArrayArchive> ArrayArchive::create(const std::string& path, std::vector<FlatArray> arrays) {
  auto zip = std::make_unique<Zip>();
  zip->path = path;
  zip->beside = path + ".part";
  zip->numpy = path.ends_with(".npz");
  zip->arrays = std::move(arrays);
  if (!made_anew(zip->beside)) return zip->failed();
  errno = 0;
  zip->file = zipOpen64(zip->beside.c_str(), APPEND_STATUS_CREATE);
  if (!zip->file) return zip->failed();
  if (!zip->numpy) {
    // As torch.save orders them.
    if (auto done = zip->add_text("archive/data.pkl", torch_pickle(zip->arrays)); !done)
      return done.error();
    if (auto done = zip->add_text("archive/byteorder", "little"); !done) return done.error();
  }
  return ArrayArchive(std::move(zip));
}

Result<void> ArrayArchive::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    while (zip_->left == 0)
      if (auto opened = zip_->open_array(); !opened) return opened;
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), zip_->left));
    if (auto done = zip_->put(part); !done) return done;
    zip_->left -= part.size();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Result<void> ArrayArchive::finish() {
  while (zip_->next < zip_->arrays.size())  // the last ones are empty
    if (auto opened = zip_->open_array(); !opened) return opened;
  ER_CHECK(zip_->left == 0);
  if (!zip_->numpy)
    if (auto done = zip_->add_text("archive/version", "3\n"); !done) return done;
  if (zip_->in_member && zipCloseFileInZip(zip_->file) != ZIP_OK) return zip_->failed();
  zip_->in_member = false;
  const int closed = zipClose(std::exchange(zip_->file, nullptr), nullptr);
  if (closed != ZIP_OK || !synced(zip_->beside) ||
      ::rename(zip_->beside.c_str(), zip_->path.c_str()) != 0) {
    const Error error = zip_->failed();
    ::unlink(zip_->beside.c_str());
    return error;
  }
  return {};
}

}  // namespace elasticrun::cli::ctl
