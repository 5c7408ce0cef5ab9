// See bundle_cache.hpp.
#include "launcher/bundle/bundle_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "bundle-";
constexpr std::string_view compiled = "__pycache__";
constexpr auto unused_time = std::chrono::hours(1);
constexpr std::size_t hash_bytes = 256u << 10;
constexpr std::size_t kept = 3;  // unused bundles to keep, besides those in use

// The part of the private directory's name after the last '-'. That name is unique to the agent on
// its host.
std::string mark_of(const std::string& private_directory) {
  return private_directory.substr(private_directory.rfind('-') + 1);
}

std::string folder_of(const std::string& place, const std::string& hash) {
  return fmt::format("{}/{}{}", place, prefix, hash);
}

// All that the folder and those below it hold, except folders, and except what Python adds when it
// runs the files: it compiles modules into such a folder beside them, and checks what it finds
// there.
std::optional<std::vector<fs::directory_entry>> files_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> files;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_symlink(error) || !at->is_directory(error))
      files.push_back(*at);
    else if (at->path().filename() == compiled)
      at.disable_recursion_pending();
  }
  return error ? std::nullopt : std::optional(std::move(files));
}

// The total size in bytes of the bundle's files in the folder; -1: it cannot be read, or does not
// exist.
std::int64_t size_of(const std::string& folder) {
  const auto files = files_in(folder);
  if (!files) return -1;
  std::int64_t bytes = 0;
  for (const fs::directory_entry& file : *files) {
    std::error_code error;
    const std::uintmax_t size = file.file_size(error);
    if (error) return -1;
    bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

bool add_file(BundleDigest& hash, const std::string& folder, const fs::directory_entry& file) {
  const net::Fd fd(::open(file.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (fd.get() < 0 || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  std::vector<char> bytes(hash_bytes);
  for (ssize_t n; (n = ::read(fd.get(), bytes.data(), bytes.size())) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    hash.add({bytes.data(), static_cast<std::size_t>(n)});
  }
  hash.end_file(file.path().lexically_relative(folder).string(), (about.st_mode & S_IXUSR) != 0);
  return true;
}

// Whether the folder holds the complete bundle. All content is hashed: after a power loss, files
// may exist without their bytes, or with wrong ones, so the folder's name alone proves nothing.
bool is_whole(const std::string& folder, const std::string& hash, std::int64_t bytes) {
  if (size_of(folder) != bytes) return false;
  const auto files = files_in(folder);
  BundleDigest found;
  return files &&
         std::ranges::all_of(*files,
                             [&](const auto& file) { return add_file(found, folder, file); }) &&
         found.text() == hash;
}

void discard(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

std::vector<fs::path> bundles_in(const fs::path& place) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(prefix)) found.push_back(at->path());
  return found;
}

}  // namespace

std::vector<std::string> bundle_places(const std::string& private_directory) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return bundle_places(private_directory, self, runtime ? runtime : "");
}

std::vector<std::string> bundle_places(const std::string& private_directory, const fs::path& self,
                                       std::string_view runtime) {
  // The ssh executor stores agents under such names; other agents lie where packages are installed.
  if (!self.filename().string().starts_with("agent-")) return {private_directory};
  const std::string beside = self.parent_path().string();
  if (!runtime.empty() && beside.starts_with(fmt::format("{}/", runtime)))
    return {private_directory, beside};
  return {beside, private_directory};
}

std::optional<std::string> find_bundle(const std::vector<std::string>& places,
                                       const std::string& hash, std::int64_t bytes) {
  for (const std::string& place : places) {
    const std::string folder = folder_of(place, hash);
    if (!is_whole(folder, hash, bytes)) continue;
    touch_bundle(folder);
    return folder;
  }
  return std::nullopt;
}

bool has_size(const std::string& folder, std::int64_t bytes) { return size_of(folder) == bytes; }

Result<std::string> place_for_bundle(const std::vector<std::string>& places, std::int64_t bytes) {
  std::string why;
  for (const std::string& place : places) {
    struct statvfs about {};
    std::string not_here;
    if (::access(place.c_str(), W_OK) != 0 || ::statvfs(place.c_str(), &about) != 0)
      not_here = std::strerror(errno);
    else if ((about.f_flag & ST_NOEXEC) != 0)
      not_here = "mounted noexec";
    else if (static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize) <
             static_cast<double>(bytes))
      not_here = "not enough room";
    else
      return ok(place);
    why += fmt::format("{}{}: {}", why.empty() ? "" : ", ", place, not_here);
  }
  return Error{
      fmt::format("no place for {} MiB ({}); make room there, or put the program on the "
                  "host",
                  (bytes >> 20) + 1, why)};
}

bool has_libraries(const std::string& folder) {
  std::error_code error;
  return std::distance(fs::directory_iterator(folder, error), fs::directory_iterator()) > 1;
}

void touch_bundle(const std::string& folder) { ::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0); }

