// See folder.hpp.
#include "save/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "save/file.hpp"
#include "save/manifest.hpp"
#include "save/names.hpp"

namespace elasticrun::save {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = "lock";
constexpr const char* finished_name = "finished";
constexpr std::string_view probe_prefix = ".probe-";

// Where a file is written before it gets its name.
std::string beside(const char* name) { return fmt::format(".{}", name); }

std::optional<std::int64_t> number_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 1) return std::nullopt;
  return number;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

// The entries of the folder that are called prefix and number, by number.
std::map<std::int64_t, std::string> entries(const std::string& folder, std::string_view prefix) {
  std::map<std::int64_t, std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (const auto number = number_of(at->path().filename().string(), prefix))
      found[*number] = at->path().string();
  return found;
}

void remove_tree(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// The names in a manifest are paths for nobody but us.
bool is_plain(const std::string& name) {
  return !name.empty() && name.find('/') == name.npos && name != "." && name != "..";
}

// Whether all files of a save are there with their sizes.
Result<void> check_files(const std::string& path, const wire::saved::Manifest& manifest) {
  for (const wire::saved::File& file : manifest.files) {
    if (!is_plain(file.name)) return Error{fmt::format("{} names a file '{}'", path, file.name)};
    std::error_code error;
    const auto bytes = fs::file_size(path + "/" + file.name, error);
    if (error)
      return Error{fmt::format("{}/{}: {}", path, file.name, net::error_text(error.value())),
                   error.value()};
    if (bytes != file.bytes)
      return Error{
          fmt::format("{}/{} is torn: it has {} bytes of {}", path, file.name, bytes, file.bytes)};
  }
  return {};
}

// Whether the parts of a save are as long as what its contents list.
Result<void> check_contents(const std::string& path, const wire::saved::Manifest& manifest) {
  const auto contents = read_contents(path, manifest);
  if (!contents) return contents.error();
  std::uint64_t listed = 0, written = 0;
  for (const wire::saved::Array& array : contents->arrays) listed += array.bytes;
  for (std::size_t i = 1; i < manifest.files.size(); ++i) written += manifest.files[i].bytes;
  if (listed == written) return {};
  return Error{
      fmt::format("{}: its parts have {} bytes where its arrays have {}; do the state sources of "
                  "all workers list the same arrays?",
                  path, written, listed)};
}

Result<net::Fd> lock(const std::string& path, std::string& unlocked) {
  const std::string file = path + "/" + lock_name;
  net::Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (fd.get() < 0) return Error{fmt::format("cannot write {}: {}", file, net::error_text(errno))};
  struct stat entry {};
  if (::fstat(fd.get(), &entry) != 0 || !S_ISREG(entry.st_mode) || entry.st_nlink != 1)
    return Error{fmt::format("{} is not a file of its own, but a link; remove it", file)};
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_OFD_SETLK, &whole) == 0) return fd;
  const int error = errno;
  if (error == EAGAIN || error == EACCES) {
    std::string holder = text_of(file);
    std::erase(holder, '\n');
    return Error{fmt::format("another job uses {}: {}; give it another folder, or stop it", path,
                             holder.empty() ? "its name is not known" : holder)};
  }
  unlocked = net::error_text(error);
  return fd;
}

// Says who holds the lock; workers look for the job's id in it.
Result<void> sign(const net::Fd& lock, const std::string& path, const std::string& job) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string text = fmt::format("job {} on {}, process {}\n", job, host, ::getpid());
  if (::ftruncate(lock.get(), 0) != 0 ||
      ::pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fsync(lock.get()) != 0)
    return Error{fmt::format("cannot write {}/{}: {}", path, lock_name, net::error_text(errno))};
  return {};
}

// An old save gets the name of one that is being written before its files go: half of one must not
// look like a torn save.
void keep_newest(const std::string& folder, const std::string& before) {
  const auto saves = entries(folder, whole_prefix);
  std::size_t whole = 0;  // a torn one must not take the place of one that can be read
  for (auto at = saves.rbegin(); at != saves.rend(); ++at) {
    const auto& [number, save] = *at;
    if (save == before) {  // those after it are damaged, if there are any
      whole = kept;
      continue;
    }
    if (whole < kept) {
      const auto manifest = read_manifest(save);
      whole += manifest && check_files(save, *manifest) ? 1 : 0;
      continue;
    }
    const std::string draft = draft_of(folder, number);
    if (::rename(save.c_str(), draft.c_str()) == 0) remove_tree(draft);
  }
}

}  // namespace

