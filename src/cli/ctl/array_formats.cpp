// See array_formats.hpp.
#include "cli/ctl/array_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace elasticrun::cli::ctl {
namespace {

constexpr std::array element_types{
    ElementType{"uint8", 1, "|u1", "ByteStorage"},
    ElementType{"int32", 4, "<i4", "IntStorage"},
    ElementType{"int64", 8, "<i8", "LongStorage"},
    ElementType{"float16", 2, "<f2", "HalfStorage"},
    ElementType{"bfloat16", 2, "", "BFloat16Storage"},
    ElementType{"float32", 4, "<f4", "FloatStorage"},
    ElementType{"float64", 8, "<f8", "DoubleStorage"},
};

// `count` bytes of a number, the lowest first.
std::string little_endian(std::uint64_t number, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

// The opcodes of Python's pickletools that are needed here (protocol 2).
namespace pickle {

using namespace std::literals;

constexpr std::string_view protocol_2 = "\x80\x02"sv;
constexpr std::string_view mark = "("sv, tuple = "t"sv, tuple_of_one = "\x85"sv, no_tuple = ")"sv;
constexpr std::string_view dict = "}"sv, set_items = "u"sv;
constexpr std::string_view call = "R"sv, persistent_id = "Q"sv, stop = "."sv;
constexpr std::string_view no = "\x89"sv;

std::string text(std::string_view utf8) {
  return "X" + little_endian(utf8.size(), 4) + std::string(utf8);
}
std::string number(std::uint64_t value) { return "\x8a\x09"s + little_endian(value, 8) + '\0'; }
std::string global(std::string_view module, std::string_view name) {
  return fmt::format("c{}\n{}\n", module, name);
}

}  // namespace pickle

}  // namespace

const ElementType* find_element_type(std::string_view name) {
  const auto found = std::ranges::find(element_types, name, &ElementType::name);
  return found == element_types.end() ? nullptr : &*found;
}

std::string element_type_names() {
  std::string names;
  for (const ElementType& type : element_types)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  return names;
}

std::string npy_header(const FlatArray& array) {
  constexpr std::size_t prefix = 10, alignment = 64;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                 array.type->numpy, array.count);
  const std::size_t whole = (prefix + text.size() + 1 + alignment - 1) / alignment * alignment;
  text.resize(whole - prefix - 1, ' ');
  text += '\n';
  using namespace std::literals;
  return "\x93NUMPY\x01\x00"s + little_endian(text.size(), 2) + text;
}

std::string torch_pickle(const std::vector<FlatArray>& arrays) {
  using namespace pickle;
  std::string program = fmt::format("{}{}{}", protocol_2, dict, mark);
  const auto add = [&](const auto&... parts) { ((program += parts), ...); };
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const FlatArray& array = arrays[i];
    add(text(array.name), global("torch._utils", "_rebuild_tensor_v2"), mark);
    add(mark, text("storage"), global("torch", array.type->torch), text(std::to_string(i)),
        text("cpu"), number(array.count), tuple, persistent_id);
    add(number(0));                                             // where it begins in the storage
    add(number(array.count), tuple_of_one);                     // shape
    add(number(1), tuple_of_one);                               // stride
    add(no);                                                    // it requires no gradient
    add(global("collections", "OrderedDict"), no_tuple, call);  // and has no hooks
    add(tuple, call);
  }
  add(set_items, stop);
  return program;
}

}  // namespace elasticrun::cli::ctl
