// See carried.hpp.
#include "worker/state/carried.hpp"

#include <fmt/format.h>

#include <boost/algorithm/hex.hpp>
#include <iterator>

#include "wire/codec.hpp"
#include "wire/limits.hpp"

namespace elasticrun::worker::state {
namespace {

constexpr char late_kind = 'l';

}  // namespace

std::string encode(const Carried& carried, const Layout& registered) {
  wire::saved::Contents contents{.progress = carried.progress};
  // As the segments of the state are: what is registered as state, then the buffers.
  for (const char kind : {'s', 'b'})
    for (const Registration& one : registered)
      if (one.kind == kind)
        contents.arrays.push_back({kind_name(kind), one.name,
                                   kind == 's' ? "" : collective::name_of(one.type), one.bytes});
  for (const Registration& one : carried.late)
    contents.arrays.push_back({kind_name(late_kind), one.name, "", one.bytes});
  boost::algorithm::hex_lower(carried.objects, std::back_inserter(contents.objects));
  return wire::encode(contents);
}

Result<void> check_size(std::uint64_t text_bytes) {
  if (text_bytes <= wire::saved_text_bytes_max) return {};
  return Error{
      fmt::format("the names of the arrays and the objects of the state source are {} bytes as "
                  "text; at most {} are taken: list fewer objects, or shorter names",
                  text_bytes, wire::saved_text_bytes_max)};
}

Result<Carried> decode_carried(std::string_view text) {
  auto contents = wire::decode<wire::saved::Contents>(text);
  if (!contents) return contents.error();
  return carried_of(std::move(*contents));
}

Result<Carried> carried_of(wire::saved::Contents contents) {
  Carried carried{.progress = std::move(contents.progress)};
  for (wire::saved::Array& array : contents.arrays)
    if (array.kind == kind_name(late_kind))
      carried.late.push_back(
          {.kind = late_kind, .name = std::move(array.name), .bytes = array.bytes});
  try {
    boost::algorithm::unhex(contents.objects, std::back_inserter(carried.objects));
  } catch (const boost::algorithm::hex_decode_error&) {
    return Error{"the objects of the state source are damaged"};
  }
  return carried;
}

}  // namespace elasticrun::worker::state
