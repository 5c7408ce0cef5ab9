#include "tests/bench/control_plane/messages.hpp"

#include "base/check.hpp"
#include "wire/codec.hpp"

namespace elasticrun::bench {

const wire::ToWorker& MessageReader::read(std::string_view text) {
  for (const Known& known : known_)
    if (known.text == text) return known.message;
  auto message = wire::decode<wire::ToWorker>(text);
  ER_CHECK(message.has_value(), "the controller sent what no worker can read");
  Known& known = known_[oldest_];
  oldest_ = (oldest_ + 1) % known_.size();
  known = {std::string(text), std::move(*message)};
  return known.message;
}

}  // namespace elasticrun::bench
