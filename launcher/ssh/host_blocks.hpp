// What tells hosts apart in the files that ssh is configured by: its Host blocks.
//
// `ssh -G` is a process of five milliseconds, for a thousand hosts five seconds of the launcher's
// processor, nearly always for one and the same answer. Hosts to which the same blocks apply get
// the same answer but for their HostName, so asking about two of them tells of all.
//
// Only so much is understood as that takes: no value is read but HostName, and of what decides
// which lines apply Host, Include, `Match all` and `Match final all`. With anything else in the
// files (a Match with conditions, quotes, canonical names) nothing is known of any host, and each
// is asked about. Not a parser of ssh_config: what it means stays OpenSSH's to say. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::launcher::ssh {

struct ConfigFile {
  std::string path;
  std::string text;
};

class HostBlocks {
 public:
  // The files that an Include means, those of them that can be read; `path` is as written.
  using Open = std::function<std::vector<ConfigFile>(const std::string& path)>;

  // Another file, behind those before it.
  void read(const ConfigFile& file, const Open& open);

  struct Standing {
    std::string blocks;    // of hosts with the same blocks the same
    std::string hostname;  // what ssh will call it
  };
  std::optional<Standing> of(const std::string& host) const;

  // What has been read, in order; the files of an Include behind the one it is in.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  using Words = std::vector<std::string_view>;
  enum class Kind { patterns, always, last_pass };
  struct Block {
    Kind kind{};
    std::vector<std::string> patterns;
    std::size_t parent = 0;  // an Include stands in it; the first block is its own
  };
  struct Entry {
    std::size_t block = 0;
    std::string hostname;  // empty: something else is said
  };

  void read(const ConfigFile& file, const Open& open, std::size_t parent, int depth);
  void add_match(const Words& words, std::size_t parent);
  void add_entry(std::size_t block, std::string hostname);
  void pass(const std::string& name, bool last, const std::string& host, Standing& standing) const;

  std::vector<Block> blocks_ = {Block{Kind::always, {}, 0}};
  std::vector<Entry> entries_;
  std::vector<std::string> paths_;
  bool two_passes_ = false;
  bool understood_ = true;
};

}  // namespace elasticrun::launcher::ssh
