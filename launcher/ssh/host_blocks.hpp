// What tells hosts apart in the configuration files of ssh: their Host blocks.
//
// `ssh -G` is a process of five milliseconds. For a thousand hosts that is five seconds of the
// launcher's processor, nearly always for the same answer. Hosts to which the same blocks apply get
// the same answer except for their HostName, so asking about two of them tells the answer for all.
//
// Only what that takes is understood: of all values only HostName is read, and of the keywords that
// decide which lines apply only Host, Include, `Match all` and `Match final all`. If the files
// contain anything else that decides (a Match with conditions, quotes, canonical names), nothing is
// known about any host, and ssh is asked about each one. This is not a parser of ssh_config: what
// that means stays for OpenSSH to say. Pure.
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
  // Returns the readable files that an Include means; `path` is as written there.
  using Open = std::function<std::vector<ConfigFile>(const std::string& path)>;

  // Reads another file; it comes after those read before.
  void read(const ConfigFile& file, const Open& open);

  struct Standing {
    std::string blocks;    // identifies the blocks that apply; equal for hosts with the same blocks
    std::string hostname;  // the HostName that ssh will use
  };
  std::optional<Standing> of(const std::string& host) const;

  // Paths of the files read, in order; the files of an Include come after the file it is in.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  using Words = std::vector<std::string_view>;
  enum class Kind { patterns, always, last_pass };
  struct Block {
    Kind kind{};
    std::vector<std::string> patterns;
    std::size_t parent = 0;  // block that its file was included from; 0 at top level
  };
  struct Entry {
    std::size_t block = 0;
    std::string hostname;  // value of a HostName line; empty: lines with other keywords
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