Result<Folder> Folder::open(const std::string& path, const std::string& job) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code unknown;  // it may lie where nobody may look
  if (error && fs::is_symlink(path, unknown) && !fs::exists(path, unknown) && !unknown)
    return Error{fmt::format("{} is a link that leads nowhere", path)};
  if (error) return Error{fmt::format("cannot make {}: {}", path, net::error_text(error.value()))};
  Inventory inventory;
  auto held = lock(path, inventory.unlocked);
  if (!held) return held.error();
  Folder folder(std::move(*held));
  if (auto done = sign(folder.lock_, path, job); !done) return done.error();
  // No job is at work here, so nobody will finish or remove these.
  for (const auto& [worker, probe] : entries(path, probe_prefix)) remove_tree(probe);
  remove_tree(path + "/" + beside(finished_name));
  for (const auto& [number, draft] : entries(path, draft_prefix))
    inventory.next_number = std::max(inventory.next_number, number + 1);
  discard_all(path);
  const std::int64_t finished = number_of(text_of(path + "/" + finished_name), "").value_or(0);
  inventory.next_number = std::max(inventory.next_number, finished + 1);
  for (const auto& [number, save] : entries(path, whole_prefix)) {
    inventory.next_number = std::max(inventory.next_number, number + 1);
    inventory.finished = number <= finished;
    if (number <= finished) continue;
    auto manifest = read_manifest(save);
    if (manifest)
      if (auto whole = check_files(save, *manifest); !whole) manifest = whole.error();
    if (manifest)
      inventory.saves.insert(inventory.saves.begin(), {save, std::move(*manifest)});
    else
      inventory.refused.push_back(manifest.error().text);
  }
  folder.inventory_ = std::move(inventory);
  return folder;
}

Result<std::string> Folder::seal(const std::string& folder, std::int64_t number,
                                 const wire::saved::Manifest& manifest, const std::string& before) {
  const std::string from = draft_of(folder, number);
  const std::string to = whole_of(folder, number);
  if (auto there = check_files(from, manifest); !there) return there.error();
  if (auto fits = check_contents(from, manifest); !fits) return fits.error();
  if (auto written = write_file(from, manifest_name, encode(manifest)); !written)
    return written.error();
  if (auto synced = sync_folder(from); !synced) return synced.error();
  if (::rename(from.c_str(), to.c_str()) != 0)
    return Error{fmt::format("cannot rename {} to {}: {}", from, to, net::error_text(errno)),
                 errno};
  if (auto synced = sync_folder(folder); !synced) return synced.error();
  keep_newest(folder, before);
  return ok(to);
}

void Folder::discard(const std::string& folder, std::int64_t number) {
  remove_tree(draft_of(folder, number));
}

void Folder::discard_all(const std::string& folder) {
  for (const auto& [number, draft] : entries(folder, draft_prefix)) remove_tree(draft);
}

Result<void> Folder::finish(const std::string& folder) {
  const auto saves = entries(folder, whole_prefix);
  if (saves.empty()) return {};
  const std::string draft = beside(finished_name);
  const auto written = write_file(folder, draft, std::to_string(saves.rbegin()->first));
  if (!written) return written.error();
  if (::rename((folder + "/" + draft).c_str(), (folder + "/" + finished_name).c_str()) != 0)
    return Error{
        fmt::format("cannot write {}/{}: {}", folder, finished_name, net::error_text(errno))};
  return sync_folder(folder);
}

Result<std::string> find_save(const std::string& path) {
  std::error_code error;
  if (fs::exists(path + "/" + manifest_name, error)) return ok(path);
  if (error) return Error{fmt::format("cannot read {}: {}", path, net::error_text(error.value()))};
  const auto saves = entries(path, whole_prefix);
  if (saves.empty())
    return Error{fmt::format(
        "{} is no save and has none in it; give a folder of elasticrun --save, or one save in it",
        path)};
  return ok(saves.rbegin()->second);
}

Result<void> probe(const std::string& folder, const std::string& job, std::uint32_t worker) {
  const std::string file = folder + "/" + lock_name;
  if (text_of(file).find(fmt::format("job {} ", job)) == std::string::npos)
    return Error{
        fmt::format("it is another folder than the one that elasticrun sees ({} is not "
                    "that of this job); use a folder that all hosts share",
                    file)};
  const std::string name = fmt::format("{}{}", probe_prefix, worker);
  if (auto written = write_file(folder, name, ""); !written) return written.error();
  ::unlink((folder + "/" + name).c_str());
  return {};
}

}  // namespace elasticrun::save
