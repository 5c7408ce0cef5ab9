// Reads messages for all simulated workers. A message to a whole world is the same text for each of
// its members; decoding it for each of them would cost the simulation far more than the controller
// that is measured.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "wire/messages.hpp"

namespace elasticrun::bench {

class MessageReader {
 public:
  // Valid until the next call.
  const wire::ToWorker& read(std::string_view text);

 private:
  struct Known {
    std::string text;
    wire::ToWorker message;
  };
  std::array<Known, 4> known_;  // the newest messages
  std::size_t oldest_ = 0;
};

}  // namespace elasticrun::bench
