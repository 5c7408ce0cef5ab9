// Any text decodes to a message or to an error, and a message stays the same when written and read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "wire/codec.hpp"
#include "wire/text.hpp"

using namespace elasticrun;

namespace {

template <class Message>
void check(std::string_view text) {
  const auto message = wire::decode<Message>(text);
  if (!message) {
    ER_CHECK(!message.error().text.empty());
    return;
  }
  const std::string written = wire::encode(*message);
  const auto again = wire::decode<Message>(written);
  ER_CHECK(again.has_value());
  ER_CHECK(wire::encode(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check<wire::Hello>(text);
  check<wire::Welcome>(text);
  check<wire::ToWorker>(text);
  check<wire::FromWorker>(text);
  check<wire::agent::ToAgent>(text);
  check<wire::agent::FromAgent>(text);

  // The same bytes as a program's output must come back unchanged, whatever they are.
  wire::agent::Output output;
  output.text.value = text;
  const auto back =
      wire::decode<wire::agent::FromAgent>(wire::encode(wire::agent::FromAgent(output)));
  ER_CHECK(back.has_value() && std::get<wire::agent::Output>(*back).text.value == text);
  if (const auto bytes = wire::from_base64(text)) ER_CHECK(wire::to_base64(*bytes) == text);
  return 0;
}
