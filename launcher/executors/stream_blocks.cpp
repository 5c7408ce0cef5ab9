// See stream_blocks.hpp.
#include "launcher/executors/stream_blocks.hpp"

#include <algorithm>

namespace elasticrun::launcher::executors {

void StreamBlocks::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty() && !ended_) {
    if (left_ > 0) {
      const std::size_t size = std::min(left_, bytes.size());
      out.append(bytes.substr(0, size));
      bytes.remove_prefix(size);
      left_ -= size;
      continue;
    }
    head_ = head_ << 8 | static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (++head_bytes_ < 2) continue;
    left_ = head_;
    ended_ = left_ == 0;
    head_ = 0;
    head_bytes_ = 0;
  }
}

}  // namespace elasticrun::launcher::executors
