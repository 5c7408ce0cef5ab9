// What sender and receiver of a bundle agree on: its name, and what it may contain.
//
// A bundle is the program of a job and the libraries that it brings along, or a Python script and
// the modules beside it, for hosts that lack it. Its files may lie in folders. Its name is a hash
// of its content. So a host that has kept a bundle needs no other copy, a rebuilt program never
// runs with its old libraries, and a host that receives a bundle, or finds one on disk, can check
// that it is the right one. The order of the files does not matter. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "launcher/bundle/content_hash.hpp"

namespace elasticrun::launcher::bundle {

inline constexpr std::int64_t bundle_bytes_max = std::int64_t{2} << 30;
inline constexpr std::size_t bundle_files_max = 1024;
// The size of a part. A heartbeat may have to wait until a part is sent.
inline constexpr std::size_t bundle_part_bytes = 64u << 10;
// A host reports its progress each time it has written this many bytes. The controller's smallest
// window is twice that.
inline constexpr std::int64_t bundle_ask_bytes = 64 << 10;

class BundleDigest {
 public:
  void add(std::string_view bytes);  // content of the current file
  void end_file(std::string_view name, bool executable);
  std::string text() const;  // hash of all files ended so far

 private:
  ContentHash present_;               // of the current file
  std::uint64_t bytes_ = 0;           // size of the current file so far
  std::multiset<std::string> files_;  // content hash, size, mode and name of each file
};

// Whether this can be the name of a file in a bundle: a plain name, or a path of plain names below
// the bundle's folder, which cannot lead out of it.
bool is_bundle_file(std::string_view name);
// The file name of a program in its bundle.
std::string bundle_file_of(std::string_view program);

}  // namespace elasticrun::launcher::bundle