net::Fd hold_bundle(const std::string& folder) {
  net::Fd held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (held.get() >= 0) (void)::flock(held.get(), LOCK_SH | LOCK_NB);
  return held;
}

// Ages are relative to the time of the bundle just stored: both times come from the file server's
// clock, which may differ from ours.
void forget_old_bundles(const std::string& folder) {
  std::error_code error;
  const auto now = fs::last_write_time(folder, error);
  if (error) return;
  std::vector<std::pair<fs::file_time_type, fs::path>> unused;
  for (const fs::path& one : bundles_in(fs::path(folder).parent_path())) {
    const auto used = fs::last_write_time(one, error);
    if (!error && used < now - unused_time) unused.emplace_back(used, one);
  }
  std::ranges::sort(unused, std::greater<>());
  for (std::size_t i = kept; i < unused.size(); ++i) discard(unused[i].second);
}

void remove_unfinished_bundles(const std::string& private_directory) {
  const std::string end = "." + mark_of(private_directory);
  for (const std::string& place : bundle_places(private_directory))
    for (const fs::path& one : bundles_in(place))
      if (one.extension() == end) discard(one);
}

// ---------------------------------------------------------------- writing one

Result<std::unique_ptr<UnfinishedBundle>> UnfinishedBundle::begin(
    const std::string& place, const std::string& hash, std::int64_t bytes,
    const std::string& private_directory) {
  const std::string folder =
      fmt::format("{}.{}", folder_of(place, hash), mark_of(private_directory));
  if (::mkdir(folder.c_str(), 0700) != 0)
    return Error{fmt::format("{}: {}", folder, std::strerror(errno))};
  return std::unique_ptr<UnfinishedBundle>(new UnfinishedBundle(place, hash, bytes, folder));
}

UnfinishedBundle::UnfinishedBundle(std::string place, std::string hash, std::int64_t bytes,
                                   std::string folder)
    : place_(std::move(place)), hash_(std::move(hash)), bytes_(bytes), folder_(std::move(folder)) {}

UnfinishedBundle::~UnfinishedBundle() { discard(folder_); }

Error UnfinishedBundle::failure(const std::string& what) const {
  return Error{fmt::format("{}: {}", place_, what)};
}

Result<void> UnfinishedBundle::take(const wire::agent::BundlePart& part) {
  if (part.file != file_)
    if (const auto next = next_file(part); !next) return next.error();
  taken_ += static_cast<std::int64_t>(part.bytes.value.size());
  if (taken_ > std::min(bytes_, bundle_bytes_max))
    return failure("more bytes came than were announced");
  for (std::string_view left = part.bytes.value; !left.empty();) {
    const ssize_t n = ::write(fd_.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failure(std::strerror(errno));
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  seen_.add(part.bytes.value);
  return {};
}

Result<void> UnfinishedBundle::next_file(const wire::agent::BundlePart& part) {
  if (const auto ended = end_file(); !ended) return ended;
  if (!is_bundle_file(part.file) || ++files_ > bundle_files_max)
    return failure("what came is no bundle");
  const std::string path = fmt::format("{}/{}", folder_, part.file);
  for (std::size_t at = folder_.size() + 1; (at = path.find('/', at)) != path.npos; ++at)
    if (::mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST)
      return failure(std::strerror(errno));
  fd_ = net::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       part.executable ? 0700 : 0600));
  if (fd_.get() < 0) return failure(std::strerror(errno));
  file_ = part.file;
  executable_ = part.executable;
  return {};
}

// The error of close() matters: some file systems report only there that the disk is full.
Result<void> UnfinishedBundle::end_file() {
  if (file_.empty()) return {};
  seen_.end_file(file_, executable_);
  if (::close(fd_.release()) != 0) return failure(std::strerror(errno));
  return {};
}

Result<void> UnfinishedBundle::finish() {
  if (const auto ended = end_file(); !ended) return ended;
  if (taken_ != bytes_ || seen_.text() != hash_)
    return Error{
        "it is not what was announced; was the program built anew while the job ran? Start "
        "the job again"};
  const std::string folder = stored_in();
  if (::rename(folder_.c_str(), folder.c_str()) == 0) return {};
  const int error = errno;
  if (is_whole(folder, hash_, bytes_)) return {};  // another agent was faster
  if (error != ENOTEMPTY && error != EEXIST) return failure(std::strerror(error));
  // The folder in the way is a damaged bundle. It is renamed before it is removed, so that no
  // reader sees it half removed.
  const std::string aside = folder_ + "-";
  if (::rename(folder.c_str(), aside.c_str()) != 0 && errno != ENOENT)
    return failure(std::strerror(errno));
  const int again = ::rename(folder_.c_str(), folder.c_str()) == 0 ? 0 : errno;
  discard(aside);
  if (again != 0 && !is_whole(folder, hash_, bytes_)) return failure(std::strerror(again));
  return {};
}

std::string UnfinishedBundle::stored_in() const { return folder_of(place_, hash_); }

}  // namespace elasticrun::launcher::bundle
