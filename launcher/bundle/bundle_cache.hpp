// Bundles on the disk of a host: where they may lie, finding one, writing one, removing old ones.
//
// A bundle is a folder bundle-HASH. It is written as bundle-HASH.MARK, with a mark that no other
// agent has, and renamed when it is complete. So any number of agents may write the same bundle at
// once, in one home directory that many hosts share, and the slower ones find that of the first. If
// the agent was copied to this host, its bundles lie beside it, so the next job with the same
// program copies nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launcher/bundle/bundle_digest.hpp"
#include "net/sockets.hpp"
#include "wire/agent/messages.hpp"

namespace elasticrun::launcher::bundle {

// The directories where a bundle may lie, the best one first. The private directory is removed with
// everything in it when its agent ends; but XDG_RUNTIME_DIR may be removed even earlier, at the end
// of the user's last login session.
std::vector<std::string> bundle_places(const std::string& private_directory);
// The same for an agent whose file is `self`; pure. `runtime` is XDG_RUNTIME_DIR; empty: not set.
std::vector<std::string> bundle_places(const std::string& private_directory,
                                       const std::filesystem::path& self, std::string_view runtime);

// The folder of a complete bundle with that hash, if there is one. It counts as just used for
// forget_old_bundles. Reads the whole bundle: 2 GiB take a second or, over a network, many.
std::optional<std::string> find_bundle(const std::vector<std::string>& places,
                                       const std::string& hash, std::int64_t bytes);

// Whether that folder still exists and its files have that total size. Cheap enough to check it at
// each start of a worker.
bool has_size(const std::string& folder, std::int64_t bytes);

// The first place that is writable, has room and is not mounted noexec.
Result<std::string> place_for_bundle(const std::vector<std::string>& places, std::int64_t bytes);

// Whether the bundle has files besides the program.
bool has_libraries(const std::string& folder);

// Sets the bundle's modification time to now. Agents do so repeatedly for the bundles they use.
void touch_bundle(const std::string& folder);

// Holds a lock on the folder until the descriptor is closed, so that programs which remove old
// temporary files leave it alone (private_directory.hpp). Needed because a running program does not
// update the times of its files, and may load a library after weeks.
net::Fd hold_bundle(const std::string& folder);

// Removes the bundles beside `folder` that have not been used for an hour, except the newest few of
// them. `folder` is a bundle just stored.
void forget_old_bundles(const std::string& folder);

// Removes what agents with that private directory, now dead, had not finished writing.
void remove_unfinished_bundles(const std::string& private_directory);

// A bundle that is being written. If it is destroyed without finish(), nothing is left on the disk.
class UnfinishedBundle {
 public:
  static Result<std::unique_ptr<UnfinishedBundle>> begin(const std::string& place,
                                                         const std::string& hash,
                                                         std::int64_t bytes,
                                                         const std::string& private_directory);
  ~UnfinishedBundle();
  UnfinishedBundle(const UnfinishedBundle&) = delete;
  UnfinishedBundle& operator=(const UnfinishedBundle&) = delete;

  // Takes the parts in their order. After an error the object can only be destroyed.
  Result<void> take(const wire::agent::BundlePart& part);
  // To be called after the last part. On success the bundle is complete in stored_in(), and its
  // hash has been verified.
  Result<void> finish();
  std::string stored_in() const;
  const std::string& folder() const { return folder_; }

 private:
  UnfinishedBundle(std::string place, std::string hash, std::int64_t bytes, std::string folder);
  Result<void> next_file(const wire::agent::BundlePart& part);
  Result<void> end_file();
  Error failure(const std::string& what) const;

  const std::string place_;
  const std::string hash_;
  const std::int64_t bytes_;
  const std::string folder_;
  BundleDigest seen_;
  std::int64_t taken_ = 0;
  std::size_t files_ = 0;
  std::string file_;  // name of the file being written; empty: none yet
  bool executable_ = false;
  net::Fd fd_;
};

}  // namespace elasticrun::launcher::bundle
