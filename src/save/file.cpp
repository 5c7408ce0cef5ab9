// See file.hpp.
#include "save/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <utility>
#include <vector>

namespace elasticrun::save {
namespace {

Error failed(const std::string& path, const char* what) {
  const int number = errno;
  return Error{fmt::format("cannot {} {}: {}", what, path, net::error_text(number)), number};
}

// A write beyond the limit of file sizes sends SIGXFSZ to its thread, which is the program's own
// where a save is waited for. While one of these lives, only the error of the write remains.
class SizeLimitIsAnError {
 public:
  SizeLimitIsAnError() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~SizeLimitIsAnError() {
    const int number = errno;
    constexpr timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0) ::sigtimedwait(&signals_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  SizeLimitIsAnError(const SizeLimitIsAnError&) = delete;

 private:
  sigset_t signals_{}, before_{};
};

ssize_t write_some(int file, std::span<const std::byte> bytes) {
  const SizeLimitIsAnError guard;
  return ::write(file, bytes.data(), bytes.size());
}

// Bytes of one write(2). Linux backs a larger one with larger pieces of the page cache, and these
// are the first that a virtual machine has given back to its host: measured up to 6 times slower.
constexpr std::size_t write_bytes = 256u << 10;

std::string in(const std::string& folder, const std::string& name) { return folder + "/" + name; }

}  // namespace

struct FileHash::State {
  XXH3_state_t* const xxh = XXH3_createState();
  State() {
    if (!xxh) throw std::bad_alloc();
    XXH3_64bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
};

FileHash::FileHash() : state_(std::make_unique<State>()) {}
FileHash::~FileHash() = default;
FileHash::FileHash(FileHash&&) noexcept = default;
void FileHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size());
}
std::string FileHash::text() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->xxh));
}

// ---------------------------------------------------------------- writing

Result<FileWriter> FileWriter::create(const std::string& folder, const std::string& name) {
  std::string path = in(folder, name);
  // Others may write to the folder: a link that they have made there must not lead elsewhere.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, "write");
  constexpr int fresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  net::Fd file(::open(path.c_str(), fresh, 0644));
  if (file.get() < 0) return failed(path, "write");
  return FileWriter(std::move(file), std::move(path), name);
}

Result<void> FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t now = std::min(bytes.size(), write_bytes);
    const ssize_t n = write_some(file_.get(), bytes.first(now));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path_, "write");
    const auto taken = static_cast<std::size_t>(n);
    hash_.add(bytes.first(taken));
    // Only a hint: what counts is the fsync at the end.
    (void)::sync_file_range(file_.get(), static_cast<off_t>(written_.bytes), n,
                            SYNC_FILE_RANGE_WRITE);
    written_.bytes += taken;
    bytes = bytes.subspan(taken);
  }
  return {};
}

Result<wire::saved::File> FileWriter::finish() {
  if (::fsync(file_.get()) != 0) return failed(path_, "write");
  // A network file system may report only here that the disk was full.
  if (::close(file_.release()) != 0) return failed(path_, "write");
  written_.hash = hash_.text();
  return written_;
}

Result<wire::saved::File> write_file(const std::string& folder, const std::string& name,
                                     std::string_view text) {
  auto file = FileWriter::create(folder, name);
  if (!file) return file.error();
  if (auto done = file->write(std::as_bytes(std::span(text))); !done) return done.error();
  return file->finish();
}

// ---------------------------------------------------------------- reading

Result<void> read_file(const std::string& folder, const wire::saved::File& told,
                       const std::function<void(std::span<const std::byte>)>& take) {
  const std::string path = in(folder, told.name);
  if (told.name.find('/') != told.name.npos)
    return Error{fmt::format("{} names a file '{}'", folder, told.name)};
  const net::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return failed(path, "read");
  struct stat entry {};
  if (::fstat(file.get(), &entry) != 0) return failed(path, "read");
  if (static_cast<std::uint64_t>(entry.st_size) != told.bytes)
    return Error{fmt::format("{} is torn: it has {} bytes of {}", path, entry.st_size, told.bytes)};
  FileHash hash;
  std::vector<std::byte> block(std::min<std::uint64_t>(block_bytes, told.bytes));
  std::uint64_t left = told.bytes;
  while (left > 0) {
    const ssize_t n = ::read(file.get(), block.data(), std::min<std::uint64_t>(block.size(), left));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path, "read");
    if (n == 0) return Error{fmt::format("{} is torn: {} bytes are missing", path, left)};
    const std::span<const std::byte> got(block.data(), static_cast<std::size_t>(n));
    hash.add(got);
    take(got);
    left -= got.size();
  }
  if (hash.text() != told.hash)
    return Error{
        fmt::format("{} is damaged: its hash is {}, not {}", path, hash.text(), told.hash)};
  return {};
}

Result<std::string> read_text(const std::string& folder, const wire::saved::File& told) {
  std::string text;
  const auto done = read_file(folder, told, [&](std::span<const std::byte> block) {
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
  });
  if (!done) return done.error();
  return ok(std::move(text));
}

Result<void> sync_folder(const std::string& folder) {
  const net::Fd entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entry.get() < 0) return failed(folder, "read");
  // Some network file systems have no fsync for folders; theirs are written through.
  if (::fsync(entry.get()) != 0 && errno != EINVAL && errno != EROFS)
    return failed(folder, "write");
  return {};
}

}  // namespace elasticrun::save
