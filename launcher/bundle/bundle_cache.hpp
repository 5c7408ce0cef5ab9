// Bundles on the disk of a host: where they may lie, finding one, writing one, forgetting old ones.
//
// A bundle is a folder bundle-HASH. It is written as bundle-HASH.MARK, with a mark that no other
// agent has, and renamed when it is whole: any number of agents may do so at once, on one home that
// many hosts share, and whoever comes second finds the first one's. It lies beside the agent where
// that was copied to this host, so the next job of the same program copies nothing.
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
#include "wire/messages.hpp"

namespace elasticrun::launcher::bundle {

// The best one first. The private directory goes with its agent, and so does what lies in it; but
// what lies in XDG_RUNTIME_DIR may go before, with the last login of the user.
std::vector<std::string> bundle_places(const std::string& private_directory);
// The same for an agent that is the file `self`; pure. `runtime` is empty where there is none.
std::vector<std::string> bundle_places(const std::string& private_directory,
                                       const std::filesystem::path& self, std::string_view runtime);

// The folder of a whole one, which is then as good as new to forget_old_bundles. Reads all of it: 2
// GiB take a second or, over a network, many.
std::optional<std::string> find_bundle(const std::vector<std::string>& places,
                                       const std::string& hash, std::int64_t bytes);

// Whether that folder is still there, with all its files; to look at each start of a worker.
bool has_size(const std::string& folder, std::int64_t bytes);

// The first place that has room and lets programs run.
Result<std::string> place_for_bundle(const std::vector<std::string>& places, std::int64_t bytes);

bool has_libraries(const std::string& folder);

// Somebody uses it: agents say so now and then.
void touch_bundle(const std::string& folder);

// Cleaners of temporary files by age leave it alone until that is closed (private_directory.hpp):
// the files of a program that runs are not touched, and libraries may be loaded after weeks.
net::Fd hold_bundle(const std::string& folder);

// Removes what nobody has used for an hour, but for the newest few; `folder` is one just stored.
void forget_old_bundles(const std::string& folder);

// What dead agents of that private directory were writing.
void remove_unfinished_bundles(const std::string& private_directory);

// One that is being written. Whoever destroys it without finish leaves nothing.
class UnfinishedBundle {
 public:
  static Result<std::unique_ptr<UnfinishedBundle>> begin(const std::string& place,
                                                         const std::string& hash,
                                                         std::int64_t bytes,
                                                         const std::string& private_directory);
  ~UnfinishedBundle();
  UnfinishedBundle(const UnfinishedBundle&) = delete;
  UnfinishedBundle& operator=(const UnfinishedBundle&) = delete;

  // Parts in their order. After an error nothing but the destruction makes sense.
  Result<void> take(const wire::BundlePart& part);
  // After the last part: it lies there, whole and as it was meant.
  Result<void> finish();
  std::string stored_in() const;
  const std::string& folder() const { return folder_; }

 private:
  UnfinishedBundle(std::string place, std::string hash, std::int64_t bytes, std::string folder);
  Result<void> next_file(const wire::BundlePart& part);
  Result<void> end_file();
  Error failure(const std::string& what) const;

  const std::string place_;
  const std::string hash_;
  const std::int64_t bytes_;
  const std::string folder_;
  BundleDigest seen_;
  std::int64_t taken_ = 0;
  std::size_t files_ = 0;
  std::string file_;  // being written; empty: none yet
  bool executable_ = false;
  net::Fd fd_;
};

}  // namespace elasticrun::launcher::bundle
