// What a bundle is to those who send it and those who take it: its name, and what may be in it.
//
// A bundle is the program of a job and the libraries that it brings along, for hosts that lack it.
// Its name is a hash of all that is in it, so a host that has kept one needs no other copy, a
// rebuilt program never meets its old libraries, and who has received one, or finds one on a disk,
// knows whether it is what was meant. The order of its files does not count. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "launcher/bundle/content_hash.hpp"

namespace elasticrun::launcher::bundle {

inline constexpr std::int64_t bundle_bytes_max = std::int64_t{2} << 30;
inline constexpr std::size_t bundle_files_max = 1024;
// In base64 a part fills 64 KiB, for which a heartbeat may have to wait.
inline constexpr std::size_t bundle_part_bytes = 48u << 10;
// How often a host says what it has; the smallest window of the controller is twice that.
inline constexpr std::int64_t bundle_ask_bytes = 64 << 10;

class BundleDigest {
 public:
  void add(std::string_view bytes);  // of the present file
  void end_file(std::string_view name, bool executable);
  std::string text() const;  // of all files so far

 private:
  ContentHash present_;
  std::uint64_t bytes_ = 0;           // of the present file
  std::multiset<std::string> files_;  // what is to be known of each
};

// A name that stays in the folder where it is put.
bool is_bundle_file(std::string_view name);
// What a program is called in its bundle.
std::string bundle_file_of(std::string_view program);

}  // namespace elasticrun::launcher::bundle
