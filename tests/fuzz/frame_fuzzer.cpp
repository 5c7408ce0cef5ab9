// Any bytes give the same frames however they are cut into pieces, and the frames give back the
// bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "wire/frame.hpp"

using namespace elasticrun;

namespace {

constexpr std::size_t payload_max = 200;

// Appends the complete frames to `out` in wire form; false after an error.
bool pop(wire::FrameReader& reader, std::string& out) {
  while (true) {
    const auto frame = reader.next();
    if (!frame) return false;
    if (!*frame) return true;
    ER_CHECK((*frame)->payload.size() <= payload_max);
    wire::append_frame(out, (*frame)->worker, (*frame)->payload, (*frame)->passing);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 32;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  wire::FrameReader whole(payload_max), cut(payload_max);
  std::string from_whole, from_cut;
  whole.feed(bytes);
  const bool whole_good = pop(whole, from_whole);
  bool cut_good = true;
  for (std::size_t i = 0; i < bytes.size() && cut_good; i += piece) {
    cut.feed(bytes.substr(i, piece));
    cut_good = pop(cut, from_cut);
  }
  ER_CHECK(whole_good == cut_good);
  ER_CHECK(from_whole == from_cut);
  ER_CHECK(bytes.starts_with(from_whole));
  return 0;
}
