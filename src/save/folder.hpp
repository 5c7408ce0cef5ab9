// The folder of --save, as the controller uses it: it has the lock, finds the whole saves, makes a
// save whole by one rename, and removes what is not needed any more.
//
//     DIR/save-12/            a whole save: manifest, contents, part-0, part-1, ...
//     DIR/.saving-13/         one that is being written; its number is in no other name
//     DIR/lock                held while a job uses the folder; says which one
//     DIR/finished            the number of the newest save of a job that has ended with 0
//
// Every call may block for as long as the file system does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "net/sockets.hpp"
#include "wire/saved/manifest.hpp"

namespace elasticrun::save {

// The numbers of the two newest whole saves are kept.
inline constexpr std::size_t kept = 2;

// What a folder held when a job began to use it. A save counts as whole as far as its manifest and
// the sizes of its files show.
struct Inventory {
  std::vector<wire::saved::Save> saves;  // that a job may go on from, the newest first
  std::vector<std::string> refused;      // a line for each save that is torn or damaged
  std::int64_t next_number = 1;          // for the next save
  bool finished = false;                 // the newest saves are of a job that has ended with 0
  std::string unlocked;                  // why the folder could not be locked; empty: it is
};

class Folder {
 public:
  // Makes the folder, if need be, and takes the lock. An error when another job holds it, or when
  // it cannot be written. `path` is absolute.
  static Result<Folder> open(const std::string& path, const std::string& job);

  const Inventory& inventory() const { return inventory_; }
  // Makes a save whole: checks that its files are there and can be read, writes the manifest,
  // renames the folder. Returns the folder's new name. `before`: the save of which it takes the
  // place as the newest, which stays; empty: there is none that can be read.
  static Result<std::string> seal(const std::string& folder, std::int64_t number,
                                  const wire::saved::Manifest& manifest, const std::string& before);
  // Removes what is left of a save that was given up, or of all that are not whole.
  static void discard(const std::string& folder, std::int64_t number);
  static void discard_all(const std::string& folder);
  // The job has ended with 0: a job that starts after it begins afresh.
  static Result<void> finish(const std::string& folder);

 private:
  explicit Folder(net::Fd lock) : lock_(std::move(lock)) {}

  net::Fd lock_;
  Inventory inventory_;
};

// The folder of one save: `path` itself, or the newest save in it. For readers beside a job.
Result<std::string> find_save(const std::string& path);

// For a worker: whether this folder is the one that the job's controller has locked, and can be
// written. An error says what is wrong.
Result<void> probe(const std::string& folder, const std::string& job, std::uint32_t worker);

}  // namespace elasticrun::save
