// A hash that serves as the name of content: agents and programs that are copied to hosts, and what
// the hosts keep of them.
//
// Not a cryptographic hash: the connection is authenticated, and what may alter a file unnoticed (a
// disk error, a power loss) is not an attacker. XXH3 hashes 7 MB in a millisecond. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace elasticrun::launcher::bundle {

class ContentHash {
 public:
  ContentHash();
  void add(std::string_view bytes);
  // The hash of all bytes so far: 32 hexadecimal digits.
  std::string text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

bool is_content_hash(std::string_view text);

}  // namespace elasticrun::launcher::bundle
